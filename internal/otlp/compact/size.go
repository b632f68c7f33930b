// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

var sizer pprofile.ProtoMarshaler

// encodedBound bounds the encoded size of a message: with the strings of resources and scopes in their place, or with
// references to them, when pdata moves the strings to the string table while it marshals.
func encodedBound(pd pprofile.Profiles) int {
	bound := sizer.ProfilesSize(pd)
	for _, rp := range pd.ResourceProfiles().All() {
		bound += referenceBytes(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			bound += referenceBytes(sp.Scope().Attributes())
		}
	}
	return bound
}

func referenceBytes(attributes pcommon.Map) (bytes int) {
	const (
		reference    = 1 + 4 // into a table of less than 2^28 strings
		longerPrefix = 4     // of the dictionary, to which the strings move
	)
	everyStringOf(attributes, func(string) bool {
		bytes += reference
		return true
	})
	if bytes > 0 {
		bytes += longerPrefix
	}
	return bytes
}

// estimate estimates the encoded size of the batch.
func (b *Batch) estimate() {
	const profileBytes, sampleBytes, valueBytes, timestampBytes, indexBytes = 64, 8, 3, 8, 2
	for ; b.measured < len(b.samples.Entries); b.measured++ {
		set := b.samples.Entries[b.measured].Attributes
		b.indices += len(b.dict.AttributeSets.At(set))
	}
	b.approximateBytes = b.ownBytes + b.dict.EncodedBytes() + profileBytes*len(b.profiles) +
		sampleBytes*len(b.samples.Entries) + indexBytes*b.indices + valueBytes*len(b.values) +
		timestampBytes*len(b.timestamps)
}

// ApproximateBytes returns an estimate of the batch's encoded size, usually 10 to 30 percent too high. It is a field
// access.
func (b *Batch) ApproximateBytes() int { return b.approximateBytes }
