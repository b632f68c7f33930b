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
)

func readCaptured(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "pprof", name))
	require.NoError(t, err)
	return data
}

// hasHugeSamples are the payloads of samples for which the memory of labels is reserved, whatever it has.
var hasHugeSamples = map[string]bool{
	"text of two units": true, "unpacked stack ids": true, "stack ids": true, "no numbers": true, "values": true,
	"empty labels":          true,
	"many types and labels": true,
}

// requireReserved fails the test if Decode took more than it had reserved, or if it reserved far more than it took.
func requireReserved(t testing.TB, name string, peak int64, reserved int) {
	const constant = 8 << 20
	assert.Less(t, int(peak), constant+reserved*3/2, name)
	if !hasHugeSamples[name] {
		assert.Less(t, reserved, constant+5*int(peak), name)
	}
}

// What Decode reserves is what it takes. TestDecodeIsBoundedByItsInput has the worst payloads.
func TestReserved(t *testing.T) {
	payload, reserved := readCaptured(t, "go-compile-nethttp-heap-huge.pb.gz"), 0
	cost := pt.MeasureCost(t, func() {
		_, _, _ = Decode(payload, Options{Meter: &pdatasize.Meter{Reserve: counted(&reserved)}})
	})
	requireReserved(t, "captured", cost.PeakHeapBytes, reserved)
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
