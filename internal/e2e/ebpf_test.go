// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

const hostConfig = "config/host.yaml"

// newHost returns a collector with config/host.yaml, not started, with all its addresses moved to where nothing else is.
func newHost(t *testing.T, binary []string, flags []string, env ...string) *everything {
	t.Helper()
	c := &collector{endpoint: freeAddress(t), metrics: freeAddress(t), status: freeAddress(t), graphs: freeAddress(t)}
	_, metricsPort, err := net.SplitHostPort(c.metrics)
	require.NoError(t, err)
	args := append(append(binary, "--config", hostConfig), flags...)
	c.command = exec.Command(args[0], args[1:]...)
	c.command.Dir = repository
	e := &everything{collector: c, otlp: freeAddress(t), health: freeAddress(t), targets: t.TempDir()}
	c.command.Env = append(append(os.Environ(), "METRICS_PORT="+metricsPort, "STATUS_ENDPOINT="+c.status, "PAGE_ENDPOINT="+c.graphs,
		"PPROF_ENDPOINT="+c.endpoint, "OTLP_GRPC_ENDPOINT="+e.otlp, "OTLP_HTTP_ENDPOINT="+freeAddress(t),
		"HEALTH_ENDPOINT="+e.health, "HOST_STORAGE="+t.TempDir(), "SCRAPE_TARGETS="+e.targets+"/*.yaml"), env...)
	return e
}

// TestHostWithoutPrivileges runs config/host.yaml as a user without any: it says what sampling needs, once, and everything
// else goes on. Told so, it ends with the same error instead.
func TestHostWithoutPrivileges(t *testing.T) {
	t.Parallel()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	binary := []string{path}
	if os.Getuid() == 0 {
		// Without capabilities root is a user like others, but for the files that it owns.
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("run by root, this needs setpriv")
		}
		binary = []string{setpriv, "--bounding-set=-all", "--inh-caps=-all", path}
	}
	c := newHost(t, binary, nil)
	c.start(t, "the collector with "+hostConfig)
	require.Eventually(t, func() bool { return strings.Contains(c.Log.String(), "eBPF profiling cannot start") }, startTimeout, 50*time.Millisecond)
	want := "missing capabilities: BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, "
	if runtime.GOOS != "linux" {
		want = "the profiler is for Linux on amd64 and arm64"
	}
	require.Contains(t, c.Log.String(), want)
	require.Equal(t, "0", c.running(t))
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	status, answer, err := c.push("shop", payload)
	require.NoError(t, err)
	require.Equal(t, 204, status, answer)
	pd, _, err := pprofconv.Decode(payload, pprofconv.DecodeOptions{})
	require.NoError(t, err)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "by-otlp")
	require.NoError(t, export(t, c.otlp, pprofileotlp.NewExportRequestFromProfiles(pd)))
	c.list(t, "scraped")
	waitForServices(t, c.graphs, 3)
	c.requireHealthy(t)
	c.Terminate(t)
	require.Equal(t, 1, strings.Count(c.Log.String(), "eBPF profiling cannot start"))

	c = newHost(t, binary, nil, "EBPF_ON_UNAVAILABLE=fail")
	out, err := c.command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `failed to start "profiling" receiver: eBPF profiling cannot start: `+want)
}

// TestKubernetesEBPFConfiguration validates what components/ebpf makes of the agents' configuration.
func TestKubernetesEBPFConfiguration(t *testing.T) {
	folder := filepath.Join("config", "kubernetes")
	for name, value := range map[string]string{"CONFIG_FOLDER": filepath.Join(folder, "base"), "K8S_NODE_NAME": "node", "BACKEND_ENDPOINT": "backend:4317",
		"K8S_NAMESPACE_NAME": "n", "K8S_POD_NAME": "p", "K8S_POD_UID": "u", "QUEUE_DIRECTORY": t.TempDir()} {
		t.Setenv(name, value)
	}
	out, err := command(t, "validate", "--config", filepath.Join(folder, "base", "agent.yaml"), "--config", filepath.Join(folder, "components", "ebpf", "ebpf.yaml"))
	require.NoError(t, err, out)
}

// running returns the value of the metric that says whether the profiler runs.
func (c *collector) running(t *testing.T) string {
	t.Helper()
	response, err := client.Get("http://" + c.metrics + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^otelcol_receiver_profiling_running(?:\{.*\})? (\S+)$`).FindSubmatch(page)
	require.NotNil(t, found, "%s", page)
	return string(found[1])
}

// TestEBPF samples programs of known behaviour, each for a quarter of a CPU and three minutes at most, with config/host.yaml,
// and expects them under their names, with their functions, and with the shares of time that they have. It needs a kernel
// and privileges for eBPF, hence it runs only where `make e2e-ebpf` asks for it.
//
// EBPF_PROFILER names a folder with a changed copy of the profiler's module, for a machine on which the released one does
// not work. The checks are left out then. What else a machine may lack, tracefs and a higher limit on locked memory, the
// test provides for itself where it can.
func TestEBPF(t *testing.T) {
	wanted := os.Getenv("E2E_EBPF")
	if wanted == "" {
		t.Skip("`make e2e-ebpf` runs this")
	}
	binary, flags := hostBinary(t)
	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	c := newHost(t, binary, flags, "SAMPLES_PER_SECOND=97", "EBPF_BATCH_TIMEOUT=1s", "EXPORTERS=[pprof, otlp_grpc]", "BACKEND_ENDPOINT="+to.address)
	c.start(t, "the collector with "+hostConfig)

	require.Eventually(t, func() bool {
		log := c.Log.String()
		return strings.Contains(log, "eBPF profiling runs") || strings.Contains(log, "eBPF profiling cannot start")
	}, startTimeout, 50*time.Millisecond)
	if _, reason, failed := strings.Cut(c.Log.String(), "eBPF profiling cannot start"); failed {
		line, _, _ := strings.Cut(reason, "\n")
		if wanted == "if-possible" {
			c.Terminate(t)
			t.Skip("SKIPPED: eBPF profiling cannot start here" + line)
		}
		t.Fatal("eBPF profiling cannot start here" + line)
	}
	require.Equal(t, "1", c.running(t))

	programs := startPrograms(t)
	var found map[string]*sampled
	require.Eventually(t, func() bool {
		found = to.sampled(t)
		for _, p := range programs {
			if s := found[p.service]; s == nil || s.hot+s.cold+s.unnamed < 150 {
				return false
			}
		}
		return true
	}, 170*time.Second, time.Second, "150 samples of each program")
	c.Terminate(t)
	for _, p := range programs {
		s := found[p.service]
		t.Logf("%s: %d samples, %.2f in hotWork, %.2f in coldWork, %.2f without a named function; frames: %v", p.service, s.total,
			float64(s.hot)/float64(s.total), float64(s.cold)/float64(s.total), float64(s.unnamed)/float64(s.total), s.types)
		require.Positive(t, s.types[p.frames], "frames of %s", p.frames)
		if p.isUnnamed {
			assert.Zero(t, s.hot+s.cold, "a stripped program has no names")
			assert.Greater(t, s.unnamed, s.total*7/10)
			continue
		}
		// What is neither is the kernel's, and the interpreter's start.
		assert.Greater(t, s.hot+s.cold, s.total*7/10, p.service)
		// Three quarters, as far as so few samples on a busy machine, and a compiler at work, can tell.
		assert.InDelta(t, 0.75, float64(s.hot)/float64(s.hot+s.cold), 0.22, p.service)
	}
	require.Positive(t, to.kernelFrames(t), "functions of the kernel have names")
}

// hostBinary returns the command that runs the collector, and flags for it.
func hostBinary(t *testing.T) (command, flags []string) {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	if folder := os.Getenv("EBPF_PROFILER"); folder != "" {
		path = buildWithProfiler(t, folder)
		flags = []string{"--set=receivers::profiling::skip_checks=true"}
	}
	if os.Getuid() != 0 {
		return []string{path}, flags
	}
	if exec.Command("sh", "-c", "[ $(ulimit -Hl) = unlimited ] || ulimit -Hl unlimited").Run() != nil {
		// Kernels since 5.11 account the tables of eBPF otherwise, but the profiler insists on the limit.
		if strace, err := exec.LookPath("strace"); err == nil {
			command = []string{strace, "-D", "-f", "--seccomp-bpf", "-qq", "-e", "trace=prlimit64", "-e", "inject=prlimit64:retval=0", "-e", "signal=none", "-o", "/dev/null"}
		}
	}
	if _, err := os.Stat("/sys/kernel/tracing/events"); err != nil {
		if unshare, err := exec.LookPath("unshare"); err == nil {
			command = append([]string{unshare, "--mount", "sh", "-c", `mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"`, "sh"}, command...)
		}
	}
	return append(command, path), flags
}

// buildWithProfiler builds the collector with a copy of the profiler's module.
func buildWithProfiler(t *testing.T, folder string) string {
	t.Helper()
	main, err := filepath.Abs(filepath.Join(repository, "cmd", "otelcol-profiles"))
	require.NoError(t, err)
	out := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(main, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(out, name), content, 0o600))
	}
	mod := filepath.Join(out, "go.mod")
	for _, args := range [][]string{
		{"mod", "edit", "-replace=go.opentelemetry.io/ebpf-profiler=" + folder, mod},
		{"build", "-modfile=" + mod, "-trimpath", "-tags=grpcnotrace", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(out, "otelcol-profiles"), "."},
	} {
		printed, err := run(t, main, []string{"CGO_ENABLED=0"}, "go", args...)
		require.NoError(t, err, printed)
	}
	return filepath.Join(out, "otelcol-profiles")
}

// program is one that TestEBPF samples.
type program struct {
	service string
	// frames is the type of the frames of hotWork and coldWork (semantic convention profile.frame.type).
	frames string
	// isUnnamed means that nothing in the program says what its functions are called.
	isUnnamed bool
}

// startPrograms starts every program for which there is a compiler or interpreter. They end with the test.
func startPrograms(t *testing.T) (programs []program) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", "ebpf"))
	require.NoError(t, err)
	bin := t.TempDir()
	start := func(p program, name string, args ...string) {
		collectortest.Start(t, exec.Command(name, args...), p.service)
		programs = append(programs, p)
	}
	for name, flags := range map[string]string{"spin-go": "", "spin-go-stripped": "-s -w"} {
		printed, err := run(t, source, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags="+flags, "-o", filepath.Join(bin, name), "spin.go")
		require.NoError(t, err, printed)
		start(program{service: name, frames: "go"}, filepath.Join(bin, name))
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		for name, flag := range map[string]string{"spin-c": "-g0", "spin-c-stripped": "-s"} {
			printed, err := run(t, source, nil, cc, "-O1", flag, "-o", filepath.Join(bin, name), "spin.c")
			require.NoError(t, err, printed)
			start(program{service: name, frames: "native", isUnnamed: flag == "-s"}, filepath.Join(bin, name))
		}
	}
	if python, err := exec.LookPath("python3"); err == nil {
		start(program{service: "spin.py", frames: "cpython"}, python, filepath.Join(source, "spin.py"))
	}
	if node, err := exec.LookPath("node"); err == nil {
		// Functions that the compiler has merged cannot be told apart.
		start(program{service: "spin.js", frames: "v8js"}, node, "--no-turbo-inlining", filepath.Join(source, "spin.js"))
	}
	return programs
}

// sampled is what arrived of one service.
type sampled struct {
	// hot and cold count samples below hotWork and coldWork, unnamed those without any named function of the program.
	total, hot, cold, unnamed int
	// types counts frames by their type.
	types map[string]int
}

// sampled returns what has arrived by service. Everything that arrives is conformant.
func (b *backend) sampled(t *testing.T) map[string]*sampled {
	t.Helper()
	found := map[string]*sampled{}
	b.eachSample(t, func(service string, pd pprofile.Profiles, sample pprofile.Sample) {
		s := found[service]
		if s == nil {
			s = &sampled{types: map[string]int{}}
			found[service] = s
		}
		n := sample.TimestampsUnixNano().Len()
		s.total += n
		var names []string
		for frameType, name := range frames(pd, sample) {
			s.types[frameType] += n
			if frameType != "kernel" && name != "" {
				names = append(names, name)
			}
		}
		text := strings.Join(names, " ")
		switch {
		case strings.Contains(text, "hotWork"):
			s.hot += n
		case strings.Contains(text, "coldWork"):
			s.cold += n
		case !strings.Contains(text, "ork"):
			s.unnamed += n
		}
	})
	return found
}

// kernelFrames counts frames of the kernel with a name.
func (b *backend) kernelFrames(t *testing.T) (n int) {
	t.Helper()
	b.eachSample(t, func(_ string, pd pprofile.Profiles, sample pprofile.Sample) {
		for frameType, name := range frames(pd, sample) {
			if frameType == "kernel" && name != "" {
				n++
			}
		}
	})
	return n
}

// eachSample calls do with every sample that has arrived and its service.
func (b *backend) eachSample(t *testing.T, do func(string, pprofile.Profiles, pprofile.Sample)) {
	t.Helper()
	b.arrived(t) // checks conformance
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pd := range b.received {
		for _, rp := range pd.ResourceProfiles().All() {
			name, _ := rp.Resource().Attributes().Get("service.name")
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					for _, sample := range p.Samples().All() {
						do(name.Str(), pd, sample)
					}
				}
			}
		}
	}
}

// frames iterates over the frames of a sample, from the leaf on: their types and functions.
func frames(pd pprofile.Profiles, sample pprofile.Sample) func(func(frameType, name string) bool) {
	dictionary := pd.Dictionary()
	text := func(i int32) string { return dictionary.StringTable().At(int(i)) }
	return func(yield func(string, string) bool) {
		for _, index := range dictionary.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
			location := dictionary.LocationTable().At(int(index))
			frameType := ""
			for _, a := range location.AttributeIndices().All() {
				if attribute := dictionary.AttributeTable().At(int(a)); text(attribute.KeyStrindex()) == "profile.frame.type" {
					frameType = attribute.Value().Str()
				}
			}
			if location.Lines().Len() == 0 && !yield(frameType, "") {
				return
			}
			for _, line := range location.Lines().All() {
				if !yield(frameType, text(dictionary.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())) {
					return
				}
			}
		}
	}
}
