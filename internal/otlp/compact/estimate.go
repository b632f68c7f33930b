// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"

// maxPrefix bounds the tag and length of a message of less than 256 MB.
const maxPrefix = 1 + 4

func (b *Batch) lens() (lens [numTables]int) {
	dict := tableLens(&b.dict)
	copy(lens[:], dict[:])
	lens[tableResource], lens[tableScope], lens[tableProfile] = len(b.resources.items), len(b.scopes.items), len(b.profiles)
	return lens
}

// entryLen returns the encoded size of an entry; that of a profile is without its samples and payload.
func (b *Batch) entryLen(t table, i int32, as *encoding) int {
	switch t {
	case tableSet:
		return 0
	case tableResource:
		return maxPrefix + b.resources.items[i].bytes
	case tableScope:
		return maxPrefix + b.scopes.items[i].bytes
	case tableProfile:
		return maxPrefix + b.profiles[i].headerLen(as)
	default:
		return dictionary.FieldLen(as.entryLen(t, i))
	}
}

// measureNew adds what was added since the last call to the estimate of the batch's size: with the indices of the dictionary, since
// the final order is not known yet, and entries that nothing refers to.
func (b *Batch) measureNew() {
	as := encoding{dict: &b.dict}
	for t, n := range b.lens() {
		for ; b.measuredLens[t] < n; b.measuredLens[t]++ {
			i := int32(b.measuredLens[t])
			b.approximateBytes += b.entryLen(table(t), i, &as)
			if table(t) != tableProfile {
				continue
			}
			p := &b.profiles[i]
			b.approximateBytes += p.payloadLen()
			samples := b.samples.Entries[p.first : p.first+p.count]
			for k := range samples {
				b.approximateBytes += b.sampleLen(&samples[k], p.shape, 0, samples[k].Observed.count, &as)
			}
		}
	}
}

// ApproximateBytes returns an estimate of the batch's encoded size, usually a few percent too high. It is a field access.
func (b *Batch) ApproximateBytes() int { return b.approximateBytes }
