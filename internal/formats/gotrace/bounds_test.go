// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

func requireBounded(t *testing.T, data []byte) {
	t.Helper()
	requireBoundedBy(t, data, everything())
}

func requireBoundedBy(t *testing.T, data []byte, options Options) {
	t.Helper()
	var got pprofile.Profiles
	var err error
	// Threads that wait cost the reader a comparison each for each event: at most max_threads of them.
	bound := profiletest.BoundOf(len(data)*4, 96<<20, 10)
	profiletest.RequireReserved(t, bound, 4<<20, func(reserve func(int) error) {
		options.Meter = &size.Meter{Reserve: reserve}
		got, _, err = Decode(data, options)
	})
	if err == nil {
		require.NoError(t, profiletest.Check(got))
	}
}

func TestDecodeIsBounded(t *testing.T) {
	for name, data := range worst.GoTrace.All(512 << 10) {
		t.Run(name, func(t *testing.T) {
			requireBounded(t, data)
			patient := everything()
			patient.MinDuration = time.Hour // pieces wait until the end
			requireBoundedBy(t, data, patient)
		})
	}
}

func TestLimits(t *testing.T) {
	for name, data := range worst.GoTrace.Only("threads", "legacy processors").All(256 << 10) {
		_, _, err := Decode(data, DefaultOptions())
		require.ErrorIs(t, err, events.ErrTooLarge, name)
		require.ErrorIs(t, err, ErrThreads, name)
	}
	o := DefaultOptions()
	o.MaxLegacyBytes = 1000
	_, _, err := Decode(testTrace(t, "go1.21"), o)
	require.ErrorIs(t, err, events.ErrTooLarge)
	require.ErrorIs(t, err, ErrLegacy)
}

func FuzzDecode(f *testing.F) {
	f.Add(testTrace(f, "go1.22"))
	f.Add(testTrace(f, "go1.25"))
	for name, data := range worst.GoTrace.All(1 << 10) {
		if !strings.HasPrefix(name, "threads") {
			f.Add(data)
		}
	}
	f.Fuzz(requireBounded)
}

// A batch of five bytes and a goroutine of seven take 512 bytes in the reader and the decoder. Few bytes hide that
// factor behind the constant of the other tests, so that this one is smaller.
func TestLargeTracesAreBounded(t *testing.T) {
	const largeBytes, constantBytes, factor = 1 << 20, 12 << 20, 128
	for name, data := range worst.GoTrace.Only("goroutines", "batches without events").All(largeBytes) {
		reserved := 0
		bound := profiletest.Bound{HeapBytes: constantBytes + factor*len(data)}
		profiletest.RequireReserved(t, bound, 4<<20, func(reserve func(int) error) {
			options := everything()
			reserved = 0
			options.Meter = &size.Meter{Reserve: func(n int) error {
				reserved += n
				return reserve(n)
			}}
			_, _, _ = Decode(data, options)
		})
		assert.LessOrEqual(t, reserved, bound.HeapBytes, name)
	}
}
