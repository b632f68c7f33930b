// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestHostWithoutPrivileges runs config/host.yaml without privileges: it logs once what sampling needs, and everything else
// works. With EBPF_ON_UNAVAILABLE=fail it ends with the same error.
func TestHostWithoutPrivileges(t *testing.T) {
	t.Parallel()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	binary := []string{path}
	if os.Getuid() == 0 {
		// Without capabilities root is like other users, except that it owns files.
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("run by root, this needs setpriv")
		}
		binary = []string{setpriv, "--bounding-set=-all", "--inh-caps=-all", path}
	}
	binary = append(binary, "--config", hostConfig)
	c := newCollector(t, binary)
	c.start(t, "the collector with "+hostConfig)
	require.Eventually(t, func() bool { return strings.Contains(c.Log.String(), "eBPF profiling cannot start") }, startTimeout, 50*time.Millisecond)
	want := "missing capabilities: BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, "
	if runtime.GOOS != "linux" {
		want = "the profiler is for Linux on amd64 and arm64"
	}
	require.Contains(t, c.Log.String(), want)
	require.Equal(t, "0", c.running(t))
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	c.requirePush(t, "shop", payload)
	c.exportPayload(t, "by-otlp", payload)
	c.scrapeThisProcess(t, "scraped")
	waitForServices(t, c.graphs, 3)
	c.requireHealthy(t)
	c.Terminate(t)
	require.Equal(t, 1, strings.Count(c.Log.String(), "eBPF profiling cannot start"))

	c = newCollector(t, binary, "EBPF_ON_UNAVAILABLE=fail")
	out, err := c.command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `failed to start "profiling" receiver: eBPF profiling cannot start: `+want)
}

// running returns the value of the metric that reports whether the profiler runs.
func (c *collector) running(t *testing.T) string {
	t.Helper()
	page := c.ownMetrics(t)
	found := regexp.MustCompile(`(?m)^otelcol_receiver_profiling_running(?:\{.*\})? (\S+)$`).FindStringSubmatch(page)
	require.NotNil(t, found, page)
	return found[1]
}

// TestEBPF samples programs with config/host.yaml. Each uses a quarter of a CPU for at most three minutes, and must arrive under its
// name, with its functions and, but for Node.js, their shares of the time. It needs a kernel and privileges for eBPF, hence only
// `make e2e-ebpf` runs it.
//
// EBPF_PROFILER names a folder with a changed copy of the profiler's module, for a machine on which the released one does
// not work. Then the receiver does not check the machine. The test mounts tracefs and raises the limit on locked memory where it
// has to and can.
func TestEBPF(t *testing.T) {
	ifPossible := collectortest.WantedBy(t, "E2E_EBPF")
	to := startBackend(t)
	c := newCollector(t, hostCommand(t), "SAMPLES_PER_SECOND=97", "EBPF_BATCH_TIMEOUT=1s", "EXPORTERS=[profile_store, otlp_grpc]", "BACKEND_ENDPOINT="+to.address)
	c.start(t, "the collector with "+hostConfig)

	require.Eventually(t, func() bool {
		log := c.Log.String()
		return strings.Contains(log, "eBPF profiling runs") || strings.Contains(log, "eBPF profiling cannot start")
	}, startTimeout, 50*time.Millisecond)
	if _, reason, failed := strings.Cut(c.Log.String(), "eBPF profiling cannot start"); failed {
		line, _, _ := strings.Cut(reason, "\n")
		if ifPossible {
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
		if p.frames == "v8js" {
			// The profiler mixes up functions of Node.js (docs/ebpf.md).
			assert.Positive(t, s.hot+s.cold, p.service)
			continue
		}
		// The others are samples of the kernel and of the interpreter's start.
		assert.Greater(t, s.hot+s.cold, s.total*7/10, p.service)
		// Three quarters. The tolerance is for few samples, a busy machine and a just-in-time compiler at work.
		assert.InDelta(t, 0.75, float64(s.hot)/float64(s.hot+s.cold), 0.22, p.service)
	}
	require.Positive(t, to.kernelFrames(), "functions of the kernel have names")
}

// hostCommand returns the command that runs the collector with config/host.yaml.
func hostCommand(t *testing.T) (command []string) {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	var flags []string
	if folder := os.Getenv("EBPF_PROFILER"); folder != "" {
		path = buildWithProfiler(t, folder)
		flags = []string{"--set=receivers::profiling::skip_checks=true"}
	}
	if os.Getuid() == 0 && exec.Command("sh", "-c", "[ $(ulimit -Hl) = unlimited ] || ulimit -Hl unlimited").Run() != nil {
		// Kernels since 5.11 account for eBPF tables elsewhere, but the profiler insists on raising the limit.
		if strace, err := exec.LookPath("strace"); err == nil {
			command = []string{strace, "-D", "-f", "--seccomp-bpf", "-qq", "-e", "trace=prlimit64", "-e", "inject=prlimit64:retval=0", "-e", "signal=none", "-o", "/dev/null"}
		}
	}
	if _, err := os.Stat("/sys/kernel/tracing/events"); err != nil && os.Getuid() == 0 {
		if unshare, err := exec.LookPath("unshare"); err == nil {
			command = append([]string{unshare, "--mount", "sh", "-c", `mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"`, "sh"}, command...)
		}
	}
	return append(append(command, path, "--config", hostConfig), flags...)
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
		requireRun(t, main, []string{"CGO_ENABLED=0"}, "go", args...)
	}
	return filepath.Join(out, "otelcol-profiles")
}

// program is a program that TestEBPF samples.
type program struct {
	service string
	// frames is the type of the frames of hotWork and coldWork (semantic convention profile.frame.type).
	frames string
	// isUnnamed means that the program has no names of its functions.
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
		requireRun(t, source, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags="+flags, "-o", filepath.Join(bin, name), "spin.go")
		start(program{service: name, frames: "go"}, filepath.Join(bin, name))
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		for name, flag := range map[string]string{"spin-c": "-g0", "spin-c-stripped": "-s"} {
			requireRun(t, source, nil, cc, "-O1", flag, "-o", filepath.Join(bin, name), "spin.c")
			start(program{service: name, frames: "native", isUnnamed: flag == "-s"}, filepath.Join(bin, name))
		}
	}
	if python, err := exec.LookPath("python3"); err == nil {
		start(program{service: "spin.py", frames: "cpython"}, python, filepath.Join(source, "spin.py"))
	}
	if node, err := exec.LookPath("node"); err == nil {
		// The profiler cannot tell inlined functions apart.
		start(program{service: "spin.js", frames: "v8js"}, node, "--no-turbo-inlining", filepath.Join(source, "spin.js"))
	}
	return programs
}

// sampled counts the samples of one service.
type sampled struct {
	// hot and cold count samples in hotWork and coldWork, unnamed those without a named function of the program.
	total, hot, cold, unnamed int
	// types counts frames by their type.
	types map[string]int
}

// sampled returns what has arrived by service. All of it must be conformant.
func (b *backend) sampled(t *testing.T) map[string]*sampled {
	t.Helper()
	b.requireConformant(t)
	found := map[string]*sampled{}
	for p := range profilesIn(b.messages()...) {
		s := found[p.service()]
		if s == nil {
			s = &sampled{types: map[string]int{}}
			found[p.service()] = s
		}
		for _, sample := range p.Samples().All() {
			n := sample.TimestampsUnixNano().Len()
			s.total += n
			var names []string
			for frameType, name := range p.frames(sample) {
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
		}
	}
	return found
}

// kernelFrames counts frames of the kernel with a name.
func (b *backend) kernelFrames() (n int) {
	for p := range profilesIn(b.messages()...) {
		for _, sample := range p.Samples().All() {
			for frameType, name := range p.frames(sample) {
				if frameType == "kernel" && name != "" {
					n++
				}
			}
		}
	}
	return n
}
