// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hasHugeSamples are the payloads of samples for which the memory of labels is reserved, whatever it has.
var hasHugeSamples = map[string]bool{
	"text of two units": true, "unpacked stack ids": true, "stack ids": true, "no numbers": true, "values": true,
	"empty labels":          true,
	"many types and labels": true,
}

// requireReserved fails the test if Decode took more than it had reserved, or if it reserved far more than it took.
// On a busy machine the peak of the heap has garbage in it, or is not seen: the best of three measurements counts.
func requireReserved(t testing.TB, name string, measure func() (peak int64, reserved int)) {
	t.Helper()
	const constant = 16 << 20
	var peak int64
	var reserved int
	for range 3 {
		// The results of the last payload would be collected while this one is measured. The second collection takes
		// pooled workers, whose tables would serve again.
		runtime.GC()
		runtime.GC()
		peak, reserved = measure()
		if int(peak) < constant+reserved*3/2 && (hasHugeSamples[name] || reserved < constant+5*int(peak)) {
			return
		}
	}
	t.Errorf("%s: the heap grew by %d bytes, and %d were reserved", name, peak, reserved)
}

// What Decode reserves is what it takes. TestDecodeIsBoundedByItsInput has the worst payloads.
func TestReserved(t *testing.T) {
	payload := captured(t)["go-compile-nethttp-heap-huge.pb.gz"]
	requireReserved(t, "captured", func() (peak int64, reserved int) {
		cost := pt.RequireCost(t, pt.Bound{}, func() {
			_, _, _ = Decode(payload, Options{Meter: &pdatasize.Meter{Reserve: counted(&reserved)}})
		})
		return cost.PeakHeapBytes, reserved
	})
}

// counted adds up what is reserved.
func counted(reserved *int) func(int) error {
	return func(n int) error {
		*reserved += n
		return nil
	}
}

// A refusal ends Decode wherever it comes.
func TestRefusedReserve(t *testing.T) {
	payload := captured(t)["go-heap.pb.gz"]
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
	_, _, err := Decode(captured(t)["go-heap.pb.gz"], Options{Meter: &pdatasize.Meter{Context: ctx}})
	require.ErrorIs(t, err, context.Canceled)
}
