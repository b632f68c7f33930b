// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package folded

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The numbers at the end of a line mean what all lines of the text together show.
func TestColumns(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // samples without their attributes and times, leaf first
		err  error
	}{
		"difffolded.pl":           {text: "a;b 31 56\na;c 6 2\na;[unknown] 2 2\n", err: ErrDifference},
		"difffolded.pl, decimals": {text: "a;b 31.0 56.5\na;c 6 2\n", err: ErrDifference},
		"names with numbers": {text: "rails;worker 1 500\nrails;worker 2 700\n",
			want: "500 worker 1;rails, 700 worker 2;rails"},
		"some names with numbers": {text: "rails;worker 1 500\nrails;main 700\n",
			want: "500 worker 1;rails, 700 main;rails"},
		"padded numbers in names": {text: "rails;puma 001 1500000000\nrails;rb 002 1200000000\n",
			want: "1200000000 rb 002;rails, 1500000000 puma 001;rails"},
		"one name with a number": {text: "main 3 12", want: "12 main 3"},
		"large values": {text: "a;puma srv 1 1500000000\na;wait 700000000\na;worker 3 1700000000\n",
			want: "1500000000 puma srv 1;a, 1700000000 worker 3;a, 700000000 wait;a"},
		"times": {text: "a;b 3 1687841528\na;c 4 1687841529\n", want: "3 b;a, 4 c;a"},
		"years apart": {text: "a;b 3 1287841528\na;b 4 1687841529\n",
			want: "1287841528 b 3;a, 1687841529 b 4;a"},
		"a name ends with a semicolon": {text: "a;b 31; 56\na;c 6; 2\n", want: "2 c 6;a, 56 b 31;a"},
		"decimals":                     {text: "a 31.0\nb 6.\nc 2.5\nd 274\n", want: "274 d, 3 c, 31 a, 6 b"},
		"numbers of awk":               {text: "a 2.14748e+09\nb 1e6\n", want: "1000000 b, 2147480000 a"},
		"sums of decimals":             {text: strings.Repeat("a 0.3\nb 0.4\n", 10), want: "3 a, 4 b"},
		"negative decimals":            {text: "a -0.6\na -0.6\n", want: "-1 a"},
		"versions in names":            {text: "python3.11 12\njava 1.8 7\n", want: "12 python3.11, 7 java 1.8"},
		"names of classes":             {text: "#<Class:Cart>;add 3\n# a;b 4\n#\n", want: "3 add;#<Class:Cart>"},
		"annotations": {text: "a_[j];b_[i];w_[k] 2\na;b_[1];w_[k] 1\na_[0];b;w 4\n_[k] 5\n",
			want: "3 w;b;a, 4 w;b;a, 5 _[k]"},
		"a byte order mark": {text: "\xef\xbb\xbfmain;work 12\nmain;idle 8\n", want: "12 work;main, 8 idle;main"},
		"Swift's profiler": {text: "a<10>;b<20> 1795810000000000000\na<10>;b<20> 1795810000010000000\n",
			want: "2 b;a"},
		"Austin, wall": {text: "# austin: 3.6.0\n# interval: 100\n# mode: wall\n\nP1;T0:1;a.py:main:3 1000\n",
			want: "1000000 a.py:main:3;T0:1;P1"},
		"Austin, memory": {text: "# mode: memory\nP1;T1;a.py:main:3 1024\n", want: "1024 a.py:main:3;T1;P1"},
		"Austin, full":   {text: "P1;T1;a.py:main:3 1000,1,-4096\nP1;T1;a.py:f:3 1000,0,0\n", err: ErrMetrics},
	} {
		t.Run(name, func(t *testing.T) {
			pd, stats, err := Decode([]byte(tc.text), Options{})
			require.ErrorIs(t, err, tc.err)
			if tc.err != nil {
				return
			}
			require.NoError(t, profiletest.Check(pd))
			require.Zero(t, stats.Dropped)
			require.Equal(t, tc.want, stacksOf(pd))
		})
	}
}

func TestTypesOfAustin(t *testing.T) {
	for mode, want := range map[string]string{"wall": "wall in nanoseconds", "cpu": "cpu in nanoseconds",
		"memory": "alloc_space in bytes", "other": "samples in count"} {
		text := []byte("# mode: " + mode + "\na;b 3\n")
		pd, _, err := Decode(text, Options{})
		require.NoError(t, err)
		require.Contains(t, profiletest.Render(pd), "profile "+want)
		pd, _, err = Decode(text, Options{SampleType: "own", Unit: "count"})
		require.NoError(t, err)
		require.Contains(t, profiletest.Render(pd), "sample 3\n", "what the sender states is meant")
	}
}

// A number of microseconds that is no number of nanoseconds is dropped.
func TestValuesTooLargeForTheirUnit(t *testing.T) {
	_, stats, err := Decode([]byte("# mode: wall\na 9223372036854775807\nb 1\n"), Options{})
	require.NoError(t, err)
	require.Equal(t, 1, stats.Dropped)
}

// stacksOf lists values and stacks, sorted.
func stacksOf(pd pprofile.Profiles) string {
	sums, stacks := map[pprofile.Sample]int64{}, map[pprofile.Sample]string{}
	for o := range profiletest.Observations(pd) {
		sums[o.Sample] += o.Value
		stacks[o.Sample] = o.Stack()
	}
	var list []string
	for sample, sum := range sums {
		list = append(list, fmt.Sprint(sum, " ", stacks[sample]))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
