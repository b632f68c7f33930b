// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "google.golang.org/protobuf/encoding/protowire"

// EncodedBytes estimates the encoded size of all entries, as if all of their indices had the bytes of the highest one.
func (d *Dictionary) EncodedBytes() int {
	const (
		prefix         = 2 // a tag and a length
		number         = 3 // a field of a small number
		address        = 6
		linkIDs        = 2*prefix + 16 + 8
		attributeValue = 2 * prefix // without its content
	)
	index := func(entries int) int { return protowire.SizeVarint(uint64(entries)) }
	str, function, location := 1+index(d.Strings.Len()), 1+index(d.Functions.Len()), index(d.Locations.Len())
	return d.StringBytes() + prefix*d.Strings.Len() + (prefix+3*str+number)*d.Functions.Len() +
		(prefix+3*address+str+number)*d.Mappings.Len() + (prefix+2+address)*d.Locations.Len() +
		(prefix+function+number)*len(d.Locations.lines) + 2*prefix*d.Stacks.Len() + location*len(d.Stacks.flat) +
		(prefix+linkIDs)*d.Links.Len() + (prefix+str+attributeValue)*d.Attributes.Len()
}

// The memory of an entry: in its table, in the index that finds it, and as pdata.
const (
	indexBytes     = 16
	stringBytes    = 16 + indexBytes + 16
	functionBytes  = 24 + indexBytes + 48
	mappingBytes   = 64 + indexBytes + 96
	locationBytes  = 32 + indexBytes + 96
	lineBytes      = 24 + 48
	listBytes      = 4 + indexBytes + 40
	memberBytes    = 4 + 4
	linkBytes      = 24 + indexBytes + 48
	attributeBytes = 64 + indexBytes + 88
)

// BuildBytes estimates the memory that the entries take until CopyTo has written them, without strings. It takes no
// time.
func (d *Dictionary) BuildBytes() int {
	return d.Strings.Len()*stringBytes + d.Functions.Len()*functionBytes + d.Mappings.Len()*mappingBytes +
		d.Locations.Len()*locationBytes + len(d.Locations.lines)*lineBytes +
		(d.Stacks.Len()+d.AttributeSets.Len())*listBytes +
		(len(d.Stacks.flat)+len(d.AttributeSets.flat))*memberBytes + d.Links.Len()*linkBytes +
		d.Attributes.Len()*attributeBytes
}

// Bytes estimates the memory of tables with these numbers of entries, before CopyTo.
func (s Sizes) Bytes() int {
	return s.Strings*(16+indexBytes) + s.Functions*(24+indexBytes) + s.Locations*(32+indexBytes) + s.Lines*24 +
		s.Stacks*(4+indexBytes) + s.StackLocations*4
}
