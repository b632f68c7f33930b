// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
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
