// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"

// sizeEstimate follows the encoded size of a growing batch at a cost that depends on what is added alone.
// It errs on the high side, since it knows neither the final order of the tables nor what will be combined.
type sizeEstimate struct {
	bytes int
	// What has been counted.
	resources, scopes, profiles, values int
	fixed                               int
	dictionary                          profiledict.SizeEstimate
}

// profileBytes is what a profile takes beside its samples and payload, observationBytes the headers of a sample and of
// its observations.
const (
	profileBytes     = 80
	observationBytes = 2 + 2
)

func (e *sizeEstimate) update(b *Batch) {
	for ; e.resources < len(b.resources.items); e.resources++ {
		e.fixed += b.resources.items[e.resources].size.bound
	}
	for ; e.scopes < len(b.scopes.items); e.scopes++ {
		e.fixed += b.scopes.items[e.scopes].size.bound
	}
	for ; e.profiles < len(b.profiles); e.profiles++ {
		p := &b.profiles[e.profiles]
		e.fixed += profileBytes + len(p.payload)
		for _, s := range b.samples[p.first : p.first+p.count] {
			e.fixed += observationBytes + numberLen(uint64(s.stack)) + numberLen(uint64(s.link))
			if n := len(b.dict.AttributeSets.At(s.attributes)); n > 0 {
				e.fixed += profiledict.FieldLen(n * 3 / 2)
			}
		}
	}
	for ; e.values < len(b.values); e.values++ {
		e.fixed += profiledict.VarintLen(uint64(b.values[e.values]))
	}
	e.bytes = e.fixed + 8*len(b.timestamps) + e.dictionary.Update(&b.dict)
}

// ApproximateBytes is about the encoded size of what is in the batch, usually some percent too high. It costs nothing.
func (b *Batch) ApproximateBytes() int { return b.size.bytes }
