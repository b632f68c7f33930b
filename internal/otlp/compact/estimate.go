// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"

// sizeEstimate estimates the encoded size of a growing batch. An update only looks at what was added since the last one.
// The estimate is usually too high: it counts entries that nothing refers to, and does not know the final order of the
// tables.
type sizeEstimate struct {
	bytes int
	// The number of items that have been counted so far.
	resources, scopes, profiles, values               int
	strings, attributes, functions, locations, stacks int
	// fixed is their size without indices into tables that still grow; lines and stackLocations are the numbers of those
	// indices.
	fixed, lines, stackLocations int
}

// The bytes of items apart from the fields that are looked at.
const (
	profileBytes     = 80
	observationBytes = 2 + 2
	mappingBytes     = 40
	linkBytes        = 30
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
		e.fixed += profileBytes + len(p.Payload)
		for _, s := range b.samples.Entries[p.first : p.first+p.count] {
			e.fixed += observationBytes + numberLen(uint64(s.Stack)) + numberLen(uint64(s.Link))
			if n := len(b.dict.AttributeSets.At(s.Attributes)); n > 0 {
				e.fixed += dictionary.FieldLen(n * 3 / 2)
			}
		}
	}
	for ; e.values < len(b.values); e.values++ {
		e.fixed += dictionary.VarintLen(uint64(b.values[e.values]))
	}
	indices := e.addDictionary(&b.dict)
	e.bytes = e.fixed + 8*len(b.timestamps) + indices
}

// addDictionary counts the new entries, and returns the bytes that depend on how large the tables have become.
func (e *sizeEstimate) addDictionary(d *dictionary.Dictionary) (indices int) {
	for ; e.strings < d.Strings.Len(); e.strings++ {
		e.fixed += dictionary.FieldLen(len(d.Strings.At(dictionary.StringIndex(e.strings))))
	}
	for ; e.attributes < d.Attributes.Len(); e.attributes++ {
		e.fixed += 6 + d.Attributes.At(dictionary.AttributeIndex(e.attributes)).Value.EncodedLen()
	}
	for ; e.functions < d.Functions.Len(); e.functions++ {
		e.fixed += 2 + numberLen(uint64(d.Functions.At(dictionary.FunctionIndex(e.functions)).StartLine))
	}
	for ; e.locations < d.Locations.Len(); e.locations++ {
		l, lines := d.Locations.At(dictionary.LocationIndex(e.locations))
		e.fixed += 2 + indexLen(int32(l.Mapping)) + numberLen(l.Address) + 2*len(d.AttributeSets.At(l.Attributes))
		e.lines += len(lines)
		for i := range lines {
			e.fixed += 3 + numberLen(uint64(lines[i].Line)) + numberLen(uint64(lines[i].Column))
		}
	}
	for ; e.stacks < d.Stacks.Len(); e.stacks++ {
		e.stackLocations += len(d.Stacks.At(dictionary.StackIndex(e.stacks)))
	}
	// Each index counts as long as the last one. Those in stacks count three quarters of that, since a few locations are in
	// most of the stacks.
	str := dictionary.VarintLen(uint64(d.Strings.Len()))
	return d.Mappings.Len()*mappingBytes + d.Links.Len()*linkBytes +
		3*(1+str)*d.Functions.Len() + 2*(1+str)*d.Attributes.Len() +
		dictionary.VarintLen(uint64(d.Functions.Len()))*e.lines +
		3*d.Stacks.Len() + dictionary.VarintLen(uint64(d.Locations.Len()))*e.stackLocations*3/4
}

// ApproximateBytes returns an estimate of the batch's encoded size, usually a few percent too high. It is a field access.
func (b *Batch) ApproximateBytes() int { return b.size.bytes }
