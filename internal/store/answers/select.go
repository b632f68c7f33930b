// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// resolveTypes returns the sample type that a selection names, or else the profile's default, or all of them, in the
// order in which its pprof had them.
func (v *View) resolveTypes(sel *model.Selection, all bool) (types []model.SampleType, err error) {
	var list []ProfileInfo
	if sel.Service != "" && sel.Profile != "" {
		if list, err = v.profiles(sel.Service, sel.Profile, func(*ProfileInfo, *model.BlockSeries) {}); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: service %q has no profile %q", model.ErrNothing, model.Shorten(sel.Service),
			model.Shorten(sel.Profile))
	}
	v.timeTypes = map[model.SampleType]model.SampleType{}
	own := make(map[model.SampleType]bool, len(list))
	for _, p := range list {
		own[p.Type] = true
	}
	for _, p := range list {
		// A number of samples stands for the time that they took, unless the profile has that time as a type, too.
		if p.Type.Unit == "count" && kind.NanosPer(p.PeriodType.Unit) > 0 && !own[p.PeriodType] {
			v.timeTypes[p.Type] = p.PeriodType
		}
		if all || p.Type.Is(sel.Type) && (sel.Type != "" || p.Default) {
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
		names = append(names, model.Shorten(p.Type.String()))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return nil, fmt.Errorf("%w: profile %q has no sample type %q; it has %s",
		model.ErrNothing, model.Shorten(sel.Profile), model.Shorten(sel.Type), strings.Join(names, ", "))
}

const maxNamedTypes = 20
