// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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
			if release, _ := os.ReadFile(filepath.Join(jdk, "..", "release")); strings.Contains(string(release), `JAVA_VERSION="25`) {
				start += ",jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=10ms,method-trace=Burn::compute"
			}
			command(t, jdk, "java", start, "-cp", folder, "Burn", "400")
			want := summaryOf(t, jdk, file)
			require.Positive(t, want["jdk.ExecutionSample"]+want["jdk.CPUTimeSample"], "%v", want)

			data, err := os.ReadFile(file)
			require.NoError(t, err)
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
