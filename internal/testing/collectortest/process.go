// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// Repository is the root of the checkout, seen from a package in internal/.
	Repository = "../../.."
	// StartTimeout is generous: the machine may be compiling something else.
	StartTimeout = 60 * time.Second
	// StopTimeout is as generous.
	StopTimeout = 60 * time.Second
)

// ToFile is a flag for config/quickstart.yaml: it also writes what arrives to profiles.jsonl in PROFILES_OUT.
const ToFile = `--config=yaml:{exporters: {file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true, ` +
	`rotation: {max_megabytes: 100, max_backups: 3}}}, service: {pipelines: {profiles: {exporters: [profile_store, file]}}}}`

// Binary builds the collector once, with the command that users run, and returns its path. SlimBinary and
// QuickstartBinary do the same for the builds of those names.
var (
	Binary           = sync.OnceValues(func() (string, error) { return build("otelcol-profiles") })
	SlimBinary       = sync.OnceValues(func() (string, error) { return build("otelcol-profiles-slim", "SLIM=1") })
	QuickstartBinary = sync.OnceValues(func() (string, error) { return build("otelcol-profiles-quickstart", "QUICKSTART=1") })
)

func build(name string, variables ...string) (string, error) {
	build := exec.Command("make", append([]string{"--no-print-directory", "build"}, variables...)...)
	build.Dir = Repository
	// If make started these tests, its flags and variables must not affect this one.
	build.Env = Without(os.Environ(), "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SLIM", "QUICKSTART")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build %v: %w\n%s", variables, err, out)
	}
	return filepath.Abs(filepath.Join(Repository, "bin", name))
}

// Without returns the environment without the named variables.
func Without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
}

// Process is a running collector, or another program that a test started.
type Process struct {
	*os.Process
	Log *Log
	// Exited is closed when the process has ended. ExitErr and State may be read then.
	Exited  chan struct{}
	ExitErr error
	State   *os.ProcessState
}

// Start starts a command. It is killed when the test ends, if the test has not ended it, and its log is printed if the
// test fails.
func Start(t testing.TB, command *exec.Cmd, name string) *Process {
	t.Helper()
	p := &Process{Log: &Log{}, Exited: make(chan struct{})}
	command.Stdout, command.Stderr = p.Log, p.Log
	require.NoError(t, command.Start())
	p.Process = command.Process
	go func() {
		p.ExitErr = command.Wait()
		p.State = command.ProcessState
		close(p.Exited)
	}()
	t.Cleanup(func() {
		select {
		case <-p.Exited:
		default:
			p.Kill()
		}
		if t.Failed() {
			t.Logf("the log of %.60q, which ended with %v:\n%.20000s", name, p.State, p.Log)
		}
	})
	return p
}

// WaitUntilReady returns when the collector has started its components: all of its servers listen.
func (p *Process) WaitUntilReady(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(StartTimeout); !strings.Contains(p.Log.String(), "Everything is ready"); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.Exited:
			t.Fatalf("the collector ended before it was ready: %v", p.ExitErr)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the collector is not ready after %s", StartTimeout)
		}
	}
}

// Terminate asks the process to end, as an init system does, and requires that it ends without an error.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGTERM))
	select {
	case <-p.Exited:
		require.NoError(t, p.ExitErr)
	case <-time.After(StopTimeout):
		t.Fatalf("the process still runs %s after SIGTERM", StopTimeout)
	}
}

// Kill ends the process unless it has ended already.
func (p *Process) Kill() {
	if err := p.Process.Kill(); errors.Is(err, os.ErrProcessDone) {
		return
	}
	<-p.Exited
}

// Listening returns the addresses on which the process accepts TCP connections. It needs /proc.
func (p *Process) Listening(t testing.TB) (addresses []string) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d", p.Pid)
	files, err := filepath.Glob(folder + "/fd/*")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("needs /proc")
	}
	sockets := map[string]bool{}
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil {
			sockets[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(folder + "/net/" + table)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			const listen, address, state, inode = "0A", 1, 3, 9
			fields := strings.Fields(line)
			if len(fields) <= inode || fields[state] != listen || !sockets[fields[inode]] {
				continue
			}
			_, hexPort, _ := strings.Cut(fields[address], ":")
			port, err := strconv.ParseUint(hexPort, 16, 16)
			require.NoError(t, err)
			addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	return addresses
}

// Log collects what a process prints while the test reads it.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *Log) String() string { return l.From(0) }

// Len returns how many bytes were printed so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Len()
}

// From returns what was printed after the first n bytes.
func (l *Log) From(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.buf.Bytes()[n:])
}
