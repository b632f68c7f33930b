// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMutatedMessages is a fixed count of what the fuzzer does: bytes of a message changed anywhere. No sample is lost,
// and what is still conformant stays so.
func TestMutatedMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	understood, conformant := 0, 0
	for seed := range uint64(3) {
		for _, original := range [][]byte{marshal(t, host(seed, 8, 20)), marshal(t, processes(seed, 8))} {
			for range 400 {
				wire := append([]byte(nil), original...)
				for range 1 + rnd.IntN(4) {
					wire[rnd.IntN(len(wire))] ^= 1 << rnd.IntN(8)
				}
				pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
				if err != nil {
					continue
				}
				understood++
				samples, isConformant := pd.SampleCount(), profiletest.Check(pd) == nil
				New(Options{Move: byExecutable, Lower: []string{"process.pid"}}).Regroup(pd,
					Group{Identify: nameAll, Admit: admitAll})
				require.Equal(t, samples, pd.SampleCount())
				if isConformant {
					conformant++
					require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()), "%q", pd.Dictionary().StringTable().AsRaw())
				}
			}
		}
	}
	require.Greater(t, understood, 200)
	require.Greater(t, conformant, 20)
}
