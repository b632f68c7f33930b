// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// A recording takes about as long if the fields of its entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
		at := func(number uint64) int { return profiletest.KeyIndex(number, n) }
		w := worst.NewJFR()
		pool := func(class string, entry func(id int, k [4]uint64)) {
			w.Pool(class, n)
			for i := range n {
				entry(i+1, keys(uint64(i+1)))
			}
		}
		pool("jdk.types.Symbol", func(id int, _ [4]uint64) { w.Entry(id, fmt.Sprint("text", id)) })
		pool("java.lang.Class", func(id int, k [4]uint64) { w.Entry(id, at(k[0])) })
		pool("jdk.types.Method", func(id int, k [4]uint64) { w.Entry(id, at(k[0]), at(k[1])) })
		pool("jdk.types.StackTrace", func(id int, k [4]uint64) { w.Entry(id, 0, 1, at(k[2]), int(k[3]&math.MaxInt16)) })
		pool("java.lang.Thread", func(id int, k [4]uint64) {
			w.Entry(id, "os", at(k[0]), fmt.Sprint("thread", at(k[1])), at(k[2]))
		})
		for i := range uint64(n) {
			k := keys(i + 1)
			w.Event("jdk.ExecutionSample", i, uint64(at(k[0])), uint64(at(k[1])), 0, uint64(at(k[2])))
		}
		data := w.Bytes()
		return func() {
			_, stats, err := Decode(data, Options{})
			require.NoError(t, err)
			require.Equal(t, n, stats.Events)
		}
	})
}
