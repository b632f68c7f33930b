// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/metadata"
)

// fixture is a running processor with a sink after it.
type fixture struct {
	t         *testing.T
	config    *Config
	processor xprocessor.Profiles
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs

	mu       sync.Mutex
	received []pprofile.Profiles
}

// start starts the processor with the default configuration, which change may change.
func start(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, config: createDefaultConfig().(*Config), telemetry: componenttest.NewTelemetry()}
	if change != nil {
		change(f.config)
	}
	require.NoError(t, f.config.Validate())
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.received = append(f.received, pd)
		return nil
	})
	require.NoError(t, err)
	core, logs := observer.New(zap.DebugLevel)
	f.logs = logs
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = f.telemetry.NewTelemetrySettings()
	set.Logger = zap.New(core)
	f.processor, err = NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, f.config, next)
	require.NoError(t, err)
	require.NoError(t, f.processor.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, f.processor.Shutdown(context.Background()))
		require.NoError(t, f.telemetry.Shutdown(context.Background()))
	})
	return f
}

// consume passes a message to the processor and returns the result, which must be conformant but for entries that
// nothing refers to.
func (f *fixture) consume(pd pprofile.Profiles) pprofile.Profiles {
	f.t.Helper()
	samples := pd.SampleCount()
	require.NoError(f.t, f.processor.ConsumeProfiles(f.t.Context(), pd))
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.received[len(f.received)-1]
	require.NoError(f.t, profiletest.Check(got, profiletest.AllowOrphans()))
	require.Equal(f.t, samples, got.SampleCount())
	return got
}

// services returns the number of samples for each service.name of a message.
func services(pd pprofile.Profiles) map[string]int {
	all := map[string]int{}
	for _, rp := range pd.ResourceProfiles().All() {
		name, _ := rp.Resource().Attributes().Get("service.name")
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				all[name.Str()] += p.Samples().Len()
			}
		}
	}
	return all
}

// only returns the attributes of the only resource of a message.
func only(t *testing.T, pd pprofile.Profiles) map[string]any {
	t.Helper()
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	return pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
}

// sampled is a message of the eBPF profiler with a sample of each process.
func sampled(processes ...[]profiletest.Attribute) pprofile.Profiles {
	return sampledOn([]any{"container.id", ""}, processes...)
}

func sampledOn(resource []any, processes ...[]profiletest.Attribute) pprofile.Profiles {
	b := profiletest.New().Resource(resource...).Scope("go.opentelemetry.io/ebpf-profiler", "v1").
		Profile("samples", "count").Time(1_000, 5_000_000).Period(50_000_000, "cpu", "nanoseconds")
	for i, attributes := range processes {
		b.Sample(profiletest.Observed([]uint64{1_000 + uint64(i)}, fmt.Sprint("f", i), "main").With(attributes...))
	}
	return b.Build()
}

// process returns the profiler's attributes of a process, and more.
func process(pid int, executable string, more ...profiletest.Attribute) []profiletest.Attribute {
	attributes := []profiletest.Attribute{profiletest.Attr("thread.name", "thread"),
		profiletest.Attr("thread.id", int64(pid))}
	if executable != "" {
		attributes = append(attributes, profiletest.Attr("process.executable.name", filepath.Base(executable)),
			profiletest.Attr("process.executable.path", executable))
	}
	if pid != 0 {
		attributes = append(attributes, profiletest.Attr("process.pid", int64(pid)))
	}
	return append(attributes, more...)
}

// fakeProcess is a process below a root that is not a proc file system.
type fakeProcess struct {
	pid                 int
	flags               int
	executable, command string // command: arguments with spaces between them
	cgroup              string
	environ             []string
	context             string // a service.name
}

// machine writes processes below a new root.
func machine(t *testing.T, processes ...fakeProcess) (root string) {
	root = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "stat"), []byte("cpu 1 2 3\n"), 0o600))
	for _, p := range processes {
		dir := filepath.Join(root, fmt.Sprint(p.pid))
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Mkdir(dir, 0o700))
		for name, content := range map[string]string{
			"stat":    fmt.Sprintf("%d (a) S 1 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", p.pid, p.flags, p.pid),
			"cmdline": strings.ReplaceAll(p.command, " ", "\x00") + "\x00",
			"cgroup":  p.cgroup + "\n",
			"environ": strings.Join(p.environ, "\x00") + "\x00",
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		if p.context != "" {
			publish(t, dir, p.context)
		}
		if p.executable != "" {
			require.NoError(t, os.Symlink(p.executable, filepath.Join(dir, "exe")))
		}
	}
	return root
}

// contextOf returns the payload of a process context: a service's name, and a version of 2.
func contextOf(name string) []byte {
	attribute := func(key, value string) worst.Fields { return worst.Fields{1, key, 2, worst.Fields{1, value}} }
	return worst.Fields{1, worst.Fields{1, attribute("service.version", "2"), 1, attribute("service.name", name)}}.Bytes()
}

// publish writes a process context below a process's folder.
func publish(t *testing.T, dir, name string) {
	payload := contextOf(name)
	const address = 0x1000
	memory := append(make([]byte, address), "OTEL_CTX"...)
	memory = binary.NativeEndian.AppendUint32(memory, 2)
	memory = binary.NativeEndian.AppendUint32(memory, uint32(len(payload)))
	memory = binary.NativeEndian.AppendUint64(memory, 1)
	memory = append(binary.NativeEndian.AppendUint64(memory, address+32), payload...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mem"), memory, 0o600))
	maps := []byte("00001000-00002000 rw-p 00000000 00:01 1032       /memfd:OTEL_CTX (deleted)\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "maps"), maps, 0o600))
}

// sum adds up a metric's points that have the given attributes, or all of them.
func (f *fixture) sum(name string, attributes ...string) int64 {
	f.t.Helper()
	return collectortest.Sum(f.t, f.telemetry, "otelcol_processor_process_resource_"+name, attributes...)
}
