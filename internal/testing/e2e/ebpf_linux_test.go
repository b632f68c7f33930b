// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestEBPF samples programs with config/host.yaml. Each uses a quarter of a CPU for at most three minutes, and must
// arrive under its name, with its functions and, but for Node.js, their shares of the time, within 5 points. It needs a
// kernel and privileges for eBPF, hence only `make e2e-ebpf` runs it. It mounts tracefs, and makes the limit on locked
// memory no obstacle, where it has to and can.
func TestEBPF(t *testing.T) {
	ifPossible := collectortest.WantedBy(t, "E2E_EBPF")
	to := startBackend(t)
	spans := newSpans(t)
	c := newCollector(t, append(hostCommand(t), spans.flags()...), "SAMPLES_PER_SECOND=397", "PROCESSES_GO=false",
		"PROCESSES_JAVA=false", "EBPF_BATCH_TIMEOUT=1s", "EXPORTERS=[profile_store, otlp_grpc]",
		"BACKEND_ENDPOINT="+to.address)
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

	programs := startPrograms(t, spans)
	var found map[string]*sampled
	require.Eventually(t, func() bool {
		found = to.sampled(t)
		for _, p := range programs {
			if s := found[p.service]; s == nil || s.hot+s.cold+s.unnamed < 1000 {
				return false
			}
		}
		return true
	}, 170*time.Second, time.Second, "1,000 samples of each program")
	c.Terminate(t)
	for _, p := range programs {
		s := found[p.service]
		t.Logf("%s: %d samples, %.2f in hotWork, %.2f in coldWork, %.2f without a named function; frames: %v", p.service,
			s.total,
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
		// Three quarters. Of 1,000 samples, the standard deviation is 0.014.
		assert.InDelta(t, 0.75, float64(s.hot)/float64(s.hot+s.cold), 0.05, p.service)
	}
	require.Positive(t, to.kernelFrames(), "functions of the kernel have names")
	spans.check(t, found)
}

// hostCommand returns the command that runs the collector with config/host.yaml.
func hostCommand(t *testing.T) (command []string) {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	if _, err := os.Stat("/sys/kernel/tracing/events"); err != nil && os.Getuid() == 0 {
		if unshare, err := exec.LookPath("unshare"); err == nil {
			command = []string{unshare, "--mount", "sh", "-c", `mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"`, "sh"}
		}
	}
	if os.Getuid() == 0 && exec.Command("sh", "-c", "[ $(ulimit -Hl) = unlimited ] || ulimit -Hl unlimited").Run() != nil {
		// Kernels since 5.11 account for eBPF tables elsewhere, but the profiler insists on raising the limit.
		t.Setenv(ignoresLimits, "1")
		command = append(command, os.Args[0])
	}
	return append(command, path, "--config", hostConfig)
}

// ignoresLimits is the environment variable with which this test binary executes its arguments with a filter by which
// prlimit64 succeeds and does nothing (seccomp(2)).
const ignoresLimits = "E2E_IGNORES_LIMITS"

func init() {
	if os.Getenv(ignoresLimits) == "" || len(os.Args) < 2 {
		return
	}
	const numberOffset = 0 // of struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: numberOffset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PRLIMIT64, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	err := error(errno)
	if errno == 0 {
		if err = os.Unsetenv(ignoresLimits); err == nil {
			err = unix.Exec(os.Args[1], os.Args[1:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "execute without limits:", err)
	os.Exit(1)
}

// program is a program that TestEBPF samples.
type program struct {
	service string
	// frames is the type of the frames of hotWork and coldWork (semantic convention profile.frame.type).
	frames string
	// isUnnamed means that the program has no names of its functions.
	isUnnamed bool
}

// startPrograms starts every program for which there is a compiler or interpreter, and puts one into a span. They end
// with the test.
func startPrograms(t *testing.T, spans *spans) (programs []program) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", "ebpf"))
	require.NoError(t, err)
	bin := t.TempDir()
	start := func(p program, name string, args ...string) {
		process := collectortest.Start(t, exec.Command(name, args...), p.service)
		if p.service == linkedProgram {
			spans.enter(t, process.Process.Pid)
		}
		programs = append(programs, p)
	}
	for name, flags := range map[string]string{"spin-go": "", "spin-go-stripped": "-s -w"} {
		requireRun(t, source, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags="+flags, "-o", filepath.Join(bin, name),
			"spin.go")
		start(program{service: name, frames: "go"}, filepath.Join(bin, name))
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		for name, flag := range map[string]string{"spin-c": "-g0", "spin-c-stripped": "-s"} {
			requireRun(t, source, nil, cc, "-O1", flag, "-o", filepath.Join(bin, name), "spin.c")
			start(program{service: name, frames: "native", isUnnamed: flag == "-s"}, filepath.Join(bin, name))
		}
	}
	// python3 may be a script that replaces itself by the interpreter, which the profiler sees late (docs/ebpf.md).
	if python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output(); err == nil {
		start(program{service: "spin.py", frames: "cpython"}, string(python), filepath.Join(source, "spin.py"))
	}
	if cxx, err := exec.LookPath("c++"); err == nil {
		requireRun(t, source, nil, cxx, "-O1", "-x", "c++", "-o", filepath.Join(bin, "spin-cpp"), "spin.c")
		start(program{service: "spin-cpp", frames: "native"}, filepath.Join(bin, "spin-cpp"))
	}
	if javac, err := exec.LookPath("javac"); err == nil {
		requireRun(t, source, nil, javac, "-d", bin, "Spin.java")
		start(program{service: "Spin", frames: "jvm"}, "java", "-cp", bin, "Spin")
	}
	if node, err := exec.LookPath("node"); err == nil {
		start(program{service: "spin.js", frames: "v8js"}, node, "--no-turbo-inlining", filepath.Join(source, "spin.js"))
	}
	return programs
}

// sampled counts the samples of one service.
type sampled struct {
	// hot and cold count samples in hotWork and coldWork, unnamed those without a named function of the program.
	total, hot, cold, unnamed int
	// types counts frames by their type, spans samples by the trace and span that they are linked to.
	types, spans map[string]int
}

// sampled returns what has arrived by service. All of it must be conformant.
func (b *backend) sampled(t *testing.T) map[string]*sampled {
	t.Helper()
	b.requireConformant(t)
	found := map[string]*sampled{}
	for p := range profilesIn(b.messages()...) {
		s := found[p.service()]
		if s == nil {
			s = &sampled{types: map[string]int{}, spans: map[string]int{}}
			found[p.service()] = s
		}
		for _, sample := range p.Samples().All() {
			n := sample.TimestampsUnixNano().Len()
			s.total += n
			if link := p.dictionary.LinkTable().At(int(sample.LinkIndex())); !link.TraceID().IsEmpty() {
				s.spans[link.TraceID().String()+"/"+link.SpanID().String()] += n
			}
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
