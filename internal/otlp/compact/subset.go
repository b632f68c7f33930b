// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// subset is the part of a Dictionary that some samples refer to, in an order of its own. Unlike CopyTo of the whole
// Dictionary, it writes only those entries. The steps are reset, use for everything that refers to the dictionary,
// arrange, and then the methods of Writer, and encodedLen. The Dictionary must not change meanwhile.
type subset struct {
	dictionary.Writer
	tables [dictionary.NumTables]tableUse

	frequencies frequencyScratch
	// otherKeys is memory for sorting locationKeys.
	locationKeys, otherKeys []locationKey
}

type table = dictionary.TableID

// reset makes s an empty subset of dict.
func (s *subset) reset(dict *dictionary.Dictionary) {
	s.Dict = dict
	for t, n := range dict.Lens() {
		s.tables[t].reset(n)
	}
}

// use counts a reference and, if it is the first, the entry's own. Those of sets and attributes are left to arrange.
func (s *subset) use(t table, i int32) {
	uses := s.tables[t].uses
	if uses[i]++; uses[i] > 1 || t <= dictionary.SetTable {
		return
	}
	if t != dictionary.StackTable {
		s.Dict.References(t, i, s.use)
		return
	}
	// Fast path for the longest lists.
	locations := s.tables[dictionary.LocationTable].uses
	for _, l := range s.Dict.Stacks.At(dictionary.StackIndex(i)) {
		if locations[l]++; locations[l] == 1 {
			s.Dict.References(dictionary.LocationTable, l, s.use)
		}
	}
}

// arrange assigns an index to every entry: in the order in which they were interned or, if isReordered, so that the
// message compresses well. Then entries that are alike are neighbours, except that the entries with the most references
// have the shortest indices. Mappings keep their order in any case: a reader treats the first as the main binary.
func (s *subset) arrange(isReordered bool) {
	attributes := s.tables[dictionary.AttributeTable].uses
	for set, n := range s.tables[dictionary.SetTable].uses {
		if n != 0 {
			for _, a := range s.Dict.AttributeSets.At(dictionary.AttributeSetIndex(set)) {
				// Only whether the count is above others matters; it must not wrap.
				attributes[a] += min(n, 1<<31-attributes[a])
			}
		}
	}
	for a, n := range attributes {
		if n != 0 {
			s.Dict.References(dictionary.AttributeTable, int32(a), s.use)
		}
	}
	if isReordered {
		s.bringTogether()
	}
	for t := range s.tables {
		if table(t) == dictionary.SetTable {
			continue
		}
		uses := &s.tables[t]
		uses.rest()
		switch table(t) {
		case dictionary.LocationTable, dictionary.StackTable, dictionary.AttributeTable, dictionary.LinkTable:
			if isReordered {
				uses.byFrequency(&s.frequencies)
			}
		default:
		}
		s.Orders[t] = uses.Order
		if !isReordered && len(uses.Entries) == len(uses.uses) { // Fast path: all entries, as they are
			s.Orders[t] = dictionary.Order{}
		}
	}
}

// bringTogether sorts locations by their addresses, lists functions in the order of their locations, and names in that
// of their functions. Most functions and strings are referred to once or twice, so that the width of their indices
// matters little.
func (s *subset) bringTogether() {
	locations, functions, strings := &s.tables[dictionary.LocationTable], &s.tables[dictionary.FunctionTable],
		&s.tables[dictionary.StringTable]
	s.locationKeys = s.locationKeys[:0]
	for i, n := range locations.uses {
		if n != 0 && i != 0 {
			l, _ := s.Dict.Locations.At(dictionary.LocationIndex(i))
			s.locationKeys = append(s.locationKeys, locationKey{l.Mapping, int32(i), l.Address})
		}
	}
	for _, key := range s.sortLocations() {
		locations.next(key.location)
		_, lines := s.Dict.Locations.At(dictionary.LocationIndex(key.location))
		for k := range lines {
			functions.next(int32(lines[k].Function))
		}
	}
	for _, i := range functions.Entries {
		f := s.Dict.Functions.At(dictionary.FunctionIndex(i))
		strings.next(int32(f.Name))
		strings.next(int32(f.SystemName))
	}
	for _, i := range functions.Entries {
		strings.next(int32(s.Dict.Functions.At(dictionary.FunctionIndex(i)).Filename))
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

// entries returns the number of entries in each table, zero values included, in the order of Tables.
func (s *subset) entries() (n [len(Tables)]int) {
	for k, t := range [...]table{
		dictionary.MappingTable, dictionary.LocationTable, dictionary.FunctionTable, dictionary.LinkTable,
		dictionary.StringTable, dictionary.AttributeTable, dictionary.StackTable,
	} {
		n[k] = len(s.tables[t].Entries)
	}
	return n
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
