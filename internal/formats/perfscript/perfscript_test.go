// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

var guess = events.Anchor{EndNanos: 1795297434_000000_000, Guess: "arrival"}

// The output of perf 6.1 for a program with two threads, one of which has a space in its name.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/burn.perf.txt")
	require.NoError(t, err)
	pd, stats, err := Decode(data, events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Zero(t, stats.Dropped)
	profiletest.Golden(t, "testdata/burn.txt", profiletest.Render(pd))
}

func TestLines(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"pid and tid, cpu":         {"my prog 12/14 [003] 99.000001: 250000 cpu-clock:u: \n\tffff sym+0x1 (/bin/x)\n", "sample 250000@1795297434000000000 {cpu.logical_number=3, thread.id=14, thread.name=\"my prog\"}\n        sym at 0xffff in [/bin/x"},
		"the process":              {"sh 12/12 9.5: 1 cycles:\n\t1 a (b)\n", "resource {process.executable.name=\"sh\", process.pid=12}"},
		"tid alone":                {"sh 14 9.5: 1 cycles:\n\t1 a (b)\n", "resource {}"},
		"without a period":         {"sh 14 9.5: page-faults:\n\t1 a (b)\n", "profile page-faults in count"},
		"a clock without a period": {"sh 14 9.5: cpu-clock:\n\t1 a (b)\n", "profile cpu-clock in count"},
		"a clock":                  {"sh 14 9.5: 7 task-clock:ppp:\n\t1 a (b)\n", "profile cpu in nanoseconds"},
		"a tracepoint":             {"sh 14 9.5: sched:sched_switch: prev_comm=sh prev_pid=1\n\t1 a (b)\n", "profile sched:sched_switch in count"},
		"scheduler":                {"sh 14 9.5: 5000 sched:sched_stat_iowait: comm=sh delay=5000 [ns]\n\t1 a (b)\n", "sample 5000@1795297434000000000 {thread.id=14, thread.name=\"sh\", thread.state=\"iowait\"}"},
		"injected":                 {"sh 14 9.5: 5000 sched:sched_switch: x\n\t1 a (b)\n", "profile off_cpu in nanoseconds"},
		"inlined":                  {"sh 14 9.5: 1 cycles:\n\t10 in1 (inlined)\n\t10 in2 (inlined)\n\t10 out+0x3 (/bin/x)\n\t20 main (/bin/x)\n", "in1; in2; out at 0x10"},
		"kernel, unknown":          {"sh 14 9.5: 1 cycles:k:\n\tffffffff81 do_idle+0x1 ([kernel.kallsyms])\n\t7f00 [unknown] ([unknown])\n", "do_idle at 0xffffffff81 in [[kernel.kallsyms]"},
		"C++":                      {"sh 14 9.5: 1 cycles:\n\t10 std::map<int, (anonymous namespace)::x>::at(int)+0x3 (/bin/x)\n", "std::map<int, (anonymous namespace)::x>::at(int)"},
		"source lines":             {"sh 14 9.5: 1 cycles:\n\t10 a+0x3 (/bin/x)\n  file.c:12\n\t20 main (/bin/x)\n\n", "main at 0x20"},
		"no empty line":            {"sh 14 9.5: 1 cycles:\n\t10 a (x)\nsh 14 9.6: 1 cycles:\n\t10 a (x)\n", "sample 1@1795297433900000000 1@1795297434000000000"},
		"a reference time":         {"# reference time: 2024-05-06 07:08:09.000000 = 1714979289.000000 (TOD) = 4.500000000 (monotonic)\nsh 14 9.5: 1 cycles:\n\t10 a (x)\n", "1@1714979294000000000"},
		"a wall clock":             {"sh 14 1714979289.25: 1 cycles:\n\t10 a (x)\n", "1@1714979289250000000"},
		"a comm like a time":       {"a 1 2.5: b 12/14 9.5: 1 cycles:\n\t10 a (x)\n", "thread.name=\"a 1 2.5: b\""},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode([]byte(tc.text), events.Options{Anchor: guess})
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			require.Zero(t, stats.Dropped)
			assert.Contains(t, profiletest.Render(pd), tc.want)
		})
	}
	_, _, err := Decode([]byte("hello\n\tworld\n"), events.Options{})
	require.ErrorIs(t, err, ErrNotPerf)
	_, stats, err := Decode([]byte("nonsense\n\nsh 14 9.5: 1 cycles:\n\n"), events.Options{Anchor: guess})
	require.NoError(t, err)
	require.Equal(t, events.Stats{Events: 1, Dropped: 1, GuessedClock: true}, stats)
}

// The real perf, if it is installed and allowed to record.
func TestLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.data")
	if out, err := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", file, "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").CombinedOutput(); err != nil {
		t.Skipf("perf cannot record here: %v %s", err, out)
	}
	out, err := exec.Command("perf", "script", "-F", "+pid", "-i", file).Output()
	require.NoError(t, err)
	pd, stats, err := Decode(out, events.Options{Anchor: guess})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Zero(t, stats.Dropped)
	require.Equal(t, strings.Count(string(out), "cpu-clock:"), stats.Events)
	require.Contains(t, profiletest.Render(pd), "profile cpu in nanoseconds")
	require.Contains(t, profiletest.Render(pd), `process.executable.name="sh"`)
}

func requireBounded(t *testing.T, data []byte) {
	t.Helper()
	var got pprofile.Profiles
	var err error
	cost := profiletest.MeasureReserved(t, 4<<20, func(reserve func(int) error) {
		got, _, err = Decode(data, events.Options{Anchor: guess, Meter: &size.Meter{Reserve: reserve}})
	})
	profiletest.RequireBounded(t, cost, len(data), 8<<20, 32)
	if err == nil {
		require.NoError(t, profiletest.Check(got))
	}
}

func TestDecodeIsBounded(t *testing.T) {
	for name, data := range worst.Perf.All(1 << 20) {
		t.Run(name, func(t *testing.T) { requireBounded(t, data) })
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range worst.Perf.All(512) {
		f.Add(data)
	}
	f.Add([]byte("my prog 12/14 [003] 99.000001: 250000 cpu-clock:u: \n\tffff sym+0x1 (/bin/x)\n\t10 in1 (inlined)\n\t10 out (/x)\n"))
	f.Fuzz(requireBounded)
}
