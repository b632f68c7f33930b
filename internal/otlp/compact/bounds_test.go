// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The peak of the heap is at most batchConstant + batchFactor × the message's encoded bytes. Most of the
// factor is what pdata's objects for the parts take against a message of two or three bytes on the wire, and what a
// reference of ten bytes to a text may expand to.
const (
	batchConstant = 64 << 20
	batchFactor   = 64
)

// requireBoundedBatch compacts a message, split and whole, and bounds the cost and the size of the output.
func requireBoundedBatch(t testing.TB, wire []byte, pd pprofile.Profiles, maxBytes int) (in, whole, split int) {
	t.Helper()
	in = sizer.ProfilesSize(pd)
	options := bounded(maxBytes)
	options.MaxBytes = 0
	bound := profiletest.BoundOf(len(wire), batchConstant, batchFactor)
	profiletest.RequireCost(t, bound, func() {
		whole = 0
		for part := range batchOf(options, pd).Parts() {
			whole += sizer.ProfilesSize(part.Profiles)
		}
	})
	options.MaxBytes = maxBytes
	profiletest.RequireCost(t, bound, func() {
		var b Batch
		split = 0
		b.Reset(options)
		b.Consume(pd)
		for part := range b.Parts() {
			split += sizer.ProfilesSize(part.Profiles)
		}
	})
	// What a message of a few bytes needs for its headers, in the larger of its two encodings.
	const constant = 256
	if split > 2*whole+constant {
		t.Fatalf("%d bytes became %d in parts of %d", whole, split, maxBytes)
	}
	return in, whole, split
}

func TestABatchIsBoundedByItsInput(t *testing.T) {
	for name, wire := range worst.Profiles.All(1 << 18) {
		for _, overGRPC := range []bool{false, true} {
			pd := profiletest.Unmarshal(t, wire)
			if overGRPC {
				// Marshalling leaves references in the attributes, as they are when they have come over gRPC.
				_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
				require.NoError(t, err)
				if rp := pd.ResourceProfiles(); rp.At(rp.Len()-1).Resource().Attributes().Len() == 0 {
					continue // the same again
				}
			}
			t.Run(fmt.Sprint(name, overGRPC), func(t *testing.T) {
				in, whole, split := requireBoundedBatch(t, wire, pd, smallLimit)
				t.Logf("%d bytes on the wire, %d in place; %d whole, %d split", len(wire), in, whole, split)
				if !overGRPC {
					assert.LessOrEqual(t, whole, in+100)
				}
			})
		}
	}
}

// What attributes repeat of long texts is bounded; what hundreds of processes of a host have in common is not touched.
func TestExpansionOfReferences(t *testing.T) {
	pd := pprofile.NewProfiles()
	shared := strings.Repeat("c", 200)
	for i := range 500 {
		rp := pd.ResourceProfiles().AppendEmpty()
		for k := range 20 {
			rp.Resource().Attributes().PutStr(fmt.Sprint("key-", k), shared)
		}
		rp.Resource().Attributes().PutInt("pid", int64(i))
		rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	}
	b := batchOf(all, profiletest.Unmarshal(t, profiletest.Marshal(t, pd)))
	assert.Zero(t, b.Stats().Repairs[RepairAttributeExpansion])

	list := pcommon.NewValueSlice()
	long := strings.Repeat("x", 1<<20)
	for range 1000 {
		list.Slice().AppendEmpty().SetStr(long)
	}
	list.CopyTo(pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("list"))
	b = batchOf(all, profiletest.Unmarshal(t, profiletest.Marshal(t, pd)))
	assert.Equal(t, 1, b.Stats().Repairs[RepairAttributeExpansion])
}

// FuzzCompactCost bounds the cost of any message and the size of the output.
func FuzzCompactCost(f *testing.F) {
	for _, wire := range worst.Profiles.All(2_000) {
		f.Add(wire, uint16(100))
		f.Add(wire, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, wire []byte, maxBytes uint16) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
		if err != nil {
			return
		}
		requireBoundedBatch(t, wire, pd, 1+int(maxBytes))
	})
}

// Merging, and assembling of samples, take about as long if the fields of entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	t.Run("Batch", func(t *testing.T) {
		profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
			pd := profiletest.KeyedProfiles(n, keys)
			return func() {
				b := batchOf(all, pd)
				require.Zero(t, b.Stats().Dropped)
			}
		})
	})
	t.Run("Assembler", func(t *testing.T) {
		profiletest.RequireCorrelatedKeys(t, func(n int, keys profiletest.Keys) func() {
			return func() {
				var a Assembler
				a.Reset()
				p := a.Profile(0, Shape{Timestamps: true}, Header{})
				for i := range uint64(n) {
					k := keys(i + 1)
					a.Observe(p, Identity{
						Stack: dictionary.StackIndex(profiletest.KeyIndex(k[0], n)), Attributes: dictionary.AttributeSetIndex(k[1]),
						Link: dictionary.LinkIndex(k[2]),
					}, Observation{Timestamp: k[3]})
				}
			}
		})
	})
}

// A message that is cut into many parts needs the memory of the whole once more to measure it, not that of all parts.
func TestPartsAreWrittenOneByOne(t *testing.T) {
	m := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds")
	for i := range 60_000 {
		m.Sample(profiletest.Value(1, fmt.Sprint("leaf", i), fmt.Sprint("caller", i%3000), "main"))
	}
	pd := m.Build()
	size := sizer.ProfilesSize(pd)
	b := batchOf(bounded(size/20), pd)
	profiletest.RequireCost(t, profiletest.BoundOf(size, 2<<20, 9), func() {
		parts := 0
		for range b.Parts() {
			parts++
		}
		require.Greater(t, parts, 10)
	})
}
