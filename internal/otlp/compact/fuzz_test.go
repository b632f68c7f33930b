// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math/rand/v2"
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

// TestMutatedOTLP is a fixed count of what the fuzzer does: bytes flipped, cut out and put in anywhere in a message.
func TestMutatedOTLP(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	sound := fromPprof(t, "go-mutex.pb.gz")
	understood := 0
	for name, pd := range captured(t) {
		original := marshal(t, pd)
		if len(original) > 12_000 {
			continue
		}
		for range 150 {
			wire := mutate(rnd, original)
			pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
			if err != nil {
				continue
			}
			understood++
			limit := 0
			if rnd.IntN(4) == 0 {
				limit = 500 + rnd.IntN(5000)
			}
			tryAll(t, pd, sound, Options{OrderByFrequency: true, CombineSamples: rnd.IntN(2) == 0, MaxBytes: limit})
		}
		t.Logf("%s: %d mutants of all so far could be unmarshalled", name, understood)
	}
	require.Greater(t, understood, 100)
}

func mutate(rnd *rand.Rand, original []byte) []byte {
	wire := append([]byte(nil), original...)
	for range 1 + rnd.IntN(6) {
		at := rnd.IntN(len(wire))
		switch rnd.IntN(3) {
		case 0:
			wire[at] ^= 1 << rnd.IntN(8)
		case 1:
			wire[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rnd.IntN(5)]
		case 2:
			from := rnd.IntN(len(wire))
			copy(wire[at:], wire[from:min(len(wire), from+1+rnd.IntN(10))])
		}
	}
	return wire
}
