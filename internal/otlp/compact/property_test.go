// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestAnyInput batches up to three messages that break the rules, and compares the output with an independent reading
// of the messages.
func TestAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := Options{
			OrderByFrequency: rapid.Bool().Draw(t, "order"),
			CombineSamples:   rapid.Bool().Draw(t, "combine"),
			MaxBytes:         rapid.SampledFrom([]int{0, 0, 1, 300, 1000}).Draw(t, "max"),
			MaxGrowth:        rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "growth"),
		}
		faults := rapid.SampledFrom([]int{0, 3, 20}).Draw(t, "faults")
		var messages, want []pprofile.Profiles
		kept := 0
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			pd := drawMessy(t, faults)
			messages = append(messages, pd)
			want = append(want, expected(pd))
			kept += want[len(want)-1].SampleCount()
		}
		b := batchOf(options, messages...)
		out := parts(b)
		total := 0
		for _, part := range out {
			check(t, part, options)
			total += part.Bytes
		}
		if options.MaxBytes > 0 && len(out) > 0 {
			unsplit := options
			unsplit.MaxBytes = math.MaxInt
			if whole := parts(batchOf(unsplit, messages...))[0].Bytes; total > cmp.Or(options.MaxGrowth, defaultMaxGrowth)*
				whole {
				t.Fatalf("%d parts have %d bytes, the whole has %d", len(out), total, whole)
			}
		}
		if err := profiletest.EqualAll(want, messagesOf(out), profiletest.MergeProfiles()); err != nil {
			for _, pd := range messages {
				text, _ := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
				t.Logf("message: %s", text)
			}
			t.Fatal(err)
		}
		stats := b.TakeStats()
		var unreadable [NumDropReasons]int
		for _, pd := range messages {
			left := profiletest.Clone(pd)
			dropped, profiles := DropUnreadable(left)
			for why, n := range dropped {
				unreadable[why] += n
			}
			require.Equal(t, pd.SampleCount()-left.SampleCount(), otlp.Total(dropped[:]))
			require.Equal(t, profiles > 0, otlp.Total(dropped[:]) > 0)
		}
		require.Equal(t, stats.Dropped, unreadable)
		samples := stats.Samples
		for _, n := range stats.Dropped {
			samples -= n
		}
		if samples != kept {
			t.Fatalf("%d samples were counted as kept, %d are expected", samples, kept)
		}
		deterministic(t, options, messages, out)
	})
}

// check expects a conformant part. Sums that overflow stay apart, so identities may repeat.
func check(t *rapid.T, part Part, options Options) {
	if err := profiletest.Check(part.Profiles, profiletest.AllowRepeatedSamples()); err != nil {
		t.Fatal(err)
	}
	if part.SampleCount != part.Profiles.SampleCount() || part.ProfileCount != part.Profiles.ProfileCount() {
		t.Fatal("the part's counts are wrong")
	}
	if options.MaxBytes == 0 {
		return
	}
	wire, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiletest.Clone(part.Profiles))
	if size := max(len(wire), sizer.ProfilesSize(part.Profiles)); size > part.Bytes ||
		part.Bytes > size+64+slack(part.Profiles) {
		t.Fatalf("the part is said to have %d bytes and has %d", part.Bytes, size)
	}
	if part.Oversized != (part.Bytes > options.MaxBytes) {
		t.Fatal("the part is not told to be oversized")
	}
}

// deterministic expects the same bytes from a batch that has been used before, and from consumed messages.
func deterministic(t *rapid.T, options Options, messages []pprofile.Profiles, want []Part) {
	b := batchOf(options, drawMessy(t, 5))
	for range b.Parts() {
		continue
	}
	b.Reset(options)
	for _, pd := range messages {
		b.Consume(profiletest.Clone(pd))
	}
	got := parts(b)
	require.Len(t, got, len(want))
	for i := range got {
		a, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiletest.Clone(want[i].Profiles))
		b, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiletest.Clone(got[i].Profiles))
		if !bytes.Equal(a, b) {
			t.Fatalf("part %d differs", i)
		}
	}
}

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
		if wire := profiletest.Marshal(f, pd); len(wire) < 5_000 {
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
