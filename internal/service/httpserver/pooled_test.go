// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Decoders and buffers of bodies are used again and again: each body is read as the first one, and nothing of it is
// kept.
func TestPooledForgets(t *testing.T) {
	// Encoders with little memory of their own.
	zstdWriter, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<16))
	require.NoError(t, err)
	lz4Writer := lz4.NewWriter(nil)
	require.NoError(t, lz4Writer.Apply(lz4.BlockSizeOption(lz4.Block64Kb)))
	for _, encoding := range []string{"", "zstd", "lz4", "snappy"} {
		t.Run("encoding "+encoding, func(t *testing.T) {
			bodies := budget.New(256 * mib)
			const buffers = 1 // those that the budget keeps, and the decoder's window
			profiletest.RequireForgets(t, buffers, func(text string) string {
				wire := []byte(text)
				switch encoding {
				case "zstd":
					wire = zstdWriter.EncodeAll(wire, nil)
				case "lz4":
					var out bytes.Buffer
					lz4Writer.Reset(&out)
					_, err := lz4Writer.Write(wire)
					require.NoError(t, err)
					require.NoError(t, lz4Writer.Close())
					wire = out.Bytes()
				default:
					wire = encode(t, encoding, wire)
				}
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(wire))
				r.Header.Set("Content-Encoding", encoding)
				reservation := bodies.Begin()
				defer reservation.Release()
				body, err := OpenBody(httptest.NewRecorder(), r,
					BodyOptions{Reservation: reservation, LimitBytes: 32 * mib, Encodings: Encodings})
				require.NoError(t, err)
				data, err := body.ReadAll()
				require.NoError(t, err)
				require.True(t, string(data) == text)
				return ""
			})
			require.Zero(t, bodies.HeldBytes())
		})
	}
}
