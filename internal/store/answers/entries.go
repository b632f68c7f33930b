// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// What the parts of a query take for each entry. A slice that grows by append takes up to 9/4 of its length, while it
// is copied; an index up to 40 bytes for an entry.
const (
	weightedProfileBytes = 144 // with its places in the lists of those that are read
	selectedBytes        = 640 // of a series in a list that grows
	sumBytes             = 8
	nodeBytes            = 96
	frameBytes           = 320                   // with three new strings and the caches of its location
	stringBytes          = 48                    // of a string of frames beside its bytes
	ruleBytes            = 512                   // of a type that a query selects
	cacheBytes           = 96                    // an entry of a map without its string
	rowBytes             = 96                    // of a table, without its values
	valueBytes           = 24                    // of a growing table; its old copy is collected later
	writtenBytes         = size.SampleBytes + 48 // of a row as a sample of pdata, with its pointer, a value and a time
	eventBytes           = 128
	laneBytes            = 512 // a set of attributes with its names of a lane and a state
	finishedBytes        = 61  // of a node while a tree is finished
	shownBytes           = 88  // of a frame in a tree
	orderBytes           = 64  // of a frame while nodes are ordered
	pointBytes           = 20  // of a line in a timeline
	dictionaryPart       = 4   // how many times its own bytes a dictionary takes as pdata
)

// moverBytes is what a mover.Mover from a dictionary takes.
func moverBytes(d *dictionary.Dictionary) int {
	return 4 * (d.Strings.Len() + d.Functions.Len() + d.Mappings.Len() + d.Locations.Len() + d.Stacks.Len() +
		d.Attributes.Len() +
		d.AttributeSets.Len() + d.Links.Len())
}
