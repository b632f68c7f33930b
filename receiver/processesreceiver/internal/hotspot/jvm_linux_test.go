// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
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
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// jdk is a JDK of this machine, or of a file system that has another libc: JVMs run there as in a container.
type jdk struct{ root, home string }

func (j jdk) String() string { return filepath.Base(j.home) + filepath.Base(j.root) }

// run is the command before one in the JDK's file system, as another user.
func (j jdk) run() []string {
	if j.root == "" {
		return nil
	}
	return []string{
		"unshare", "--mount", "--pid", "--fork", "--root=" + j.root, "--mount-proc", "--setuid", fmt.Sprint(user()),
		"--setgid", fmt.Sprint(user()),
	}
}

// javas returns the JDKs of this machine, and those of the file systems that JAVA_ROOTS lists.
func javas(t *testing.T) []jdk {
	collectortest.WantedBy(t, "E2E_PROCESSES")
	var found []jdk
	for _, root := range append([]string{""}, strings.Fields(os.Getenv("JAVA_ROOTS"))...) {
		homes, err := filepath.Glob(root + "/usr/lib/jvm/*-amd64")
		require.NoError(t, err)
		for _, home := range homes {
			if info, err := os.Lstat(home); err == nil && info.IsDir() {
				found = append(found, jdk{root: root, home: strings.TrimPrefix(home, root)})
			}
		}
	}
	if len(found) == 0 || found[0].root != "" {
		t.Skip("no JDK below /usr/lib/jvm")
	}
	return found
}

// start starts the program as a user, and returns the process.
func start(t *testing.T, java jdk, uid uint32, options ...string) (*target.Target, *exec.Cmd) {
	if by := java.run(); by != nil {
		return startIn(t, by, java, 0, options...)
	}
	return startIn(t, nil, java, uid, options...)
}

// compiled returns a folder with the classes of a program, as the JDK's file system has it.
func compiled(t *testing.T, of jdk, source string) string {
	classes := t.TempDir()
	if of.root != "" {
		var err error
		classes, err = os.MkdirTemp(of.root+"/tmp", "classes")
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(classes) })
	}
	out, err := exec.Command(filepath.Join(javas(t)[0].home, "bin/javac"), "--release", "8", "-d", classes, source).
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	for dir := classes; dir != of.root+"/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	return strings.TrimPrefix(classes, of.root)
}

// startIn starts it by another command, such as unshare.
func startIn(t *testing.T, by []string, of jdk, uid uint32, options ...string) (*target.Target, *exec.Cmd) {
	classes := compiled(t, of, "testdata/Burn.java")
	command := append(append(by, filepath.Join(of.home, "bin/java")),
		append(options, "-Xmx128m", "-cp", classes, "Burn")...)
	java := exec.Command(command[0], command[1:]...)
	java.Dir = "/"
	if uid != 0 {
		java.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	require.Equal(t, "ready", collectortest.StartProgram(t, java).Line)
	opened, err := target.Open("/proc", jvmBelow(t, int64(java.Process.Pid)))
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	return opened, java
}

// summarized returns how many events of a kind a JDK's own tool finds.
func summarized(t *testing.T, recording []byte, event string) (n int) {
	path := filepath.Join(t.TempDir(), "recording.jfr")
	require.NoError(t, os.WriteFile(path, recording, 0o600))
	out, err := exec.Command(filepath.Join(javas(t)[0].home, "bin/jfr"), "summary", path).CombinedOutput()
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
	for o := range profiletest.Observations(pd) {
		if o.SampleType == sampleType && o.Timestamp > 0 {
			n++
		}
	}
	return n
}

// jvmBelow returns the process itself, or the JVM among its children.
func jvmBelow(t *testing.T, pid int64) int64 {
	for {
		children := profiletest.FileBytes(t, fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
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
	if ifPossible := collectortest.WantedBy(t, "E2E_PROCESSES"); ifPossible {
		out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
			"mount -t tmpfs tmpfs /tmp").CombinedOutput()
		if err != nil {
			t.Skipf("SKIPPED: namespaces cannot be made here: %v\n%s", err, out)
		}
	}
	for name, by := range map[string][]string{
		"pid and mount": {"unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
			`mount -t tmpfs tmpfs /tmp; exec "$@"`, "sh"},
		"user":      {"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"},
		"noexec":    {"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o noexec tmpfs /tmp; exec "$@"`, "sh"},
		"read-only": {"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o ro tmpfs /tmp; exec "$@"`, "sh"},
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
			recording := &Recording{VM: vm, Timeout: patience}
			err = recording.Start(process, &settings, time.Minute)
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

// patience is how long a JVM may take on a busy machine.
const patience = 2 * time.Minute

var settings = Settings{
	CPUPeriod: 20 * time.Millisecond, AllocationsPerSecond: 150, WaitThreshold: 10 * time.Millisecond, LiveObjects: true,
	MaxRecordingBytes: 32 << 20,
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
	const recordings = "/tmp/otelcol-profiles-*.j*"
	before, err := filepath.Glob(recordings)
	require.NoError(t, err)
	for _, java := range javas(t) {
		t.Run(java.String(), func(t *testing.T) {
			t.Parallel()
			process, _ := start(t, java, user())
			vm, err := inspect(t, process)
			require.NoError(t, err)
			recording := &Recording{VM: vm, Timeout: patience}
			require.NoError(t, recording.Start(process, &settings, time.Minute))
			seen, names := map[string]bool{}, ""
			hasAll := func() bool {
				isOld := strings.Contains(java.home, "java-8-") // it has no frame of its own for what is inlined
				return (isOld || strings.Contains(names, "Burn.hot")) && strings.Contains(names, "Burn.allocate") &&
					strings.Contains(names, "Burn.hold")
			}
			for end := time.Now().Add(patience); len(seen) < 2 || !hasAll(); {
				require.True(t, time.Now().Before(end), names)
				time.Sleep(time.Second)
				chunks, err := recording.Dump(process, allocate)
				require.NoError(t, err)
				anchor := events.Anchor{EndNanos: uint64(time.Now().UnixNano())}
				pd, _, err := jfr.Decode(chunks, jfr.Options{Options: events.Options{Anchor: anchor}})
				require.NoError(t, err)
				for sampleType, event := range map[string]string{"samples": "ExecutionSample",
					"gc_collections": "GarbageCollection"} {
					assert.Equal(t, summarized(t, chunks, "jdk."+event), observations(pd, sampleType), "as `jfr summary` counts")
				}
				names += strings.Join(pd.Dictionary().StringTable().AsRaw(), "\n")
				assert.False(t, seen[string(chunks[:chunkHeader])], "the same chunk again")
				seen[string(chunks[:chunkHeader])] = true
			}
			last := recording.since
			recording.Again()
			chunks, err := recording.Dump(process, allocate)
			require.NoError(t, err)
			assert.True(t, seen[string(chunks[:chunkHeader])], "what was refused, and what is new")
			assert.Greater(t, recording.since, last)
			// A collector that was killed left its recording. Another one takes its place.
			require.NoError(t, recording.Start(process, &settings, time.Minute))
			require.NoError(t, recording.Stop(process))
			_, err = recording.Dump(process, allocate)
			require.ErrorIs(t, err, ErrEnded)
		})
	}
	t.Cleanup(func() { // those that run in parallel share /tmp
		left, err := filepath.Glob(recordings)
		require.NoError(t, err)
		assert.Subset(t, before, left)
	})
}
