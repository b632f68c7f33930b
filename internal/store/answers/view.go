// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// View is what a query reads: all blocks as they were when it began, oldest first. It holds no lock. Release ends it.
type View struct {
	Blocks []model.Block
	// lists are the blocks that list the series, if Blocks do not. instances returns how many resources a series of lists
	// represents.
	lists     []model.Block
	instances func(*model.BlockSeries) int
	// OnDisk is how many of the blocks are on disk; these come first.
	OnDisk int
	Memory *model.Memory
	// Drop takes a block out of the store that is damaged; damaged are those. The query goes on without them.
	Drop    func(model.Block, error)
	damaged map[model.Block]bool
	Release func()
	// timeTypes has, for types that count samples, that of the time for which one stands.
	timeTypes map[model.SampleType]model.SampleType
	// values has what the values of each type are, for a selection without profiles.
	values map[model.SampleType]kind.Values
}

// withoutDamaged takes a block out of the store if the error tells that it is damaged. The query goes on without it.
func (v *View) withoutDamaged(err error) error {
	var damaged *model.DamagedError
	if !errors.As(err, &damaged) {
		return err
	}
	if v.damaged == nil {
		v.damaged = map[model.Block]bool{}
	}
	v.damaged[damaged.Block] = true
	v.Drop(damaged.Block, err)
	return nil
}

// eachSeries calls use with the series of a service, or of all if it is empty, the oldest block first.
func (v *View) eachSeries(blocks []model.Block, service string,
	use func(b model.Block, list []model.BlockSeries) error) error {
	for _, b := range blocks {
		err := b.Series(service, v.Memory, func(list []model.BlockSeries) error { return use(b, list) })
		if err = v.withoutDamaged(err); err != nil {
			return err
		}
	}
	return v.Memory.Check()
}

// resolveTypes returns the sample type that a selection names, or else the profile's default, or all of them, in the
// order in which its pprof had them.
func (v *View) resolveTypes(sel *model.Selection, all bool) (types []model.SampleType, err error) {
	var list []ProfileInfo
	if sel.Service != "" && sel.Profile != "" {
		if list, err = v.profiles(sel.Service, sel.Profile); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: service %q has no profile %q", model.ErrNothing, model.Shorten(sel.Service),
			model.Shorten(sel.Profile))
	}
	v.timeTypes, v.values = map[model.SampleType]model.SampleType{}, map[model.SampleType]kind.Values{}
	for _, p := range list {
		v.values[p.Type] = p.Values
	}
	for _, p := range list {
		// A number of samples stands for the time that they took, unless the profile has that time as a type, too.
		_, own := v.values[p.PeriodType]
		if p.Type.Unit == "count" && kind.NanosPer(p.PeriodType.Unit) > 0 && !own {
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
