// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Importer moves entries of a message's dictionary into a Dictionary that many messages share:
// only what is asked for, with all that it refers to, each entry once. Nothing about the message is
// trusted: its tables may be missing, hold values twice, begin with something other than the zero
// value, and refer to entries that do not exist.
//
// An index 0 means the entry at 0; a table without entries reads as if it had its zero value there. The message is
// only read; what stays in the Dictionary of it are strings.
type Importer struct {
	dict *profiledict.Dictionary
	src  source

	strings, functions, mappings, locations, stacks, attributes, links remap

	reachedStacks, reachedLocations, reachedMappings, reachedFunctions marks

	// Repairs counts what was put right since the last Reset, by fault.
	Repairs [NumRepairs]int

	// keySeen[k] tells which attribute set had the key k last, and where from.
	keySeen []seenKey
	set     uint32

	// shared bounds what references into the string table expand to.
	shared sharedTexts

	// referenced is nil until an attribute looks as if pdata had left references in it.
	referenced *references

	// Scratch.
	stackScratch []int32
	lineScratch  []profiledict.Line
	setScratch   []int32
}

type seenKey struct {
	set       uint32
	attribute profiledict.AttributeIndex
}

// Reason tells why an entry cannot be understood: which index, in it or below it, is out of range.
type Reason int8

// The reasons. Each is named by the table that the index should have pointed into.
const (
	Understood Reason = iota
	StackOutOfRange
	LocationOutOfRange
	FunctionOutOfRange
	MappingOutOfRange
	StringOutOfRange
)

// Repair names a fault that costs no sample.
type Repair int

// The faults, and what is done about each.
const (
	// RepairAttributeIndex is an attribute whose index, or whose key's or unit's index, is out of range: it is left out.
	RepairAttributeIndex Repair = iota
	// RepairAttributeKey is an attribute whose key stood before in the same set: it is left out.
	RepairAttributeKey
	// RepairAttributeDepth is an attribute whose value is nested too deeply: it is left out.
	RepairAttributeDepth
	// RepairLinkIndex is a link that is out of range: the sample loses it.
	RepairLinkIndex
	// RepairProfileField is an index of a profile's own type or unit that is out of range: it is cleared.
	RepairProfileField
	// RepairInvalidUTF8 is a text that is not UTF-8: each invalid run becomes U+FFFD.
	RepairInvalidUTF8
	// RepairAttributeExpansion is an attribute of which the message holds only references, too many of them to long texts:
	// it is left out.
	RepairAttributeExpansion
	// NumRepairs is the number of faults.
	NumRepairs int = iota
)

var repairNames = [NumRepairs]string{
	"attribute_index", "attribute_key", "attribute_depth", "link_index", "profile_field", "invalid_utf8", "attribute_expansion",
}

func (r Repair) String() string { return repairNames[r] }

// remap holds, for each entry of a table of the message, 0 where nothing has asked for it, its index
// in the Dictionary plus one, or the negated Reason why it cannot be understood.
type remap []int32

func (r *remap) reset(entries int) {
	if cap(*r) < entries {
		*r = make(remap, entries)
		return
	}
	*r = (*r)[:entries]
	clear(*r)
}

// find returns what is known of entry i. It is not done where the entry exists and was not asked for yet.
func (r remap) find(i int32, outOfRange Reason) (index int32, why Reason, done bool) {
	if uint(i) >= uint(len(r)) { // a negative index is a huge one
		return 0, outOfRange, true
	}
	if v := r[i]; v > 0 {
		return v - 1, Understood, true
	} else if v < 0 {
		return 0, Reason(-v), true
	}
	return 0, Understood, false
}

func (r remap) put(i, index int32, why Reason) (int32, Reason) {
	if why != Understood {
		r[i] = -int32(why)
		return 0, why
	}
	r[i] = index + 1
	return index, Understood
}

// Reset binds the importer to a Dictionary that is empty.
func (im *Importer) Reset(dict *profiledict.Dictionary) {
	im.dict = dict
	im.Repairs = [NumRepairs]int{}
	clear(im.keySeen)
	im.set = 0
	im.End()
}

// Begin turns to the dictionary of the next message, borrowed until End.
func (im *Importer) Begin(src pprofile.ProfilesDictionary) {
	im.src = sourceOf(src)
	im.shared.reset()
	im.strings.reset(im.src.strings.Len())
	im.functions.reset(im.src.functions.Len())
	im.mappings.reset(im.src.mappings.Len())
	im.locations.reset(im.src.locations.Len())
	im.stacks.reset(im.src.stacks.Len())
	im.attributes.reset(im.src.attributes.Len())
	im.links.reset(im.src.links.Len())
	im.reachedFunctions.reset(im.src.functions.Len())
	im.reachedMappings.reset(im.src.mappings.Len())
	im.reachedLocations.reset(im.src.locations.Len())
	im.reachedStacks.reset(im.src.stacks.Len())
}

// End lets go of the message.
func (im *Importer) End() {
	im.src = source{}
	im.referenced = nil
}

// String imports a string. Out of range it is StringOutOfRange.
func (im *Importer) String(i int32) (profiledict.StringIndex, Reason) {
	v, why, done := im.strings.find(i, StringOutOfRange)
	if !done {
		s, repaired := im.dict.Strings.InternValid(im.src.strings.At(int(i)))
		if repaired {
			im.Repairs[RepairInvalidUTF8]++
		}
		v, why = im.strings.put(i, int32(s), Understood)
	}
	return profiledict.StringIndex(v), why
}

// Field imports a string that a profile's own field names. Out of range it reads as empty and is counted.
func (im *Importer) Field(i int32) profiledict.StringIndex {
	s, why := im.String(i)
	if why != Understood {
		im.Repairs[RepairProfileField]++
	}
	return s
}

// Link imports the link at index i. Index 0 means no link, whatever entry 0 holds. An index out of range is counted and
// treated as 0.
func (im *Importer) Link(i int32) profiledict.LinkIndex {
	if i == 0 {
		return 0
	}
	v, why, done := im.links.find(i, StringOutOfRange)
	if !done {
		link := im.src.links.At(int(i))
		index := im.dict.Links.Intern(profiledict.Link{TraceID: link.TraceID(), SpanID: link.SpanID()})
		v, why = im.links.put(i, int32(index), Understood)
	}
	if why != Understood {
		im.Repairs[RepairLinkIndex]++
	}
	return profiledict.LinkIndex(v)
}

// Stack imports a stack with its locations and all that those refer to.
func (im *Importer) Stack(i int32) (profiledict.StackIndex, Reason) {
	v, why, done := im.stacks.find(i, StackOutOfRange)
	if !done {
		v, why = im.stack(i)
		v, why = im.stacks.put(i, v, why)
	}
	return profiledict.StackIndex(v), why
}

func (im *Importer) stack(i int32) (int32, Reason) {
	indices := im.src.stacks.At(int(i)).LocationIndices()
	n := indices.Len()
	list := slices.Grow(im.stackScratch[:0], n)[:n]
	im.stackScratch = list
	for k := range n {
		at := indices.At(k)
		// Fast path: the location was met before.
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

// source is the tables of a message, each with an entry at least.
type source struct {
	strings    pcommon.StringSlice
	attributes pprofile.KeyValueAndUnitSlice
	links      pprofile.LinkSlice
	functions  pprofile.FunctionSlice
	mappings   pprofile.MappingSlice
	locations  pprofile.LocationSlice
	stacks     pprofile.StackSlice
}

// zeroValues stands in for the tables that a message lacks. It is read only.
var zeroValues = newZeroValues()

func newZeroValues() pprofile.ProfilesDictionary {
	d := pprofile.NewProfilesDictionary()
	d.StringTable().Append("")
	d.AttributeTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
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

// marks tells which entries of a table of the message samples reach.
type marks []bool

func (m *marks) reset(entries int) {
	if cap(*m) < entries {
		*m = make(marks, entries)
		return
	}
	*m = (*m)[:entries]
	clear(*m)
}

func (m marks) set(i int32) {
	if uint(i) < uint(len(m)) {
		m[i] = true
	}
}

// Reach notes that a sample refers to a stack. An index that is out of range is ignored here and reported by Stack.
func (im *Importer) Reach(stack int32) { im.reachedStacks.set(stack) }

// ImportReached imports what has been reached, table by table, each in the message's order. Following the
// references of each sample in turn would import the same, but jump about in memory and leave entries in an arbitrary
// order. The message's own order keeps related entries together, which compresses better, and the main binary's mapping
// first.
func (im *Importer) ImportReached() {
	for i, reached := range im.reachedStacks {
		if reached {
			indices := im.src.stacks.At(i).LocationIndices()
			for k := range indices.Len() {
				im.reachedLocations.set(indices.At(k))
			}
		}
	}
	for i, reached := range im.reachedLocations {
		if reached {
			l := im.src.locations.At(i)
			im.reachedMappings.set(l.MappingIndex())
			lines := l.Lines()
			for k := range lines.Len() {
				im.reachedFunctions.set(lines.At(k).FunctionIndex())
			}
		}
	}
	for i, reached := range im.reachedMappings {
		if reached {
			im.mapping(int32(i))
		}
	}
	for i, reached := range im.reachedFunctions {
		if reached {
			im.function(int32(i))
		}
	}
	for i, reached := range im.reachedLocations {
		if reached {
			im.location(int32(i))
		}
	}
	for i, reached := range im.reachedStacks {
		if reached {
			im.Stack(int32(i))
		}
	}
}

func (im *Importer) location(i int32) (int32, Reason) {
	v, why, done := im.locations.find(i, LocationOutOfRange)
	if !done {
		v, why = im.newLocation(im.src.locations.At(int(i)))
		v, why = im.locations.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newLocation(src pprofile.Location) (int32, Reason) {
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
		lines = append(lines, profiledict.Line{Function: profiledict.FunctionIndex(function), Line: line.Line(), Column: line.Column()})
	}
	im.lineScratch = lines
	l := profiledict.Location{
		Mapping:    profiledict.MappingIndex(mapping),
		Attributes: im.AttributeSet(src.AttributeIndices()),
		Address:    src.Address(),
	}
	return int32(im.dict.Locations.Intern(l, lines)), Understood
}

func (im *Importer) mapping(i int32) (int32, Reason) {
	v, why, done := im.mappings.find(i, MappingOutOfRange)
	if !done {
		v, why = im.newMapping(i)
		v, why = im.mappings.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newMapping(i int32) (int32, Reason) {
	src := im.src.mappings.At(int(i))
	filename, why := im.String(src.FilenameStrindex())
	if why != Understood {
		return 0, why
	}
	return int32(im.dict.Mappings.Intern(profiledict.Mapping{
		MemoryStart: src.MemoryStart(),
		MemoryLimit: src.MemoryLimit(),
		FileOffset:  src.FileOffset(),
		Filename:    filename,
		Attributes:  im.AttributeSet(src.AttributeIndices()),
	})), Understood
}

func (im *Importer) function(i int32) (int32, Reason) {
	v, why, done := im.functions.find(i, FunctionOutOfRange)
	if !done {
		v, why = im.newFunction(im.src.functions.At(int(i)))
		v, why = im.functions.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newFunction(src pprofile.Function) (int32, Reason) {
	name, why := im.String(src.NameStrindex())
	if why != Understood {
		return 0, why
	}
	systemName, why := im.String(src.SystemNameStrindex())
	if why != Understood {
		return 0, why
	}
	filename, why := im.String(src.FilenameStrindex())
	if why != Understood {
		return 0, why
	}
	f := profiledict.Function{Name: name, SystemName: systemName, Filename: filename, StartLine: src.StartLine()}
	return int32(im.dict.Functions.Intern(f)), Understood
}

// AttributeSet imports the attributes of a sample, location, mapping or profile. One that cannot be
// understood is left out; of several with one key the first in the list counts.
func (im *Importer) AttributeSet(indices pcommon.Int32Slice) profiledict.AttributeSetIndex {
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
			// The same attribute twice is one, as in any set. Two values of one key are a fault.
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

func (im *Importer) attribute(i int32) (profiledict.AttributeIndex, bool) {
	v, why, done := im.attributes.find(i, StringOutOfRange)
	if !done {
		v, why = im.newAttribute(i)
		v, why = im.attributes.put(i, v, why)
	} else if why != Understood {
		im.Repairs[RepairAttributeIndex]++
	}
	return profiledict.AttributeIndex(v), why == Understood
}

func (im *Importer) newAttribute(i int32) (int32, Reason) {
	src := im.src.attributes.At(int(i))
	key, why := im.String(src.KeyStrindex())
	if why != Understood {
		im.Repairs[RepairAttributeIndex]++
		return 0, why
	}
	unit, why := im.String(src.UnitStrindex())
	if why != Understood {
		im.Repairs[RepairAttributeIndex]++
		return 0, why
	}
	value := src.Value()
	if mayReference(value, maxValueDepth) {
		value = im.resolved().attribute(i)
	}
	value, ok := im.CleanValue(value)
	if !ok {
		return 0, StringOutOfRange
	}
	return int32(im.dict.Attributes.Intern(profiledict.Attribute{Key: key, Unit: unit, Value: profiledict.ValueOf(value)})), Understood
}
