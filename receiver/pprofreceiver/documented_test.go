// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// documented is an example of a row of a table in docs/formats.md.
type documented struct {
	query, body string
	// says is in what arrives, or in the answer if the body is refused.
	says    string
	refused bool
}

// Each row of the tables of texts in docs/formats.md has examples here, which are read or refused as it states.
func TestDocumentedTexts(t *testing.T) {
	const frame = "\t            1254 main+0x4 (/srv/shop)\n"
	for header, rows := range map[string]map[string][]documented{
		"| printed | read as |": {
			"no call chain (`perf record` without `-g`, or `perf script -G`)": {
				{body: "            shop 12 99.000001:     250000 cpu-clock:      7f3c1c0a1234 main+0x4 (/srv/shop)\n",
					says: "sample 250000@"},
				{body: "            shop 12 99.000001:     250000 cpu-clock:      7f3c1c0a1234 main+0x4 (/srv/shop)\n",
					says: "main at 0x7f3c1c0a1234 in [/srv/shop]"},
			},
			"no `time`": {{body: "shop 12     250000 cpu-clock: \n" + frame,
				says: "duration 1 ns\n      period 0 cpu in nanoseconds\n      attributes {profile.clock.guess=\"arrival\"}\n      sample 250000 {"}},
			"no `event`": {{body: "shop 12 99.000001:     250000 \n" + frame, says: "profile events in count"},
				{body: "shop 12 99.000001: \n" + frame, says: "profile samples in count"}},
			"no `tid`, `comm`, `cpu` or `dso`": {
				{body: "99.000001:     250000 cpu-clock: \n\t            1254 main+0x4\n", says: "main at 0x1254\n"},
				{body: "shop 99.000001:     250000 cpu-clock: \n" + frame, says: `{thread.name="shop"}`},
			},
			"no `ip`": {{body: "            shop 12 99.000001:     250000 cpu-clock: \n", says: "sample 250000@"}},
			"`-F +srcline`": {{body: "shop 12 99.000001:     250000 cpu-clock: \n" + frame + "  shop.c:7\n",
				says: "main shop.c:7 at 0x1254"}},
			"`--show-mmap-events` and other records, `--header`, registers, instructions, branches, addresses of data": {
				{
					body: "# ========\n# captured on: now\n# ========\n#\nshop 12 0.000000: PERF_RECORD_MMAP -1/0: [0xff(0x1) @ 0]: x /srv/shop\nshop 12 99.000001:     250000 cpu-clock:     7f3c1c0a5678\n" +
						frame + " ABI:2    AX:0x0\nshop 12 99.000002:     250000 cpu-clock: \n" + frame + " insn: 48 01 c8\n",
					says: "main at 0x1254 in [/srv/shop]",
				},
			},
			"nothing but `ip`": {
				{query: "?format=perf_script", body: "             1254\n             1254\n", says: "sample 2\n        at 0x1254"},
				{body: "             1254\n             1254\n", says: "not a pprof", refused: true},
			},
		},
		"| lines | read as |": {
			"`main;work 12`, `main;work 12.5`": {{body: "main;work 12\nmain;work 12.5\nmain;work 0.25\n",
				says: "sample 25\n        work\n        main"}},
			"`main;work 3 1687841528`": {{body: "main;work 3 1687841528\n", says: "sample 3@1687841528000000000\n        work"}},
			"`rails;worker 3 1200` on some lines only, or on several after the same stack": {
				{body: "rails;worker 3 1200\nrails;main 7\n", says: "sample 1200\n        \"worker 3\""},
				{body: "rails;worker 3 1200\nrails;worker 4 1300\n", says: "sample 1200\n        \"worker 3\""},
			},
			"`main<7f1>;work<7f2> 1687841528000000000` on all lines, as Swift Profile Recorder writes them": {
				{body: "main<7f1>;work<7f2> 1687841528000000000\nmain<7f1>;work<7f2> 1687841529000000000\n",
					says: "sample 1@1687841528000000000 1@1687841529000000000\n        work"}},
			"`main;work 31 56` on all lines": {
				{body: "main;work 31 56\nmain;idle 2 5\n", says: "difffolded.pl", refused: true},
				{body: "main;worker 3; 1200\nmain;worker 4; 7\n", says: "sample 1200\n        \"worker 3\""},
			},
			"`main_[j];write_[k] 3`, as async-profiler and stackcollapse-perf.pl annotate frames": {
				{body: "main_[j];write_[k] 3\n", says: "sample 3\n        write {profile.frame.type=\"kernel\"}\n        main\n"},
			},
			"`#<Class:Cart>;add 3`": {{body: "#<Class:Cart>;add 3\n# comment;x 4\n",
				says: "sample 3\n        add\n        \"#<Class:Cart>\""}},
			"a comment `# mode: wall`, `cpu` or `memory`, as Austin writes it": {
				{body: "# mode: wall\nP1;T1;a.py:f:3 100\n", says: "profile wall in nanoseconds"},
				{body: "# mode: cpu\nP1;a.py:f:3 100\n", says: "sample 100000"},
				{body: "# mode: memory\nP1;a.py:f:3 100\n", says: "profile alloc_space in bytes"},
				{query: "?sample_type=own/count", body: "# mode: wall\nP1;a.py:f:3 100\n", says: "profile own in count"},
			},
			"`main;work 100,0,-4096`, Austin's full metrics": {{body: "main;work 100,0,-4096\nmain;work 100,1,0\n",
				says: "Austin's time, idle state and memory", refused: true}},
			"a byte order mark": {
				{body: "\ufeffmain;work 12\n", says: "        main\n"},
				{body: "\xff\xfem\x00;\x00a\x00 \x001\x00", says: "UTF-16", refused: true},
			},
		},
	} {
		withExamples := map[string]bool{}
		for row := range rows {
			withExamples[strings.Trim(row, "`")] = true
		}
		for row := range profiletest.ReadmeTable(t, "docs/formats.md", header) {
			assert.True(t, withExamples[row], "a row without an example: %s", row)
			delete(withExamples, row)
		}
		assert.Empty(t, withExamples, "examples without a row")
		for row, examples := range rows {
			for i, example := range examples {
				t.Run(fmt.Sprintf("%s %d", row, i), func(t *testing.T) { requireDocumented(t, example) })
			}
		}
	}
}

func requireDocumented(t *testing.T, example documented) {
	t.Helper()
	f := startFixture(t, serverOnly)
	code, _, answer := send(t, f.profilesURL()+example.query, []byte(example.body))
	if example.refused {
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnsupportedMediaType}, code)
		require.Contains(t, answer.Error, example.says)
		return
	}
	require.Equal(t, http.StatusNoContent, code, "%v", answer)
	require.Contains(t, profiletest.Render(f.Await(1)[0]), example.says)
}
