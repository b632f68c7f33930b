// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"
)

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
