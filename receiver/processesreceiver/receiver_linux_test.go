// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package processesreceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/goheap"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// TestGoProgram profiles a program that offers nothing. States are those of the program's own profile, and what is sent
// of totals is the difference of two of them.
func TestGoProgram(t *testing.T) {
	program := programtest.Start(t, programtest.Build(t, []string{"CGO_ENABLED=0"}, "-ldflags=-s -w"), "collect")
	sink := &consumertest.ProfilesSink{}
	start(t, sink, func(c *Config) {
		c.Interval = 1100 * time.Millisecond
		c.Include = []Match{{Name: "^program$", CommandLine: regexp.QuoteMeta(program.Dir) + " collect$"}}
	})
	inUse := func(since int) int64 { return sumOf(sink.AllProfiles()[since:], "inuse_space") }
	require.Eventually(t, func() bool { return inUse(0) > 0 }, 20*time.Second, 10*time.Millisecond)
	before := map[string]*profile.Profile{}
	for _, name := range []string{"heap", "block", "mutex"} {
		before[name] = program.Profile(t, name)
	}
	assert.Equal(t, sumOwn(before["heap"], "inuse_space"), sumOf(sink.AllProfiles()[:1], "inuse_space"))
	assert.Zero(t, sumOf(sink.AllProfiles(), "alloc_space"), "totals from before are not sent")

	program.Next(t)
	since := len(sink.AllProfiles())
	want := func(name, sampleType string) int64 {
		return sumOwn(program.Profile(t, name), sampleType) - sumOwn(before[name], sampleType)
	}
	require.Eventually(t, func() bool { return sumOf(sink.AllProfiles(), "alloc_space") > 0 }, 20*time.Second,
		10*time.Millisecond)
	require.Eventually(t, func() bool { return sumOf(sink.AllProfiles(), "delay") > 0 }, 20*time.Second,
		10*time.Millisecond)
	assert.Equal(t, want("heap", "alloc_space"), sumOf(sink.AllProfiles(), "alloc_space"))
	require.Eventually(t, func() bool { return inUse(since) >= sumOwn(program.Profile(t, "heap"), "inuse_space") },
		20*time.Second, 10*time.Millisecond)
	// The block and the mutex profile may come in two rounds, and the program waits while it reports.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		waits := want("block", "contentions") + want("mutex", "contentions")
		assert.InDelta(c, waits, sumOf(sink.AllProfiles(), "contentions"), float64(waits)/20)
	}, 20*time.Second, 100*time.Millisecond)
	for _, pd := range sink.AllProfiles() {
		require.NoError(t, profiletest.Check(pd))
		for _, rp := range pd.ResourceProfiles().All() {
			pid, _ := rp.Resource().Attributes().Get("process.pid")
			assert.Equal(t, int64(program.PID), pid.Int())
		}
	}
}

// TestGoLibrary profiles Go in a program of another language, which has it in its file or loads it.
func TestGoLibrary(t *testing.T) {
	if os.Getenv("E2E_PROCESSES") == "" {
		t.Skip("`make e2e-processes` runs it")
	}
	for _, mode := range []string{"c-shared", "c-archive"} {
		t.Run(mode, func(t *testing.T) {
			program := programtest.Start(t, programtest.BuildLibrary(t, mode), "collect")
			sink := &consumertest.ProfilesSink{}
			start(t, sink, func(c *Config) {
				c.Interval = time.Second
				c.Include = []Match{{Name: "^host$", CommandLine: regexp.QuoteMeta(program.Dir)}}
			})
			require.Eventually(t, func() bool { return len(sink.AllProfiles()) > 0 }, 20*time.Second, 10*time.Millisecond)
			assert.Equal(t, sumOwn(program.Profile(t, "heap"), "inuse_space"), sumOf(sink.AllProfiles()[:1], "inuse_space"))
		})
	}
}

// TestContainer profiles a program that has a user, a root, and a number of its own, as in a container.
func TestContainer(t *testing.T) {
	namespaces := []string{"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"}
	if out, err := exec.Command(namespaces[0], append(namespaces[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %s", out)
	}
	path := filepath.Join(t.TempDir(), "start")
	program := programtest.Build(t, []string{"CGO_ENABLED=0"}, "-ldflags=-s -w")
	script := fmt.Sprintf("#!/bin/sh\nexec %s %s \"$@\"\n", strings.Join(namespaces, " "), program)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is executed
	running := programtest.Start(t, path, "collect")
	sink := &consumertest.ProfilesSink{}
	start(t, sink, func(c *Config) {
		c.Interval = time.Second
		c.Include = []Match{{Name: "^program$", CommandLine: regexp.QuoteMeta(running.Dir)}}
	})
	require.Eventually(t, func() bool { return sumOf(sink.AllProfiles(), "inuse_space") > 0 }, 30*time.Second,
		10*time.Millisecond)
	first := sink.AllProfiles()[:1]
	assert.Equal(t, sumOwn(running.Profile(t, "heap"), "inuse_space"), sumOf(first, "inuse_space"))
	children := profiletest.FileBytes(t, fmt.Sprintf("/proc/%d/task/%[1]d/children", running.PID))
	pid, err := strconv.ParseInt(strings.TrimSpace(string(children)), 10, 64)
	require.NoError(t, err)
	for key, want := range map[string]any{
		"process.pid": pid, "process.executable.name": "program", "process.executable.path": program,
	} {
		got, _ := first[0].ResourceProfiles().At(0).Resource().Attributes().Get(key)
		assert.Equal(t, want, got.AsRaw(), key)
	}
}

func start(t *testing.T, sink *consumertest.ProfilesSink, change func(*Config)) {
	cfg := createDefaultConfig().(*Config)
	change(cfg)
	require.NoError(t, cfg.Validate())
	set := receivertest.NewNopSettings(metadata.Type)
	r, err := createProfiles(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
}

// sumOf adds up the values of a sample type.
func sumOf(messages []pprofile.Profiles, sampleType string) (sum int64) {
	for _, pd := range messages {
		for o := range profiletest.Observations(pd) {
			if o.SampleType == sampleType {
				sum += o.Value
			}
		}
	}
	return sum
}

func sumOwn(p *profile.Profile, sampleType string) (sum int64) {
	i := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == sampleType })
	for _, s := range p.Sample {
		sum += s.Value[i]
	}
	return sum
}

// TestMaxProcesses: what is above the limit is left alone, until there is room.
func TestMaxProcesses(t *testing.T) {
	path := programtest.Build(t, []string{"CGO_ENABLED=0"}, "-ldflags=-s -w")
	first, second := programtest.Start(t, path, "collect"), programtest.Start(t, path, "collect")
	sink := &consumertest.ProfilesSink{}
	start(t, sink, func(c *Config) {
		c.Interval, c.MaxProcesses = time.Second, 1
		c.Include = []Match{{CommandLine: regexp.QuoteMeta(first.Dir)}, {CommandLine: regexp.QuoteMeta(second.Dir)}}
	})
	seen := func() map[int64]bool {
		pids := map[int64]bool{}
		for _, pd := range sink.AllProfiles() {
			pid, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("process.pid")
			pids[pid.Int()] = true
		}
		return pids
	}
	require.Eventually(t, func() bool { return len(sink.AllProfiles()) >= 3 }, 20*time.Second, 10*time.Millisecond)
	require.Len(t, seen(), 1)
	if seen()[int64(first.PID)] {
		first.Stop()
	} else {
		second.Stop()
	}
	require.Eventually(t, func() bool { return len(seen()) == 2 }, 30*time.Second, 10*time.Millisecond)
}

// A program that runs again after all of its processes have ended is opened again.
func TestProgramThatRunsAgain(t *testing.T) {
	known, file := newBinaries(), target.File{Inode: 1}
	for range 2 {
		exe, err := os.Open("/proc/self/exe")
		require.NoError(t, err)
		program, err := known.get(exe, file)
		require.NoError(t, err)
		functions, err := program.image.GoFunctions("runtime.main")
		require.NoError(t, err)
		require.Len(t, functions, 1)
		known.release(file)
	}
}

// A process whose profiles were refused for the moment is tried again at the next interval: a JVM keeps only two.
func TestRefusedForNow(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	c, err := newReceiver(receivertest.NewNopSettings(metadata.Type), cfg, &consumertest.ProfilesSink{})
	require.NoError(t, err)
	own, err := target.Open("/proc", int64(os.Getpid()))
	require.NoError(t, err)
	t.Cleanup(own.Close)
	full := errors.New("queue is full")
	for _, forNow := range []error{refusal{full}, budget.ErrBusy} {
		p := &process{runtime: runtimeJava}
		for range 3 {
			c.(*processes).note(t.Context(), p, own, forNow)
		}
		require.True(t, isForNow(forNow))
		require.True(t, p.next.Before(time.Now()), "%v", forNow)
	}
	for _, lasting := range []error{refusal{consumererror.NewPermanent(full)}, fs.ErrPermission} {
		p := &process{runtime: runtimeJava}
		c.(*processes).note(t.Context(), p, own, lasting)
		require.False(t, isForNow(lasting))
		require.True(t, p.next.After(time.Now()), "%v", lasting)
	}
}

// What goes wrong since a program ends, or executes another one, is no failure.
func TestEndsWhileItIsRead(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	c, err := newReceiver(set, createDefaultConfig().(*Config), &consumertest.ProfilesSink{})
	require.NoError(t, err)
	attempt := func(reading func(*exec.Cmd)) {
		// Another program than the test, so that the shell executes it as another file.
		shell := exec.Command("sh", "-c", "read line; exec sleep 60")
		input, err := shell.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, shell.Start())
		t.Cleanup(func() { _, _ = shell.Process.Kill(), shell.Wait() })
		opened, err := target.Open("/proc", int64(shell.Process.Pid))
		require.NoError(t, err)
		t.Cleanup(opened.Close)
		file, err := opened.File()
		require.NoError(t, err)
		failing := failingSource(func() error {
			if reading == nil {
				return goheap.ErrUnreadable
			}
			if reading(shell); shell.ProcessState == nil {
				_, err := input.Write([]byte("\n"))
				require.NoError(t, err)
				require.Eventually(t, func() bool { now, err := opened.File(); return err == nil && now != file },
					10*time.Second, time.Millisecond)
			}
			return goheap.ErrUnreadable
		})
		c.(*processes).attempt(t.Context(), &process{file: file, runtime: runtimeGo, source: failing}, opened)
	}
	attempt(func(shell *exec.Cmd) { _, _ = shell.Process.Kill(), shell.Wait() })
	attempt(func(*exec.Cmd) {})
	require.Empty(t, logs.All())
	attempt(nil)
	require.Len(t, logs.All(), 1)
}

type failingSource func() error

func (f failingSource) collect(context.Context, *target.Target) error { return f() }

func (failingSource) close() {}
