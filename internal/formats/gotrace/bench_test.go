// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/trace"
)

func readAll(data []byte) error {
	reader, err := trace.NewReader(bytes.NewReader(data))
	for err == nil {
		_, err = reader.ReadEvent()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// BenchmarkDecode compares Decode with the reader alone, on a small trace.
func BenchmarkDecode(b *testing.B) {
	data := testTrace(b, "go1.26")
	for name, options := range map[string]Options{"default": DefaultOptions(), "everything": everything()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			n := 0
			for b.Loop() {
				_, stats, err := Decode(data, options)
				require.NoError(b, err)
				n = stats.Events
			}
			b.ReportMetric(float64(n), "events/op")
		})
	}
	b.Run("reader alone", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			require.NoError(b, readAll(data))
		}
	})
}
