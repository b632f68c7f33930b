// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The peak of the heap is at most encodeConstant + encodeFactor × the size of the message as protobuf.
// It is three times maxExpansion, since the buffer of the pprof grows by doubling and is then copied.
const (
	encodeConstant = 16 << 20
	encodeFactor   = 176
)

func encodeMeasured(t testing.TB, pd pprofile.Profiles) (encoded []Payload, stats Stats, err error) {
	size := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd)
	pt.RequireCost(t, pt.BoundOf(size, encodeConstant, encodeFactor), func() { encoded, stats, err = Encode(pd) })
	total := 0
	for _, e := range encoded {
		total += len(e.Bytes)
	}
	assert.LessOrEqual(t, total, minBytes+maxExpansion*size)
	return encoded, stats, err
}

func TestEncodeIsBoundedByItsInput(t *testing.T) {
	pt.SkipLarge(t)
	dropped := 0
	for name, wire := range worst.Profiles.All(128 << 10) {
		t.Run(name, func(t *testing.T) {
			pd := pt.Unmarshal(t, wire)
			encoded, stats, err := encodeMeasured(t, pd)
			require.NoError(t, err)
			require.NotEmpty(t, encoded, "what fits is encoded")
			dropped += min(1, stats.Dropped)
		})
	}
	assert.Equal(t, 12, dropped, "messages with samples that do not fit")
}

// Encode takes about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	pt.RequireCorrelatedKeys(t, func(n int, keys pt.Keys) func() {
		pd := pt.KeyedProfiles(n, keys)
		return func() {
			_, stats, err := Encode(pd)
			require.NoError(t, err)
			require.Zero(t, stats.Dropped)
		}
	})
}
