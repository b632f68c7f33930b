// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Importer copies entries of a message's dictionary into a Dictionary that many messages share: only those that are
// needed, with all that they refer to, each once. It trusts nothing about the message: tables may be missing, hold
// values twice, begin with something other than the zero value, and refer to entries that do not exist.
//
// Index 0 means the entry at 0, or the zero value if the table is empty. The message is only read; the Dictionary keeps
// nothing of it but strings.
type Importer struct {
	dict *dictionary.Dictionary
	src  source

	strings, functions, mappings, locations, stacks, attributes, links remap

	// Repairs counts what was put right since the last Reset, by fault.
	Repairs [NumRepairs]int

	// keySeen[k] is the last attribute set with the key k, and the attribute that it had. set numbers the sets.
	keySeen []seenKey
	set     uint32

	// shared bounds what references into the string table expand to.
	shared sharedStrings

	// referenced is the result of resolved, unset until that is called.
	referenced pcommon.Slice

	// Scratch.
	stackScratch []int32
	lineScratch  []dictionary.Line
	setScratch   []int32
}

type seenKey struct {
	set       uint32
	attribute dictionary.AttributeIndex
}

// Repair names a fault that costs no sample.
type Repair int

// The faults, and what is done about each.
const (
	// RepairAttributeIndex is an attribute whose index, or whose key's or unit's index, is out of range: it is left out.
	RepairAttributeIndex Repair = iota
	// RepairAttributeKey is an attribute whose key another attribute of the same set has: it is left out.
	RepairAttributeKey
	// RepairAttributeDepth is an attribute whose value is nested too deeply: it is left out.
	RepairAttributeDepth
	// RepairLinkIndex is a link that is out of range: the sample loses it.
	RepairLinkIndex
	// RepairProfileField is an index of a profile's own type or unit that is out of range: it is cleared.
	RepairProfileField
	// RepairInvalidUTF8 is a string that is not UTF-8: each invalid run becomes U+FFFD.
	RepairInvalidUTF8
	// RepairAttributeExpansion is an attribute that refers to long strings which the message repeats too often: it is left
	// out.
	RepairAttributeExpansion
	// NumRepairs is the number of faults.
	NumRepairs int = iota
)

var repairNames = [NumRepairs]string{
	"attribute_index", "attribute_key", "attribute_depth", "link_index", "profile_field", "invalid_utf8",
	"attribute_expansion",
}

func (r Repair) String() string { return repairNames[r] }

// remap has a number for each entry of a table of the message: its index in the Dictionary plus one if it has been
// imported, reached if a sample refers to it, reached - 1 - why if it cannot be understood, or otherwise 0.
type remap []int32

const reached = -1

// find returns the index of entry i in the Dictionary, or the reason why it has none. done is false if the entry must
// be interned first.
func (r remap) find(i int32, outOfRange DropReason) (index int32, why DropReason, done bool) {
	if uint(i) >= uint(len(r)) { // a negative index is a huge one
		return 0, outOfRange, true
	}
	switch v := r[i]; {
	case v > 0:
		return v - 1, Understood, true
	case v < reached:
		return 0, DropReason(reached - 1 - v), true
	}
	return 0, Understood, false
}

// put sets what find returns for entry i from now on.
func (r remap) put(i, index int32, why DropReason) (int32, DropReason) {
	if why != Understood {
		r[i] = reached - 1 - int32(why)
		return 0, why
	}
	r[i] = index + 1
	return index, Understood
}

// newEntry imports entry i of a table for the first time.
type newEntry func(im *Importer, i int32) (int32, DropReason)

// entry returns the index of entry i of a table of the message, and imports it if nothing has referred to it before.
func (im *Importer) entry(r remap, i int32, outOfRange DropReason, add newEntry) (int32, DropReason) {
	index, why, done := r.find(i, outOfRange)
	if !done {
		index, why = add(im, i)
		return r.put(i, index, why)
	}
	return index, why
}

// reach marks an entry for ImportReached. An index that is out of range is ignored here and reported by find.
func (r remap) reach(i int32) {
	if uint(i) < uint(len(r)) && r[i] == 0 {
		r[i] = reached
	}
}

// Reset begins to import into a Dictionary, which must be empty.
func (im *Importer) Reset(dict *dictionary.Dictionary) {
	im.dict = dict
	im.Repairs = [NumRepairs]int{}
	clear(im.keySeen)
	im.set = 0
	im.shared.reset()
	im.End()
}

// Begin begins to import from the dictionary of the next message, which is borrowed until End.
func (im *Importer) Begin(src pprofile.ProfilesDictionary) {
	im.src = sourceOf(src)
	im.shared.reset()
	im.strings = dictionary.Zeroed(im.strings, im.src.strings.Len())
	im.functions = dictionary.Zeroed(im.functions, im.src.functions.Len())
	im.mappings = dictionary.Zeroed(im.mappings, im.src.mappings.Len())
	im.locations = dictionary.Zeroed(im.locations, im.src.locations.Len())
	im.stacks = dictionary.Zeroed(im.stacks, im.src.stacks.Len())
	im.attributes = dictionary.Zeroed(im.attributes, im.src.attributes.Len())
	im.links = dictionary.Zeroed(im.links, im.src.links.Len())
}

// End forgets the message.
func (im *Importer) End() {
	im.src = source{}
	im.referenced = pcommon.Slice{}
}

// String imports a string.
func (im *Importer) String(i int32) (dictionary.StringIndex, DropReason) {
	v, why := im.entry(im.strings, i, DropStringIndex, (*Importer).newString)
	return dictionary.StringIndex(v), why
}

func (im *Importer) newString(i int32) (int32, DropReason) {
	s, repaired := im.dict.Strings.InternValid(im.src.strings.At(int(i)))
	if repaired {
		im.Repairs[RepairInvalidUTF8]++
	}
	return int32(s), Understood
}

// Field imports a string that a profile's own field names. Out of range it reads as empty and is counted.
func (im *Importer) Field(i int32) dictionary.StringIndex {
	s, why := im.String(i)
	if why != Understood {
		im.Repairs[RepairProfileField]++
	}
	return s
}

// Link imports the link at index i. Index 0 means no link, regardless of what entry 0 holds. An index out of range is
// counted and treated as 0.
func (im *Importer) Link(i int32) dictionary.LinkIndex {
	if i == 0 {
		return 0
	}
	v, why := im.entry(im.links, i, indexOutOfRange, (*Importer).newLink)
	if why != Understood {
		im.Repairs[RepairLinkIndex]++
	}
	return dictionary.LinkIndex(v)
}

func (im *Importer) newLink(i int32) (int32, DropReason) {
	link := im.src.links.At(int(i))
	return int32(im.dict.Links.Intern(dictionary.Link{TraceID: link.TraceID(), SpanID: link.SpanID()})), Understood
}

// Stack imports a stack with its locations and all that those refer to.
func (im *Importer) Stack(i int32) (dictionary.StackIndex, DropReason) {
	v, why := im.stack(i)
	return dictionary.StackIndex(v), why
}

func (im *Importer) stack(i int32) (int32, DropReason) {
	return im.entry(im.stacks, i, DropStackIndex, (*Importer).newStack)
}

func (im *Importer) newStack(i int32) (int32, DropReason) {
	indices := im.src.stacks.At(int(i)).LocationIndices()
	n := indices.Len()
	list := slices.Grow(im.stackScratch[:0], n)[:n]
	im.stackScratch = list
	for k := range n {
		at := indices.At(k)
		// Fast path: the location has been imported.
		if uint(at) < uint(len(im.locations)) && im.locations[at] > 0 {
			list[k] = im.locations[at] - 1
			continue
		}
		v, why := im.location(at)
		if why != Understood {
			return 0, why
		}
		list[k] = v
	}
	return int32(im.dict.Stacks.Intern(list)), Understood
}

// source is the tables of a message, each with at least one entry.
type source struct {
	strings    pcommon.StringSlice
	attributes pprofile.KeyValueAndUnitSlice
	links      pprofile.LinkSlice
	functions  pprofile.FunctionSlice
	mappings   pprofile.MappingSlice
	locations  pprofile.LocationSlice
	stacks     pprofile.StackSlice
}

// zeroValues replaces the tables that a message lacks. It is read only.
var zeroValues = newZeroValues()

func newZeroValues() pprofile.ProfilesDictionary {
	d := pprofile.NewProfilesDictionary()
	dictionary.New().CopyTo(d)
	return d
}

func sourceOf(d pprofile.ProfilesDictionary) source {
	return source{
		strings:    orZero(d.StringTable(), zeroValues.StringTable()),
		attributes: orZero(d.AttributeTable(), zeroValues.AttributeTable()),
		links:      orZero(d.LinkTable(), zeroValues.LinkTable()),
		functions:  orZero(d.FunctionTable(), zeroValues.FunctionTable()),
		mappings:   orZero(d.MappingTable(), zeroValues.MappingTable()),
		locations:  orZero(d.LocationTable(), zeroValues.LocationTable()),
		stacks:     orZero(d.StackTable(), zeroValues.StackTable()),
	}
}

func orZero[T interface{ Len() int }](table, zero T) T {
	if table.Len() == 0 {
		return zero
	}
	return table
}

// Reach notes that a sample refers to a stack.
func (im *Importer) Reach(stack int32) { im.stacks.reach(stack) }

// ImportReached imports all stacks that samples refer to, and what those refer to, table by table, each in the
// message's order. Following the references of each sample in turn would import the same, but jump about in memory and
// leave entries in an arbitrary order. The message's own order keeps related entries together, which compresses better,
// and the main binary's mapping first.
func (im *Importer) ImportReached() {
	for i, v := range im.stacks {
		if v == reached {
			indices := im.src.stacks.At(i).LocationIndices()
			for k := range indices.Len() {
				im.locations.reach(indices.At(k))
			}
		}
	}
	for i, v := range im.locations {
		if v == reached {
			l := im.src.locations.At(i)
			im.mappings.reach(l.MappingIndex())
			lines := l.Lines()
			for k := range lines.Len() {
				im.functions.reach(lines.At(k).FunctionIndex())
			}
		}
	}
	for _, table := range [...]struct {
		remap
		add newEntry
	}{
		{im.mappings, (*Importer).mapping}, {im.functions, (*Importer).function},
		{im.locations, (*Importer).location}, {im.stacks, (*Importer).stack},
	} {
		for i, v := range table.remap {
			if v == reached {
				table.add(im, int32(i))
			}
		}
	}
}

func (im *Importer) location(i int32) (int32, DropReason) {
	return im.entry(im.locations, i, DropLocationIndex, (*Importer).newLocation)
}

func (im *Importer) newLocation(i int32) (int32, DropReason) {
	src := im.src.locations.At(int(i))
	mapping, why := im.mapping(src.MappingIndex())
	if why != Understood {
		return 0, why
	}
	lines := im.lineScratch[:0]
	srcLines := src.Lines()
	for k := range srcLines.Len() {
		line := srcLines.At(k)
		function, why := im.function(line.FunctionIndex())
		if why != Understood {
			return 0, why
		}
		lines = append(lines, dictionary.Line{Function: dictionary.FunctionIndex(function), Line: line.Line(),
			Column: line.Column()})
	}
	im.lineScratch = lines
	l := dictionary.Location{
		Mapping:    dictionary.MappingIndex(mapping),
		Attributes: im.AttributeSet(src.AttributeIndices()),
		Address:    src.Address(),
	}
	return int32(im.dict.Locations.Intern(l, lines)), Understood
}

func (im *Importer) mapping(i int32) (int32, DropReason) {
	return im.entry(im.mappings, i, DropMappingIndex, (*Importer).newMapping)
}

func (im *Importer) newMapping(i int32) (int32, DropReason) {
	src := im.src.mappings.At(int(i))
	filename, why := im.String(src.FilenameStrindex())
	if why != Understood {
		return 0, why
	}
	return int32(im.dict.Mappings.Intern(dictionary.Mapping{
		MemoryStart: src.MemoryStart(),
		MemoryLimit: src.MemoryLimit(),
		FileOffset:  src.FileOffset(),
		Filename:    filename,
		Attributes:  im.AttributeSet(src.AttributeIndices()),
	})), Understood
}

func (im *Importer) function(i int32) (int32, DropReason) {
	return im.entry(im.functions, i, DropFunctionIndex, (*Importer).newFunction)
}

func (im *Importer) newFunction(i int32) (int32, DropReason) {
	src := im.src.functions.At(int(i))
	name, why := im.String(src.NameStrindex())
	systemName, whySystem := im.String(src.SystemNameStrindex())
	filename, whyFile := im.String(src.FilenameStrindex())
	if why = max(why, whySystem, whyFile); why != Understood {
		return 0, why
	}
	f := dictionary.Function{Name: name, SystemName: systemName, Filename: filename, StartLine: src.StartLine()}
	return int32(im.dict.Functions.Intern(f)), Understood
}

// AttributeSet imports the attributes of a sample, location, mapping or profile. Attributes that cannot be understood
// are left out; of several with one key, the first is used.
func (im *Importer) AttributeSet(indices pcommon.Int32Slice) dictionary.AttributeSetIndex {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	list := slices.Grow(im.setScratch[:0], n)
	im.set++
	for k := range n {
		a, ok := im.attribute(indices.At(k))
		if !ok {
			continue
		}
		key := im.dict.Attributes.At(a).Key
		if int(key) >= len(im.keySeen) {
			im.keySeen = append(im.keySeen, make([]seenKey, im.dict.Strings.Len()-len(im.keySeen))...)
		}
		if seen := im.keySeen[key]; seen.set == im.set {
			// In a set, the same attribute twice is one. Two values of one key are a fault.
			if seen.attribute != a {
				im.Repairs[RepairAttributeKey]++
			}
			continue
		}
		im.keySeen[key] = seenKey{set: im.set, attribute: a}
		list = append(list, int32(a))
	}
	im.setScratch = list
	return im.dict.AttributeSets.Intern(list)
}

func (im *Importer) attribute(i int32) (dictionary.AttributeIndex, bool) {
	v, why := im.entry(im.attributes, i, indexOutOfRange, (*Importer).newAttribute)
	if why == indexOutOfRange {
		im.Repairs[RepairAttributeIndex]++
	}
	return dictionary.AttributeIndex(v), why == Understood
}

func (im *Importer) newAttribute(i int32) (int32, DropReason) {
	src := im.src.attributes.At(int(i))
	key, why := im.String(src.KeyStrindex())
	unit, whyUnit := im.String(src.UnitStrindex())
	if max(why, whyUnit) != Understood {
		return 0, indexOutOfRange
	}
	value := src.Value()
	if mayReference(value, maxValueDepth) {
		value = im.resolved().At(int(i))
	}
	value, ok := im.CleanValue(value)
	if !ok {
		return 0, valueLeftOut
	}
	return int32(im.dict.Attributes.Intern(dictionary.Attribute{Key: key, Unit: unit, Value: dictionary.ValueOf(value)})),
		Understood
}
