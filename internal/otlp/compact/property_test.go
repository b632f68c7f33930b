// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

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
		var messages []pprofile.Profiles
		want := pprofile.NewProfiles()
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			pd := drawMessy(t, faults)
			messages = append(messages, pd)
			merge(expected(pd), want)
		}
		b := batchOf(options, messages...)
		out := parts(b)
		got := pprofile.NewProfiles()
		total := 0
		for _, part := range out {
			check(t, part, options)
			total += part.Bytes
			merge(part.Profiles, got)
		}
		if options.MaxBytes > 0 && len(out) > 0 {
			unsplit := options
			unsplit.MaxBytes = math.MaxInt
			if whole := parts(batchOf(unsplit, messages...))[0].Bytes; total > cmp.Or(options.MaxGrowth, defaultMaxGrowth)*
				whole {
				t.Fatalf("%d parts have %d bytes, the whole has %d", len(out), total, whole)
			}
		}
		emptyFirst(want)
		emptyFirst(got)
		if err := profiletest.Equal(want, got, profiletest.MergeProfiles()); err != nil {
			for _, pd := range messages {
				text, _ := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
				t.Logf("message: %s", text)
			}
			t.Fatal(err)
		}
		stats := b.TakeStats()
		samples := stats.Samples
		for _, n := range stats.Dropped {
			samples -= n
		}
		if kept := want.SampleCount(); samples != kept {
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
	wire, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(clone(part.Profiles))
	if size := max(len(wire), sizer.ProfilesSize(part.Profiles)); size > part.Bytes ||
		part.Bytes > size+64+slack(part.Profiles) {
		t.Fatalf("the part is said to have %d bytes and has %d", part.Bytes, size)
	}
	if part.Oversized != (part.Bytes > options.MaxBytes) {
		t.Fatal("the part is not told to be oversized")
	}
}

// merge appends src and its tables to dst, with offset indices. pdata's MergeTo would refuse what the tables of a
// message may hold.
func merge(src, dst pprofile.Profiles) {
	if dst.Dictionary().StringTable().Len() == 0 && dst.ResourceProfiles().Len() == 0 {
		src.CopyTo(dst)
		return
	}
	from, to := clone(src), dst.Dictionary()
	d := from.Dictionary()
	pad(to)
	pad(d)
	offset := offsets{
		str: to.StringTable().Len(), attribute: to.AttributeTable().Len(), link: to.LinkTable().Len(),
		function: to.FunctionTable().Len(), mapping: to.MappingTable().Len(), location: to.LocationTable().Len(),
		stack: to.StackTable().Len(),
	}
	offset.move(from)
	d.StringTable().MoveAndAppendTo(to.StringTable())
	d.AttributeTable().MoveAndAppendTo(to.AttributeTable())
	d.LinkTable().MoveAndAppendTo(to.LinkTable())
	d.FunctionTable().MoveAndAppendTo(to.FunctionTable())
	d.MappingTable().MoveAndAppendTo(to.MappingTable())
	d.LocationTable().MoveAndAppendTo(to.LocationTable())
	d.StackTable().MoveAndAppendTo(to.StackTable())
	from.ResourceProfiles().MoveAndAppendTo(dst.ResourceProfiles())
}

// deterministic expects the same bytes from a batch that has been used before, and from consumed messages.
func deterministic(t *rapid.T, options Options, messages []pprofile.Profiles, want []Part) {
	b := batchOf(options, drawMessy(t, 5))
	for range b.Parts() {
		continue
	}
	b.Reset(options)
	for _, pd := range messages {
		b.Consume(clone(pd))
	}
	got := parts(b)
	require.Len(t, got, len(want))
	for i := range got {
		a, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(clone(want[i].Profiles))
		b, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(clone(got[i].Profiles))
		if !bytes.Equal(a, b) {
			t.Fatalf("part %d differs", i)
		}
	}
}
