// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// theSendersOwn are faults in a message's content, not in its layout. They pass, since only the sender could correct
// them.
var theSendersOwn = []string{
	"is not below memory_limit", "below 0", "outside the profile's time", "_id: is zero", "original_payload",
}

func requireConformantLayout(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	err := profiletest.Check(pd, profiletest.AllowRepeatedSamples())
	if err == nil {
		return
	}
	faults := err.(interface{ Unwrap() []error }).Unwrap()
	for _, fault := range faults {
		own := false
		for _, text := range theSendersOwn {
			own = own || strings.Contains(fault.Error(), text)
		}
		if !own {
			t.Fatal(fault)
		}
	}
}

// FuzzMutatedOTLP batches a well-formed message and whatever pdata reads from any bytes.
func FuzzMutatedOTLP(f *testing.F) {
	for name, pd := range captured(f) {
		if wire := marshal(f, pd); len(wire) < 5_000 {
			f.Add(wire, uint16(0), true)
			f.Add(wire, uint16(len(wire)/3), name == "go-heap")
		}
	}
	sound := fromPprof(f, "go-mutex.pb.gz")
	f.Fuzz(func(t *testing.T, wire []byte, limit uint16, combine bool) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
		if err != nil {
			return
		}
		tryAll(t, pd, sound, Options{OrderByFrequency: true, CombineSamples: combine, MaxBytes: int(limit)})
	})
}

func tryAll(t *testing.T, pd, sound pprofile.Profiles, options Options) {
	b := batchOf(options, sound)
	b.Consume(pd)
	samples := 0
	for part := range b.Parts() {
		requireConformantLayout(t, part.Profiles)
		samples += part.SampleCount
	}
	stats := b.TakeStats()
	require.GreaterOrEqual(t, stats.Samples, sound.SampleCount())
	require.GreaterOrEqual(t, samples, sound.SampleCount(), "the other message's samples are all there")
}
