// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReports compares reports on a pprof by pprof itself with those on the same profile as OTLP.
func TestReports(t *testing.T) {
	otlp := write(t, "cpu.jsonl", must(t, "convert", "-o", outJSON, goCPU))
	for _, args := range [][]string{
		{"top", "-cum", "-nodecount=20"},
		{"top", "-sample_index=samples"},
		{"top", "-focus=json", "-lines"},
		{"tree", "-nodecount=10"},
		{"peek", "json.appendString"},
		{"pprof", "-comments"},
		{"pprof", "-dot"},
		{"pprof", "-tags"},
		{"pprof", "-svg"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if _, err := exec.LookPath("dot"); err != nil && args[1] == "-svg" {
				t.Skip("Graphviz is not there")
			}
			native := append([]string{"tool", "pprof"}, args[1:]...)
			if args[0] != "pprof" {
				native[2] = "-" + args[0]
				if args[0] == "peek" {
					native[2] += "=" + args[1]
				} else {
					native = append(native[:3], args[1:]...)
				}
			}
			want, err := exec.Command("go", append(native, goCPU)...).Output()
			require.NoError(t, err)
			// The order of the locations differs, and with it that of the nodes.
			if args[1] == "-dot" || args[1] == "-svg" {
				assert.InEpsilon(t, len(want), len(must(t, append(args, otlp)...)), 0.02)
				return
			}
			assert.ElementsMatch(t, rows(string(want)), rows(must(t, append(args, otlp)...)))
		})
	}
	assert.Contains(t, must(t, "list", "main.fib", otlp), "ROUTINE ======================== main.fib")
	assert.Contains(t,
		must(t, "top", "-profile=memory", "-sample_index=alloc_space", write(t, "all.otlp", merged(t, goCPU, goHeap))),
		"Type: alloc_space")
	r := run(t, nil, "top", write(t, "all.otlp", merged(t, goCPU, goHeap)))
	assert.Equal(t, exitOK, r.code)
	assert.Contains(t, r.out, "Type: cpu")
	assert.Contains(t, r.log, "-profile and -type can choose this, too: memory alloc_objects/count")

	assert.Contains(t, must(t, "top", write(t, "all.otlp", merged(t, goHeap, goCPU)), "-sample_index=samples"),
		"Type: samples", "process_cpu is the default, and flags may follow files")
	period := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	samples := write(t, "samples.otlp", merged(t, cpuSamples(t, nil), cpuSamples(t, period)))
	assert.Contains(t, must(t, "top", samples), "Type: samples", "profiles of different periods")

	assert.Contains(t, must(t, "top", layoutData+"async-profiler/4.1.otlp"), "Busy.spin", "two sample types of one name")

	original, err := os.ReadFile(goCPU)
	require.NoError(t, err)
	r = run(t, original, "top", "-")
	assert.Contains(t, r.out, "Total samples = 3.60s", "standard input")
}

// cpuSamples writes a pprof that only counts CPU samples.
func cpuSamples(t *testing.T, period *profile.ValueType) string {
	var b bytes.Buffer
	p := profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}, PeriodType: period,
		Sample: []*profile.Sample{{Value: []int64{1}}}}
	require.NoError(t, p.Write(&b))
	return write(t, "samples.pb.gz", b.String())
}

// rows are the lines of a report, without the percentages that depend on the order of equal rows.
func rows(report string) []string {
	report = regexp.MustCompile(`(?m)^(.*?%) +[\d.]+%( .*%)`).ReplaceAllString(report, "$1$2")
	return strings.Split(report, "\n")
}

func TestDiffBase(t *testing.T) {
	base := write(t, "base.folded", "main;work 10\nmain;other 5\n")
	now := write(t, "now.folded", "main;work 30\nmain;other 5\n")
	out := must(t, "top", "-diff_base="+base, now)
	assert.Regexp(t, `(?m)^ +20 133.33% 133.33% +20 133.33% +work$`, out)
	assert.NotContains(t, out, "other")
	assert.Equal(t, out, must(t, "top", now, "-nodecount=80", "-diff_base", base))
}

// TestFlamegraph opens pprof's web interface on a file that pprof cannot read.
func TestFlamegraph(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), tool, "flamegraph", "-no_browser", write(t, "a.folded", "main;work 10\n"))
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PPROF_TMPDIR="+t.TempDir())
	url := started(t, cmd, `Serving web UI on (http://\S+)`)
	var body []byte
	require.Eventually(t, func() bool { // the line comes just before it listens
		response, err := http.Get(url + "/flamegraph")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err = io.ReadAll(response.Body)
		return err == nil && response.StatusCode == http.StatusOK
	}, 20*time.Second, 20*time.Millisecond)
	assert.Contains(t, string(body), `"work"`)
}

// started starts a command that serves, and returns the part of its log that matches. The command is killed when the
// test ends.
func started(t *testing.T, cmd *exec.Cmd, pattern string) string {
	t.Helper()
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	re := regexp.MustCompile(pattern)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := re.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return m[1]
		}
	}
	t.Fatal("the command ended before it served")
	return ""
}
