// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package processresourceprocessor

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestAsAProcess is not a test: it makes this program one of the processes that the tests read.
func TestAsAProcess(t *testing.T) {
	switch what := os.Getenv("PROCESS_RESOURCE_TEST"); what {
	case "":
		t.SkipNow()
	case "sleep":
		fmt.Println("started")
		time.Sleep(time.Minute)
	default:
		publishNames(t, what)
	}
}

// publishNames publishes a process context, as the specification has it, in a memfd or in anonymous memory. Each line
// of the input is a service's name to publish; each is confirmed by a line of the output.
func publishNames(t *testing.T, kind string) {
	const size = 4096
	var (
		memory []byte
		err    error
	)
	if kind == "anonymous" {
		memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	} else {
		fd, createErr := unix.MemfdCreate("OTEL_CTX", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, createErr)
		require.NoError(t, unix.Ftruncate(fd, size))
		memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		require.NoError(t, unix.Close(fd))
	}
	require.NoError(t, err)
	require.NoError(t, unix.Madvise(memory, unix.MADV_DONTFORK))
	address := uint64(uintptr(unsafe.Pointer(&memory[0])))
	publishedAt := (*atomic.Uint64)(unsafe.Pointer(&memory[16]))
	lines := bufio.NewScanner(os.Stdin)
	for number := uint64(1); lines.Scan(); number++ {
		publishedAt.Store(0)
		payload := contextOf(lines.Text())
		copy(memory, "OTEL_CTX")
		binary.NativeEndian.PutUint32(memory[8:], 2)
		binary.NativeEndian.PutUint32(memory[12:], uint32(len(payload)))
		binary.NativeEndian.PutUint64(memory[24:], address+32)
		copy(memory[32:], payload)
		publishedAt.Store(number)
		name := []byte("OTEL_CTX\x00")
		err := unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, uintptr(unsafe.Pointer(&memory[0])), size,
			uintptr(unsafe.Pointer(&name[0])))
		fmt.Println(err)
	}
}

// run starts a program that prints something when it is running, and ends it with the test. It returns the profiler's
// attributes of its process.
func run(
	t *testing.T, environment []string, name string, arguments ...string,
) (attributes []profiletest.Attribute, end func()) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Dir = t.TempDir()
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	t.Cleanup(end)
	_, err = output.Read(make([]byte, 1))
	require.NoError(t, err)
	pid := command.Process.Pid
	executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	require.NoError(t, err)
	return process(pid, executable), end
}

func write(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestRealProcesses(t *testing.T) {
	const (
		python = "import time\nprint('started', flush=True)\ntime.sleep(60)\n"
		node   = "console.log('started'); setTimeout(() => {}, 60000);\n"
	)
	self, err := os.Executable()
	require.NoError(t, err)
	self, err = filepath.EvalSymlinks(self)
	require.NoError(t, err)
	for _, test := range []struct {
		what, want, inEnvironment string
		environment               []string
		command                   []string
	}{
		{"a script in Python", "app.py", "", nil, []string{"python3", "-u", write(t, "app.py", python)}},
		{"a module in Python", "timeit", "", nil, []string{"python3", "-m", "timeit", "-n", "1", "-r", "1", python}},
		{"Python with a name", "app.py", "shop", []string{"OTEL_SERVICE_NAME=shop"},
			[]string{"python3", write(t, "app.py", python)}},
		{"Node", "server.js", "", nil, []string{"node", "--no-warnings", write(t, "server.js", node)}},
		{
			"Node with a name", "server.js", "cart", []string{"OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=cart"},
			[]string{"node", write(t, "server.js", node)},
		},
		{"Node with a script in its arguments", "node", "", nil, []string{"node", "-e", node}},
		{"a shell script", "run.sh", "", nil,
			[]string{"bash", write(t, "run.sh", "echo started; while :; do read -t 1 < <(:); sleep 1; done")}},
		{"Go", filepath.Base(self), "", []string{"PROCESS_RESOURCE_TEST=sleep"},
			[]string{self, "-test.run=^TestAsAProcess$"}},
		{"a program in C", "sleep", "", nil, nil},
	} {
		t.Run(test.what, func(t *testing.T) {
			var attributes []profiletest.Attribute
			if test.command == nil {
				command := exec.Command("sleep", "60")
				require.NoError(t, command.Start())
				t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
				require.Eventually(t, func() bool {
					executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", command.Process.Pid))
					attributes = process(command.Process.Pid, executable)
					return err == nil && strings.HasSuffix(executable, "/sleep")
				}, 30*time.Second, time.Millisecond)
			} else {
				attributes, _ = run(t, test.environment, test.command[0], test.command[1:]...)
			}
			f := start(t, func(c *Config) { c.ServiceNameFrom = []Source{SourceSample, SourceEnvironment, SourceExecutable} })
			got := only(t, f.consume(sampled(attributes)))
			assert.Equal(t, test.want, got["service.name"])
			assert.EqualValues(t, 1, f.sum("process_reads", "outcome", "read"))
			if test.inEnvironment != "" {
				f = start(t, func(c *Config) { c.Proc.ReadEnvironment = true })
				assert.Equal(t, test.inEnvironment, only(t, f.consume(sampled(attributes)))["service.name"])
			}
		})
	}
}

// A process that was read names the samples that arrive after its end.
func TestARealProcessEnds(t *testing.T) {
	attributes, end := run(t, nil, "python3", "-u", write(t, "app.py", "import time\nprint('started')\ntime.sleep(60)\n"))
	f := start(t, func(c *Config) { c.Proc.RefreshInterval = 0 })
	assert.Equal(t, map[string]int{"app.py": 1}, services(f.consume(sampled(attributes))))
	end()
	assert.Equal(t, map[string]int{"app.py": 1}, services(f.consume(sampled(attributes))))
	assert.EqualValues(t, 1, f.sum("process_reads", "outcome", "gone"))
	late := start(t, nil)
	name := attributes[2].Value.(string)
	assert.Equal(t, map[string]int{name: 1}, services(late.consume(sampled(attributes))))
}

// All processes of this machine can be read.
func TestAllProcessesOfThisMachine(t *testing.T) {
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var processes [][]profiletest.Attribute
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscan(entry.Name(), &pid); err != nil {
			continue
		}
		executable, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		processes = append(processes, process(pid, executable))
	}
	f := start(t, func(c *Config) { c.Proc.ReadEnvironment = true })
	found := services(f.consume(sampled(processes...)))
	t.Log(found)
	assert.Positive(t, f.sum("process_reads", "outcome", "read"))
	assert.Zero(t, f.sum("process_reads", "outcome", "error"))
	assert.Zero(t, found[""])
}

// A process that publishes another name has that name when it is read again.
func TestRealProcessContexts(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, kind := range []string{"memfd", "anonymous"} {
		t.Run(kind, func(t *testing.T) {
			command := exec.Command(self, "-test.run=^TestAsAProcess$")
			command.Env = append(os.Environ(), "PROCESS_RESOURCE_TEST="+kind, "OTEL_SERVICE_NAME=environment")
			input, err := command.StdinPipe()
			require.NoError(t, err)
			output, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
			executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", command.Process.Pid))
			require.NoError(t, err)
			f := start(t, func(c *Config) { c.Proc.RefreshInterval, c.Proc.ReadEnvironment = 0, true })
			answers := bufio.NewScanner(output)
			for _, name := range []string{"shop", "cart"} {
				_, err := fmt.Fprintln(input, name)
				require.NoError(t, err)
				require.True(t, answers.Scan())
				if answers.Text() != "<nil>" && kind == "anonymous" {
					t.Skip("this kernel does not name anonymous memory:", answers.Text())
				}
				assert.Equal(t, map[string]int{name: 1}, services(f.consume(sampled(process(command.Process.Pid, executable)))))
			}
			assert.EqualValues(t, 2, f.sum("contexts", "outcome", "read"))
		})
	}
}
