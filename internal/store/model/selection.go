// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// Attribute is a key with its value as a string.
type Attribute struct{ Key, Value string }

// Selection defines the samples of a query.
type Selection struct {
	Service, Profile string
	// Type is a sample type, `cpu` or `cpu/nanoseconds`. Empty means the profile's default.
	Type string
	// From and Until are Unix nanoseconds. 0 means no bound. A profile belongs to the selection by the part of its time
	// that lies in [From, Until); if it has timestamps, the observations inside do.
	From, Until int64
	// Attributes must all match, on the profile, the resource or the sample. Of several with one key, one must match.
	Attributes []Attribute
	// GroupBy is the key of an attribute whose values divide the answer into groups, or empty.
	GroupBy string
	// LastState selects the last state of each instance instead of the mean.
	LastState bool
	// Timestamps makes Merge keep the time of each observation. Otherwise observations of one stack are added up.
	Timestamps bool
	// Before is 0, or leaves out profiles of which no observation, which lasts for its value, can have begun before it.
	Before int64
	// Meter reserves the memory of the query before it is taken, and has that of the result afterwards; nil means no
	// bound. A comparison uses that of its first selection.
	Meter *size.Meter
}

// ErrNothing is wrapped by errors for selections without profiles.
var ErrNothing = errors.New("no such profiles")

// ErrTooLarge is wrapped by errors for answers that would need too much memory.
var ErrTooLarge = errors.New("the answer would be too large")

// SampleType is the type and unit of a profile's values.
type SampleType struct{ Type, Unit string }

// String returns `cpu/nanoseconds`.
func (t SampleType) String() string { return t.Type + "/" + t.Unit }

// Named returns the type with the name of its unit.
func (t SampleType) Named() SampleType { return SampleType{t.Type, kind.UnitName(t.Unit)} }

// Is reports whether a selection that names a type, or none, selects this one. The name may be as the producer has it:
// a long one before it was cut, and with another name of the unit.
func (t SampleType) Is(name string) bool {
	if name == "" || name == t.Type || name == t.String() {
		return true
	}
	slash := max(strings.LastIndexByte(name, '/'), 0)
	return len(name) >= kind.MaxNameBytes && kind.CutName(name) == t.Type ||
		slash > 0 && (SampleType{kind.CutName(name[:slash]), kind.CutName(name[slash+1:])}).Named() == t
}

// Shorten cuts a string that a client or a producer chose, for a message.
func Shorten(s string) string { return dictionary.Shorten(s, 100) }

// IsSelected reports whether the names and the time of a series are selected. Labels cost more, and come after.
func (sr *BlockSeries) IsSelected(sel *Selection) bool {
	return (sel.Profile == "" || sr.Profile == sel.Profile) && sr.Type.Is(sel.Type) && sr.Until >= sel.From &&
		(sel.Until == 0 || sr.From < sel.Until)
}
