// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/perfscript"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// scripts are options of perf script, by recording: with and without call chains, and with everything else that perf
// can record of a clock.
var scripts = map[string][]string{
	"chains": {
		"", "-F +pid", "-F +srcline", "-F +srcline --full-source-path", "-F +srccode", "-F +misc", "-F +insn", "-F +insnlen",
		"-F -dso", "-F -symoff",
		"-F -symoff,-dso", "-F -symoff,-sym", "-F -comm", "-F -tid", "-F -tid,-comm", "-F -time", "-F -time,-period",
		"-F -time,-comm", "-F -event",
		"-F -period", "-F -time,-event", "-F comm,pid,event,ip,sym,dso", "-F comm,ip,sym", "-F ip,sym", "-F ip",
		"-F ip,sym,dso", "-F time,event,ip",
		"-F period,event,ip,sym", "-F sym,ip,event,time,comm", "-F -ip,-sym,-dso,-symoff", "-G", "-G -F +srcline", "-L",
		"--ns", "--reltime", "--header",
		"--header -I", "--show-task-events", "--show-mmap-events",
		"--show-mmap-events --show-task-events --show-namespace-events", "--inline", "--show-kernel-path",
	},
	"addresses": {
		"", "-F +pid", "-F +srcline", "-F +srccode", "-F +misc", "-F +insn", "-F -dso", "-F -symoff", "-F -symoff,-dso",
		"-F -symoff,-sym", "-F -comm", "-F -tid",
		"-F -time", "-F -time,-period", "-F -event", "-F -time,-event", "-F comm,ip,sym", "-F ip,sym", "-F ip,sym,dso",
		"-F period,event,ip,sym",
		"-F comm,tid,event,ip,sym", "-L", "--ns", "--header", "--show-task-events", "--show-mmap-events",
		"-F -ip,-sym,-dso,-symoff",
	},
	"everything": {
		"", "-G", "-F +addr", "-F +addr -G", "-F +addr,-sym,-symoff -G", "-F +weight", "-F +weight -G", "-F +iregs",
		"-F +iregs -G", "-F +phys_addr",
		"-F +phys_addr -G", "-F +tod", "-F +tod,-time", "-F +cpu", "-F +cpu,+pid", "-F +cpu,-tid", "-L -F +cpu",
		"-F +addr,+weight,+iregs,+phys_addr,+misc,+tod,+insn -G",
		"-F +addr,+weight,+iregs,+phys_addr,+misc,+tod,+insn", "--show-switch-events", "--show-switch-events -F -time -G",
		"-F +addr,+srcline -G",
	},
}

// How the program is recorded.
var records = map[string]string{
	"chains":     "-g",
	"addresses":  "",
	"everything": "-g -d --phys-data -W --intr-regs=sp,ip -k mono --switch-events --sample-cpu",
}

// result is what samples add up to: all of them, and those that have a function as their leaf. Functions without a name
// are not in it.
type result struct {
	samples, periods         int64
	leafSamples, leafPeriods map[string]int64
}

// The samples and leaves of one program, recorded by the real perf and printed under every set of options, are those
// that perf report finds. The program's name is a hexadecimal number.
func TestScriptsOfPerf(t *testing.T) {
	if testing.Short() {
		t.Skip("it records programs")
	}
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("perf is not installed")
	}
	folder := t.TempDir()
	program := filepath.Join(folder, "dd")
	build := exec.Command("go", "build", "-o", program, "./testdata/burn")
	build.Env = append(build.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, options := range records {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(folder, name+".data")
			record(t, append(strings.Fields(options), "-o", file, "--", program))
			want := report(t, file)
			require.Greater(t, want.leafSamples["main.(*worker).mix"], int64(20))
			for _, script := range scripts[name] {
				t.Run(script, func(t *testing.T) {
					t.Parallel()
					requireScript(t, file, script, want)
				})
			}
		})
	}
}

// record runs perf record. It skips the test only if perf may not record here.
func record(t *testing.T, arguments []string) {
	t.Helper()
	arguments = append([]string{"record", "-q", "-e", "cpu-clock:u", "-F", "999"}, arguments...)
	out, err := exec.Command("perf", arguments...).CombinedOutput()
	if err != nil && regexp.MustCompile(`(?i)permission|not permitted|perf_event_paranoid|not supported|Unknown option`).
		Match(out) {
		t.Skipf("perf cannot record this here: %v: %s", err, out)
	}
	require.NoError(t, err, "%s", out)
}

// report returns what perf report prints of a recording.
func report(t *testing.T, file string) result {
	t.Helper()
	out, err := exec.Command("perf", "report", "-i", file, "--stdio", "--no-children", "-g", "none", "-F",
		"sample,period,sym", "-t", "|").Output()
	require.NoError(t, err)
	r := result{leafSamples: map[string]int64{}, leafPeriods: map[string]int64{}}
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(line, "|", 3)
		if strings.HasPrefix(line, "#") || len(fields) < 3 {
			continue
		}
		samples, err := strconv.ParseInt(strings.TrimSpace(fields[0]), 10, 64)
		require.NoError(t, err)
		period, err := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64)
		require.NoError(t, err)
		r.samples += samples
		r.periods += period
		if _, symbol, _ := strings.Cut(strings.TrimSpace(fields[2]), "] "); !strings.HasPrefix(symbol, "0x") {
			r.leafSamples[symbol] += samples
			r.leafPeriods[symbol] += period
		}
	}
	return r
}

// fieldsOf returns the fields that perf script prints of a clock under a set of options.
func fieldsOf(script string) map[string]bool {
	fields := map[string]bool{}
	for _, field := range []string{"comm", "tid", "time", "period", "event", "ip", "sym", "symoff", "dso"} {
		fields[field] = true
	}
	for option := range strings.SplitSeq(script, "-F ") {
		list, _, _ := strings.Cut(option, " ")
		if option == script || list == "" {
			continue
		}
		if !strings.ContainsAny(list, "+-") {
			clear(fields)
		}
		for field := range strings.SplitSeq(list, ",") {
			fields[strings.TrimLeft(field, "+-")] = !strings.HasPrefix(field, "-")
		}
	}
	return fields
}

func requireScript(t *testing.T, file, script string, want result) {
	t.Helper()
	options := append([]string{"script", "-i", file}, strings.Fields(script)...)
	if !strings.Contains(script, "--inline") {
		options = append(options, "--no-inline") // perf report names functions after what they are inlined into
	}
	text, err := exec.Command("perf", options...).Output()
	require.NoError(t, err)
	fields := fieldsOf(script)
	if fields["sym"] || fields["event"] { // addresses alone are in other texts, too
		assert.Equal(t, formats.PerfScript, formats.Sniff(text))
	}
	pd, stats, err := perfscript.Decode(text,
		events.Options{Anchor: events.Anchor{EndNanos: 1795297434e9, Guess: "arrival"}})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Zero(t, stats.Dropped)
	require.EqualValues(t, want.samples, stats.Events)
	wantKind, wantSum, wantLeaves := "samples/count", want.samples, want.leafSamples
	switch {
	case fields["event"] && fields["period"]:
		wantKind, wantSum, wantLeaves = "cpu/nanoseconds", want.periods, want.leafPeriods
	case fields["event"]:
		wantKind = "cpu-clock/count"
	case fields["period"]:
		wantKind, wantSum, wantLeaves = "events/count", want.periods, want.leafPeriods
	}
	kind, sum, leaves := sums(pd)
	assert.Equal(t, wantKind, kind)
	assert.Equal(t, wantSum, sum)
	if fields["ip"] && fields["sym"] && !strings.Contains(script, "--inline") {
		assert.Equal(t, wantLeaves, leaves)
	}
	if fields["comm"] {
		assert.True(t, strings.Contains(profiletest.Render(pd), `thread.name="dd"`), "the command")
	}
}

// sums returns the type of the samples, and the sums of their values: of all of them, and by the function that is their
// leaf.
func sums(pd pprofile.Profiles) (kind string, sum int64, leaves map[string]int64) {
	d := pd.Dictionary()
	leaves = map[string]int64{}
	for o := range profiletest.Observations(pd) {
		kind = o.SampleType + "/" + o.Unit
		sum += o.Value
		stack := d.StackTable().At(int(o.Sample.StackIndex())).LocationIndices()
		if stack.Len() > 0 && d.LocationTable().At(int(stack.At(0))).Lines().Len() > 0 {
			leaves[o.Functions[0]] += o.Value
		}
	}
	return kind, sum, leaves
}
