// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

func readCaptured(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "pprof", name))
	require.NoError(t, err)
	return data
}

// hasHugeSamples are the payloads of samples for which the memory of labels is reserved, whatever it has.
var hasHugeSamples = map[string]bool{
	"text of two units": true, "unpacked stack ids": true, "stack ids": true, "no numbers": true, "values": true, "empty labels": true,
	"many types and labels": true,
}

// What Decode reserves is what it takes, whatever the payload is made of, and it reserves it before.
func TestReserved(t *testing.T) {
	pt.SkipLarge(t)
	const size, constant = 2 << 20, 16 << 20
	payloads := map[string][]byte{"captured": readCaptured(t, "go-compile-nethttp-heap-huge.pb.gz")}
	for name, payload := range worst.PProf.All(size) {
		payloads[name] = payload
	}
	for name, payload := range payloads {
		reserved := 0
		cost := pt.MeasureCost(t, func() {
			reserved = 0
			_, _, _ = Decode(payload, Options{Meter: &pdatasize.Meter{Reserve: func(n int) error {
				reserved += n
				return nil
			}}})
		})
		t.Logf("%-40s %4.1f MB of %4.1f reserved, %.0f %%", name, float64(cost.PeakHeapBytes)/1e6, float64(reserved)/1e6, 100*float64(cost.PeakHeapBytes)/float64(max(1, reserved)))
		assert.Less(t, int(cost.PeakHeapBytes), constant+reserved*3/2, name)
		if !hasHugeSamples[name] {
			assert.Less(t, reserved, constant+5*int(cost.PeakHeapBytes), name)
		}
	}
}

// A refusal ends Decode wherever it comes.
func TestRefusedReserve(t *testing.T) {
	payload := readCaptured(t, "go-heap.pb.gz")
	errFull := errors.New("full")
	for allowed := 0; ; allowed++ {
		calls := 0
		_, _, err := Decode(payload, Options{Meter: &pdatasize.Meter{Reserve: func(int) error {
			if calls++; calls > allowed {
				return errFull
			}
			return nil
		}}})
		if calls <= allowed {
			require.NoError(t, err)
			assert.GreaterOrEqual(t, allowed, 3, "the plain bytes, the tables, the profiles")
			return
		}
		require.ErrorIs(t, err, errFull)
	}
}

// Decode ends when the context does, before it has built anything.
func TestDecodeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Decode(readCaptured(t, "go-heap.pb.gz"), Options{Meter: &pdatasize.Meter{Context: ctx}})
	require.ErrorIs(t, err, context.Canceled)
}
