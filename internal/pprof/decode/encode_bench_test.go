// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"io"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// BenchmarkEncode writes each input as pprof, and compares that with google/pprof's writer of the same profile.
// Both end in uncompressed bytes: gzip would cost the same for both.
func BenchmarkEncode(b *testing.B) {
	for _, input := range benchInputs(b) {
		pd, _, err := Decode(input.payload, Options{})
		require.NoError(b, err)
		p, err := profile.ParseData(input.payload)
		require.NoError(b, err)
		encoded, _, err := encode.Encode(pd)
		require.NoError(b, err)
		require.Len(b, encoded, 1)
		size := len(encoded[0].Bytes)

		measure(b, input.name+"/impl=peer", size, func() error { return p.WriteUncompressed(io.Discard) })
		measure(b, input.name+"/impl=ours", size, func() error {
			_, _, err := encode.Encode(pd)
			return err
		})
	}
}
