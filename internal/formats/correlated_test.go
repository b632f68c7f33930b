// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The formats that are text take about as long if the fields of their entries are correlated as if they are random. jfr
// has a test of its own; all intern by the same tables.
func TestCorrelatedKeys(t *testing.T) {
	for format, write := range map[formats.Format]func(text *bytes.Buffer, n int, keys profiletest.Keys){
		formats.Folded: func(text *bytes.Buffer, n int, keys profiletest.Keys) {
			for i := range uint64(n) {
				k := at(keys(i+1), n)
				fmt.Fprintf(text, "f%d;g%d 1 number=%d,text=%d\n", k[0], k[1], k[2], k[3])
			}
		},
		formats.PerfScript: func(text *bytes.Buffer, n int, keys profiletest.Keys) {
			for i := range uint64(n) {
				k := at(keys(i+1), n)
				fmt.Fprintf(text, "c%d 1/%d [%03d] %d.5: 1 cycles:\n", k[0], k[1], k[2]%64, i+1)
				fmt.Fprintf(text, "\t%x f%d (m%d)\n\t%x f%d (m%d)\n\n", k[1], k[2], k[0], k[2], k[3], k[1])
			}
		},
		formats.CPUProfile: func(text *bytes.Buffer, n int, keys profiletest.Keys) {
			fmt.Fprint(text, "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}")
			for i := range uint64(n) {
				k := at(keys(i+1), n)
				fmt.Fprintf(text, ",\n{\"id\":%d,\"parent\":1,\"callFrame\":{\"functionName\":\"f%d\",\"url\":\"u%d\",", i+2, k[0],
					k[1])
				fmt.Fprintf(text, "\"lineNumber\":%d,\"columnNumber\":%d}}", k[2], k[3])
			}
			fmt.Fprint(text, "],\"startTime\":1,\"endTime\":100000000,\"samples\":[2")
			for i := range n - 1 {
				fmt.Fprint(text, ",", i+3)
			}
			fmt.Fprint(text, "],\"timeDeltas\":[1")
			for range n - 1 {
				fmt.Fprint(text, ",1")
			}
			fmt.Fprint(text, "]}")
		},
	} {
		t.Run(string(format), func(t *testing.T) {
			profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
				var text bytes.Buffer
				write(&text, n, keys)
				return func() {
					_, stats, err := formats.Decode(text.Bytes(), format, formats.Options{})
					require.NoError(t, err)
					require.Equal(t, n, stats.Events)
				}
			})
		})
	}
}

func at(numbers [4]uint64, n int) (indices [4]int) {
	for i, number := range numbers {
		indices[i] = profiletest.KeyIndex(number, n)
	}
	return indices
}
