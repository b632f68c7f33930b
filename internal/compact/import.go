// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Importer moves entries of a message's dictionary into a Dictionary that many messages share:
// only what is asked for, with all that it refers to, each entry once. Nothing about the message is
// trusted: its tables may be missing, hold values twice, begin with something other than the zero
// value, and refer to entries that do not exist.
//
// An index 0 means what stands at 0; a table without entries reads as if its zero value stood there. The message is
// only read; what stays in the Dictionary of it are strings.
type Importer struct {
	dict *profiledict.Dictionary
	src  source

	strings, functions, mappings, locations, stacks, attributes, links remap

	reachedStacks, reachedLocations, reachedMappings, reachedFunctions marks

	// Repairs counts what was put right since the last Reset, by fault.
	Repairs [NumRepairs]int

	// keySeen[k] says which attribute set had the key k last, and where from.
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

// Reason says why an entry cannot be understood: which index, in it or below it, is out of range.
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
	// RepairLinkIndex is a link that is out of range: the sample has none.
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

// find gives what is known of entry i. It is not done where the entry exists and was not asked for yet.
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

// Link imports a link. 0 is none, whatever stands there; out of range it reads as none and is counted.
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
