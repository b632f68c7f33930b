// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/jfr"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// javas returns the JDKs of this machine.
func javas(t *testing.T) []string {
	if os.Getenv("E2E_PROCESSES") == "" {
		t.Skip("`make e2e-processes` starts JVMs")
	}
	found, err := filepath.Glob("/usr/lib/jvm/*-amd64/bin/javac")
	require.NoError(t, err)
	var homes []string
	for _, path := range found {
		home := filepath.Dir(filepath.Dir(path))
		if info, err := os.Lstat(home); err == nil && info.IsDir() {
			homes = append(homes, home)
		}
	}
	if len(homes) == 0 {
		t.Skip("no JDK below /usr/lib/jvm")
	}
	return homes
}

// start starts the program as a user, and returns the process.
func start(t *testing.T, home string, uid uint32, options ...string) (*target.Target, *exec.Cmd) {
	return startIn(t, nil, home, uid, options...)
}

// startIn starts it by another command, such as unshare.
func startIn(t *testing.T, by []string, home string, uid uint32, options ...string) (*target.Target, *exec.Cmd) {
	classes := t.TempDir()
	out, err := exec.Command(filepath.Join(home, "bin/javac"), "-d", classes, "testdata/Burn.java").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for dir := classes; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	command := append(append(by, filepath.Join(home, "bin/java")), append(options, "-Xmx128m", "-cp", classes, "Burn")...)
	java := exec.Command(command[0], command[1:]...)
	java.Dir = "/"
	if uid != 0 {
		java.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	stdin, err := java.StdinPipe()
	require.NoError(t, err)
	stdout, err := java.StdoutPipe()
	require.NoError(t, err)
	java.Stderr = os.Stderr
	require.NoError(t, java.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = java.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	opened, err := target.Open("/proc", jvmBelow(t, int64(java.Process.Pid)))
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	return opened, java
}

// summarized returns how many events of a kind the JDK's own tool finds.
func summarized(t *testing.T, home string, recording []byte, event string) (n int) {
	path := filepath.Join(t.TempDir(), "recording.jfr")
	require.NoError(t, os.WriteFile(path, recording, 0o600))
	out, err := exec.Command(filepath.Join(home, "bin/jfr"), "summary", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == event {
			n, err = strconv.Atoi(fields[1])
			require.NoError(t, err)
		}
	}
	return n
}

// observations returns how many times the samples of a type have.
func observations(pd pprofile.Profiles, sampleType string) (n int) {
	for p := range otlp.Profiles(pd) {
		if pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) != sampleType {
			continue
		}
		for _, s := range p.Samples().All() {
			n += s.TimestampsUnixNano().Len()
		}
	}
	return n
}

// jvmBelow returns the process itself, or the JVM among its children.
func jvmBelow(t *testing.T, pid int64) int64 {
	for {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		require.NoError(t, err)
		if _, err := fmt.Sscan(string(children), &pid); err != nil {
			return pid
		}
	}
}

// TestNamespaces records a JVM that has a root, a /tmp, a number and a user of its own, as in a container.
func TestNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make such namespaces")
	}
	for name, by := range map[string][]string{
		"pid and mount": {"unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", `mount -t tmpfs tmpfs /tmp; exec "$@"`, "sh"},
		"user":          {"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"},
		"noexec":        {"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o noexec tmpfs /tmp; exec "$@"`, "sh"},
		"read-only":     {"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o ro tmpfs /tmp; exec "$@"`, "sh"},
	} {
		t.Run(name, func(t *testing.T) {
			classes := "/var/tmp" // outside of /tmp, which is another one there
			t.Setenv("TMPDIR", classes)
			process, _ := startIn(t, by, javas(t)[0], 0)
			vm, err := inspect(t, process)
			require.NoError(t, err)
			if name != "noexec" && name != "read-only" {
				assert.Less(t, vm.PID, int64(10), "its own number")
			}
			recording := &Recording{VM: vm, Timeout: 20 * time.Second}
			err = recording.Start(process, &settings)
			if name == "read-only" {
				require.ErrorIs(t, err, ErrNoRecorder)
				return
			}
			require.NoError(t, err)
			chunks, err := recording.Dump(process, allocate)
			require.NoError(t, err)
			assert.NotEmpty(t, chunks)
			require.NoError(t, recording.Stop(process))
		})
	}
}

func inspect(t *testing.T, process *target.Target) (*VM, error) {
	mappings, err := process.Mappings()
	require.NoError(t, err)
	return Inspect(process, mappings)
}

var settings = Settings{
	CPUPeriod: 20 * time.Millisecond, AllocationsPerSecond: 150, WaitThreshold: 10 * time.Millisecond,
	MaxAge: time.Minute, MaxBytes: 32 << 20,
}

// user is one other than root, if the test runs as root.
func user() uint32 {
	if os.Getuid() == 0 {
		return 65534
	}
	return 0
}

func allocate(size int64) ([]byte, error) { return make([]byte, size), nil }

// TestRecording records a JVM that runs as another user. Two dumps have no chunk in common, and nothing stays behind.
func TestRecording(t *testing.T) {
	for _, home := range javas(t) {
		t.Run(filepath.Base(home), func(t *testing.T) {
			t.Parallel()
			process, _ := start(t, home, user())
			vm, err := inspect(t, process)
			require.NoError(t, err)
			recording := &Recording{VM: vm, Timeout: 20 * time.Second}
			require.NoError(t, recording.Start(process, &settings))
			seen := map[string]bool{}
			for range 2 {
				time.Sleep(time.Second)
				chunks, err := recording.Dump(process, allocate)
				require.NoError(t, err)
				anchor := events.Anchor{EndNanos: uint64(time.Now().UnixNano())}
				pd, stats, err := jfr.Decode(chunks, jfr.Options{Options: events.Options{Anchor: anchor}})
				require.NoError(t, err)
				assert.Greater(t, stats.Events, 10)
				assert.Equal(t, summarized(t, home, chunks, "jdk.ExecutionSample"), observations(pd, "samples"), "as `jfr summary` counts")
				strs := strings.Join(pd.Dictionary().StringTable().AsRaw(), "\n")
				for _, name := range []string{"Burn.hot", "Burn.allocate", "Burn.hold"} {
					assert.Contains(t, strs, name)
				}
				assert.False(t, seen[string(chunks[:chunkHeader])], "the same chunk again")
				seen[string(chunks[:chunkHeader])] = true
			}
			// A collector that was killed left its recording. Another one takes its place.
			require.NoError(t, recording.Start(process, &settings))
			require.NoError(t, recording.Stop(process))
			_, err = recording.Dump(process, allocate)
			require.ErrorIs(t, err, ErrEnded)
			left, err := filepath.Glob("/tmp/otelcol-profiles-*.j*")
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}
