// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// subset is the part of a Dictionary that some samples refer to, in an order of its own. Unlike CopyTo of the whole
// Dictionary, it writes only those entries. The steps are reset, use… for everything that refers to the dictionary,
// arrange, and then the indices, encodedLen and copyTo. The Dictionary must not change meanwhile.
type subset struct {
	encoding

	strings, attributes, sets, functions, mappings, locations, stacks, links tableUse

	// isReordered reports that entries are in another order than in dict.
	isReordered bool
	frequencies frequencyScratch
	// otherKeys is memory for sorting locationKeys.
	locationKeys, otherKeys []locationKey
}

// encoding is how entries of a dictionary and what refers to them are written: with the indices that the writer has for them,
// or those of the dictionary if it has none.
type encoding struct {
	dict   *dictionary.Dictionary
	writer dictionary.Writer
}

// table is a table of the dictionary, or a list of what surrounds samples. Entries refer only to entries of lower
// tables. In OTLP a set of attributes is not an entry: it has neither an index nor a size.
type table int8

const (
	tableString table = iota
	tableAttribute
	tableSet
	tableFunction
	tableMapping
	tableLocation
	tableStack
	tableLink
	tableResource
	tableScope
	tableProfile
	numTables

	numDictTables = tableResource
)

func (s *subset) tables() [numDictTables]*tableUse {
	return [...]*tableUse{
		&s.strings, &s.attributes, &s.sets, &s.functions, &s.mappings, &s.locations, &s.stacks, &s.links,
	}
}

// tableLens returns the number of entries in each of a dictionary's tables.
func tableLens(d *dictionary.Dictionary) [numDictTables]int {
	return [...]int{
		d.Strings.Len(), d.Attributes.Len(), d.AttributeSets.Len(), d.Functions.Len(),
		d.Mappings.Len(), d.Locations.Len(), d.Stacks.Len(), d.Links.Len(),
	}
}

// reset makes s an empty subset of dict.
func (s *subset) reset(dict *dictionary.Dictionary) {
	s.dict = dict
	tables := s.tables()
	for t, n := range tableLens(dict) {
		tables[t].reset(n)
	}
}

func (s *subset) useString(i dictionary.StringIndex) { s.strings.uses[i]++ }

func (s *subset) useLink(i dictionary.LinkIndex) { s.links.uses[i]++ }

func (s *subset) useAttributes(i dictionary.AttributeSetIndex) { s.sets.uses[i]++ }

// useStack counts a reference to a stack and, if it is the first, the stack's own references.
func (s *subset) useStack(i dictionary.StackIndex) {
	if !s.stacks.add(int32(i)) {
		return
	}
	uses := s.locations.uses
	for _, l := range s.dict.Stacks.At(i) {
		if uses[l]++; uses[l] == 1 {
			s.reachLocation(dictionary.LocationIndex(l))
		}
	}
}

func (s *subset) reachLocation(i dictionary.LocationIndex) {
	l, lines := s.dict.Locations.At(i)
	s.useAttributes(l.Attributes)
	if s.mappings.add(int32(l.Mapping)) {
		m := s.dict.Mappings.At(l.Mapping)
		s.useString(m.Filename)
		s.useAttributes(m.Attributes)
	}
	for k := range lines {
		if f := lines[k].Function; s.functions.add(int32(f)) {
			function := s.dict.Functions.At(f)
			s.useString(function.Name)
			s.useString(function.SystemName)
			s.useString(function.Filename)
		}
	}
}

// arrange assigns an index to every entry: in the order in which they were interned or, if isReordered, so that the message
// compresses well. Then entries that are alike are neighbours, except that the entries with the most references have the shortest
// indices. Mappings keep their order in any case: a reader treats the first as the main binary.
func (s *subset) arrange(isReordered bool) {
	s.isReordered = isReordered
	for set, n := range s.sets.uses {
		if n != 0 {
			for _, a := range s.dict.AttributeSets.At(dictionary.AttributeSetIndex(set)) {
				// Only whether the count is above others matters; it must not wrap.
				s.attributes.uses[a] += min(n, 1<<31-s.attributes.uses[a])
			}
		}
	}
	for a, n := range s.attributes.uses {
		if n != 0 {
			attribute := s.dict.Attributes.At(dictionary.AttributeIndex(a))
			s.useString(attribute.Key)
			s.useString(attribute.Unit)
		}
	}
	if isReordered {
		s.bringTogether()
	}
	for t, uses := range s.tables() {
		if table(t) != tableSet {
			uses.rest()
		}
	}
	if isReordered {
		for _, t := range [...]*tableUse{&s.locations, &s.stacks, &s.attributes, &s.links} {
			t.byFrequency(&s.frequencies)
		}
	}
	w := &s.writer
	w.Strings, w.Attributes, w.Functions, w.Mappings = s.strings.Order, s.attributes.Order, s.functions.Order, s.mappings.Order
	w.Locations, w.Stacks, w.Links = s.locations.Order, s.stacks.Order, s.links.Order
}

// bringTogether sorts locations by their addresses, lists functions in the order of their locations, and names in that of their
// functions. Most functions and strings are referred to once or twice, so that the width of their indices matters little.
func (s *subset) bringTogether() {
	s.locationKeys = s.locationKeys[:0]
	for i, n := range s.locations.uses {
		if n != 0 && i != 0 {
			l, _ := s.dict.Locations.At(dictionary.LocationIndex(i))
			s.locationKeys = append(s.locationKeys, locationKey{l.Mapping, int32(i), l.Address})
		}
	}
	for _, key := range s.sortLocations() {
		s.locations.next(key.location)
		_, lines := s.dict.Locations.At(dictionary.LocationIndex(key.location))
		for k := range lines {
			s.functions.next(int32(lines[k].Function))
		}
	}
	for _, i := range s.functions.Entries {
		f := s.dict.Functions.At(dictionary.FunctionIndex(i))
		s.strings.next(int32(f.Name))
		s.strings.next(int32(f.SystemName))
	}
	for _, i := range s.functions.Entries {
		s.strings.next(int32(s.dict.Functions.At(dictionary.FunctionIndex(i)).Filename))
	}
}

// locationKey is what locations are sorted by: equal addresses keep the order of the dictionary.
type locationKey struct {
	mapping  dictionary.MappingIndex
	location int32
	address  uint64
}

// keyDigits are the bytes of an address and of an index.
const keyDigits = 8 + 4

// digit returns byte d of the key, counted from the lowest of the address.
func (k locationKey) digit(d int) uint8 {
	if d < 8 {
		return uint8(k.address >> (8 * d))
	}
	return uint8(k.mapping >> (8 * (d - 8)))
}

// sortLocations returns locationKeys sorted: a radix sort by those digits that differ, three or four in a program.
func (s *subset) sortLocations() []locationKey {
	var differing locationKey
	for _, key := range s.locationKeys {
		differing.mapping |= key.mapping ^ s.locationKeys[0].mapping
		differing.address |= key.address ^ s.locationKeys[0].address
	}
	s.otherKeys = slices.Grow(s.otherKeys[:0], len(s.locationKeys))[:len(s.locationKeys)]
	for d := range keyDigits {
		if differing.digit(d) == 0 {
			continue
		}
		var next [256]int32 // where the next key with this digit goes
		for _, key := range s.locationKeys {
			next[key.digit(d)]++
		}
		from := int32(0)
		for v, n := range next {
			next[v] = from
			from += n
		}
		for _, key := range s.locationKeys {
			v := key.digit(d)
			s.otherKeys[next[v]] = key
			next[v]++
		}
		s.locationKeys, s.otherKeys = s.otherKeys, s.locationKeys
	}
	return s.locationKeys
}

func (s *encoding) stringIndex(i dictionary.StringIndex) int32 { return s.writer.Strings.Of(int32(i)) }

func (s *encoding) stackIndex(i dictionary.StackIndex) int32 { return s.writer.Stacks.Of(int32(i)) }

func (s *encoding) linkIndex(i dictionary.LinkIndex) int32 { return s.writer.Links.Of(int32(i)) }

// entries returns the number of entries in each table, zero values included, in the order of Tables.
func (s *subset) entries() [len(Tables)]int {
	return [...]int{
		len(s.mappings.Entries), len(s.locations.Entries), len(s.functions.Entries), len(s.links.Entries),
		len(s.strings.Entries), len(s.attributes.Entries), len(s.stacks.Entries),
	}
}

// Tables names the seven tables as metrics do, in the order of ProfilesDictionary's fields.
var Tables = [7]string{"mapping", "location", "function", "link", "string", "attribute", "stack"}

// EntriesOf counts the entries of each table of a message, in the order of Tables.
func EntriesOf(d pprofile.ProfilesDictionary) [7]int {
	return [7]int{
		d.MappingTable().Len(), d.LocationTable().Len(), d.FunctionTable().Len(), d.LinkTable().Len(),
		d.StringTable().Len(), d.AttributeTable().Len(), d.StackTable().Len(),
	}
}

// encodedLen is the number of bytes of the dictionary that copyTo writes, as pdata encodes it.
func (s *subset) encodedLen() int {
	n := 0
	for t, uses := range s.tables() {
		if table(t) == tableSet {
			continue
		}
		for _, i := range uses.Entries {
			n += dictionary.FieldLen(s.entryLen(table(t), i))
		}
	}
	return n
}

// copyAttributes writes the attribute indices of a set over those of dst.
func (s *subset) copyAttributes(i dictionary.AttributeSetIndex, dst pcommon.Int32Slice) {
	s.writer.WriteAttributes(s.dict, i, dst)
}

// copyTo writes all tables to dst, over what dst holds.
func (s *subset) copyTo(dst pprofile.ProfilesDictionary) { s.writer.Write(s.dict, dst) }

// isWhole reports whether every entry of the dictionary is used and keeps its index.
func (s *subset) isWhole() bool {
	tables := s.tables()
	for t, n := range tableLens(s.dict) {
		if len(tables[t].Entries) != n && table(t) != tableSet {
			return false
		}
	}
	return !s.isReordered
}
