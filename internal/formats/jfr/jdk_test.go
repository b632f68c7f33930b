// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// jdks returns the folders of programs of the JDKs on this machine.
func jdks(t *testing.T) (folders []string) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/jvm/*/bin/javac")
	require.NoError(t, err)
	if inPath, err := exec.LookPath("javac"); err == nil {
		found = append(found, inPath)
	}
	known := map[string]bool{}
	for _, javac := range found {
		if real, err := filepath.EvalSymlinks(javac); err == nil && !known[real] {
			known[real] = true
			folders = append(folders, filepath.Dir(real))
		}
	}
	if len(folders) == 0 {
		profiletest.SkipOutsideCI(t, "there is no JDK: neither javac in PATH nor /usr/lib/jvm/*/bin/javac")
	}
	return folders
}

// Each JDK of this machine records a program. The number of events is that which its own jfr counts.
func TestRecordingsOfThisMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs programs for a second each")
	}
	for _, jdk := range jdks(t) {
		t.Run(filepath.Base(filepath.Dir(jdk)), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			command(t, jdk, "javac", "-d", folder, "testdata/Burn.java")
			file := filepath.Join(folder, "recording.jfr")
			start := "-XX:StartFlightRecording:settings=profile,filename=" + file
			for _, event := range []string{"FileRead", "FileWrite", "SocketRead", "SocketWrite"} {
				start += ",jdk." + event + "#threshold=0ns"
			}
			if release, _ := os.ReadFile(filepath.Join(jdk, "..", "release")); strings.Contains(string(release),
				`JAVA_VERSION="25`) {
				start += ",jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=10ms,method-trace=Burn::compute"
			}
			command(t, jdk, "java", start, "-cp", folder, "Burn", "400")
			want := summaryOf(t, jdk, file)
			require.Positive(t, want["jdk.ExecutionSample"]+want["jdk.CPUTimeSample"], "%v", want)

			data := profiletest.FileBytes(t, file)
			pd, stats, err := Decode(data, Options{})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			assert.Zero(t, stats.Dropped)
			got := observations(pd)
			for profile, number := range map[string]int{
				"samples in count": want["jdk.ExecutionSample"], "cpu in nanoseconds": want["jdk.CPUTimeSample"],
				"calls in count": want["jdk.MethodTrace"], "alloc_sample_objects in count": want["jdk.ObjectAllocationSample"],
				"contentions in count": want["jdk.JavaMonitorEnter"] + want["jdk.ThreadPark"],
			} {
				assert.Equal(t, number, got[profile].number, profile)
			}
			totals := printed(t, jdk, file)
			for profile, field := range map[string]string{
				"file_io_read_size in bytes": "FileRead bytesRead", "file_io_write_size in bytes": "FileWrite bytesWritten",
				"socket_read_size in bytes": "SocketRead bytesRead", "socket_write_size in bytes": "SocketWrite bytesWritten",
				"file_io_read_time in nanoseconds": "FileRead duration", "file_io_write_time in nanoseconds": "FileWrite duration",
				"socket_read_time in nanoseconds":  "SocketRead duration",
				"socket_write_time in nanoseconds": "SocketWrite duration",
				"gc_pause_time in nanoseconds":     "GarbageCollection sumOfPauses", "gc_collections in count": "GarbageCollection",
				"live in count": "OldObjectSample", "live_bytes in bytes": "OldObjectSample objectSize",
			} {
				event, _, _ := strings.Cut(field, " ")
				// The JDK converts its ticks by floating point numbers.
				assert.InDelta(t, totals[field], got[profile].total, totals[event], profile)
			}
			assert.Positive(t, got["live in count"].total)
			assert.Positive(t, got["gc_pause_time in nanoseconds"].total)
			assert.EqualValues(t, 5000, got["socket_read_size in bytes"].total)
			assert.Contains(t, profiletest.Render(pd), "Burn.compute")
			for event, n := range stats.Unread {
				assert.Positive(t, n, event)
				assert.LessOrEqual(t, n, want[event], event)
			}
		})
	}
}

func command(t *testing.T, jdk, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(jdk, name), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// printed returns the number of events of each type that the JDK's own program prints, and the sums of their fields.
func printed(t *testing.T, jdk, file string) map[string]float64 {
	t.Helper()
	var recording struct {
		Recording struct {
			Events []struct {
				Type   string
				Values map[string]any
			}
		}
	}
	const events = "OldObjectSample,FileRead,FileWrite,SocketRead,SocketWrite,GarbageCollection"
	require.NoError(t, json.Unmarshal([]byte(command(t, jdk, "jfr", "print", "--json", "--events", events, file)),
		&recording))
	totals := map[string]float64{}
	for _, e := range recording.Recording.Events {
		event := strings.TrimPrefix(e.Type, "jdk.")
		totals[event]++
		for field, value := range e.Values {
			switch value := value.(type) {
			case float64:
				totals[event+" "+field] += value
			case string: // PT0.0123S
				if duration, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(value, "PT"))); err == nil {
					totals[event+" "+field] += float64(duration)
				}
			}
		}
	}
	return totals
}

// summaryOf returns the number of events of each type that the JDK's own program counts.
func summaryOf(t *testing.T, jdk, file string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(command(t, jdk, "jfr", "summary", file)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			if n, err := strconv.Atoi(fields[1]); err == nil {
				counts[fields[0]] = n
			}
		}
	}
	return counts
}
