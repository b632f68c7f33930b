// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

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
