// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The decoder reads what the writer writes, so that hostile recordings are refused only for their fault.
func TestWriter(t *testing.T) {
	pd, stats, err := Decode(worst.SoundJFR(), Options{})
	require.NoError(t, err)
	require.Equal(t, events.Stats{Events: 3}, stats)
	text := profiletest.Render(pd)
	require.Contains(t, text, "sample @1795293131000000500 {thread.id=3, thread.name=\"java\"}\n        Shop.buy :7")
	require.Contains(t, text, "sample 50@1795293131000000150 {thread.id=3, thread.name=\"java\"}\n        Shop.buy :7")
}

// hostile returns recordings of about size bytes, and labels for them.
func hostile(size int) map[string][2][]byte {
	out := map[string][2][]byte{}
	for name, data := range worst.JFR.All(size) {
		out[name] = [2][]byte{data, nil}
	}
	for name, labels := range worst.JFRLabels.All(size) {
		out[name] = [2][]byte{out["spans of a context"][0], labels}
	}
	return out
}

func requireBounded(t *testing.T, data, labels []byte) error {
	t.Helper()
	return profiletest.RequireDecodeBounded(t, len(data)+len(labels), 72,
		func(reserve func(int) error) (pprofile.Profiles, error) {
			pd, _, err := Decode(data, Options{Labels: labels, Options: events.Options{Meter: &size.Meter{Reserve: reserve}}})
			return pd, err
		})
}

// wantErrors are the errors for hostile recordings that are refused; the others are read.
var wantErrors = map[string]error{
	"symbols": errCount, "stacks": errCount, "frames": errCount, "characters": errCount, "metadata of 1": errCount,
	"metadata of 9": errCount, "metadata of 10": errCount, "an event beyond its end": errCount,
	"objects without fields": errCount,
	"pools in a circle":      errPools, "pools within pools": errCount, "long names": errNames, "methods with one long name": errNames,
}

func TestDecodeIsBounded(t *testing.T) {
	for name, of := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			if err := requireBounded(t, of[0], of[1]); wantErrors[name] != nil {
				require.ErrorIs(t, err, wantErrors[name])
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"nativemem", "new_spancontext", "wall_tick_sample"} {
		data, options := recording(f, name)
		f.Add(data, options.Labels)
	}
	for _, of := range hostile(4 << 10) {
		f.Add(of[0], of[1])
	}
	f.Fuzz(func(t *testing.T, data, labels []byte) {
		_ = requireBounded(t, data, labels)
	})
}

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
