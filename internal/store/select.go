// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
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
	// before is 0, or leaves out profiles of which no observation, which lasts for its value, can have begun before it.
	before int64
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

// is reports whether a selection that names a type, or none, selects this one.
func (t SampleType) is(name string) bool { return name == "" || name == t.Type || name == t.String() }

// resolveTypes returns the sample type that a selection names, or else the profile's default, or all of them, in the
// order in which its pprof had them.
func (v *view) resolveTypes(sel *Selection, all bool) (types []SampleType, err error) {
	var list []ProfileInfo
	if sel.Service != "" && sel.Profile != "" {
		if list, err = v.profiles(sel.Service, sel.Profile, func(*ProfileInfo, *BlockSeries) {}); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: service %q has no profile %q", ErrNothing, Shorten(sel.Service), Shorten(sel.Profile))
	}
	v.timeTypes = map[SampleType]SampleType{}
	own := make(map[SampleType]bool, len(list))
	for _, p := range list {
		own[p.Type] = true
	}
	for _, p := range list {
		// What counts samples stands for their time, unless the profile has that beside them.
		if p.Type.Unit == "count" && TimeUnit(p.PeriodType.Unit) > 0 && !own[p.PeriodType] {
			v.timeTypes[p.Type] = p.PeriodType
		}
		if all || p.Type.is(sel.Type) && (sel.Type != "" || p.Default) {
			types = append(types, p.Type)
		}
	}
	switch {
	case all:
		return types, nil
	case len(types) > 0:
		return types[:1], nil // of those that differ in their units
	}
	var names []string
	for _, p := range list[:min(len(list), maxNamedTypes)] {
		names = append(names, Shorten(p.Type.String()))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return nil, fmt.Errorf("%w: profile %q has no sample type %q; it has %s",
		ErrNothing, Shorten(sel.Profile), Shorten(sel.Type), strings.Join(names, ", "))
}

const maxNamedTypes = 20

// Shorten cuts a string that a client or a producer chose, for a message.
func Shorten(s string) string { return dictionary.Shorten(s, 100) }

// overlap returns the part of [start, until) that lies in the selected time, and whether there is one. A time without a
// length has itself.
func (sel *Selection) overlap(start, until int64) (from, end int64, ok bool) {
	from, end = max(start, sel.From), until
	if sel.Until != 0 {
		end = min(end, sel.Until)
	}
	return from, end, from < end || start == until && from == start && (sel.Until == 0 || start < sel.Until)
}

// shownValues returns what values are in answers.
func shownValues(v kind.Values) kind.Values {
	if v == kind.Cumulative {
		return kind.Delta
	}
	return v
}
