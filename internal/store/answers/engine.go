// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// An engine has profiles as rows of samples. It answers as any Block does, and its Parts are model.Adders:
//
//   - EngineSource lists the profiles of a query without their samples (Engine.Types, Series, Profiles). They make a
//     snapshot as those in memory do, so deltas of totals, times of gauges and labels are those of a Store.
//   - The loop of all queries (scan.go) chooses among them, and weighs them. Profiles that count alike for an answer
//     are one class (added.go).
//   - Part.Add makes spans of them: profiles of a series that follow each other and count alike (engine_spans.go). The
//     engine adds up the rows of each span times its weight, by stack and by what else the answer tells apart
//     (Engine.Rows), of whole hours from sums that it has. So what travels grows with the distinct stacks of an answer.
//   - Which samples are selected by their attributes, and in which group they count, the loop decides: of attributes,
//     rows have those that matter.

// ErrEngine is wrapped by errors of an engine that does not answer, or refuses a query.
var ErrEngine = errors.New("the engine of the profiles")

// EngineSource is a Source of an engine.
type EngineSource struct {
	*Querier
	engine             Engine
	window, resolution time.Duration
	now                func() time.Time
}

// NewEngineSource returns a source of an engine, of which a list has the last window. Resolution is the finest step of
// a timeline.
func NewEngineSource(e Engine, window, resolution time.Duration, now func() time.Time) *EngineSource {
	s := &EngineSource{engine: e, window: window, resolution: resolution, now: now}
	s.Querier = NewQuerier(s)
	return s
}

// Status returns the bounds.
func (s *EngineSource) Status(context.Context) (Status, error) {
	return Status{Window: s.window, Resolution: s.resolution}, nil
}

const (
	// maxEngineTypes bounds the list of what there is, maxEngineSeries and maxEngineProfiles bound the series and the
	// profiles of a query.
	maxEngineTypes    = 100_000
	maxEngineSeries   = 200_000
	maxEngineProfiles = 4_000_000
	// Profiles before a selection have a part in it: deltas that go on, and states and totals before the first one, as in
	// forgetAfter.
	deltaMargin = int64(time.Hour)
	stateMargin = int64(head.ForgetAfter)
)

// types lists the types of a service, or of all services, that have profiles in the window or in [from, until), in the
// order of services, profiles and types: an engine does not know the order of a pprof's types.
func (s *EngineSource) types(
	ctx context.Context, memory *model.Memory, service string, from, until int64,
) (list []EngineType, err error) {
	start := s.now().Add(-s.window).UnixNano()
	if from != 0 && from < start {
		start = from
	}
	if until != 0 {
		until = max(until, s.now().Add(time.Minute).UnixNano())
	}
	err = s.engine.Types(ctx, service, start, until, func(t *EngineType) error {
		if len(list) == maxEngineTypes {
			return fmt.Errorf("%w: there are more than %d types of profiles; choose a service", model.ErrTooLarge,
				maxEngineTypes)
		}
		list = append(list, *t)
		return memory.Grow(catalogBytes +
			2*(len(t.Service)+len(t.Stated)+len(t.Type.Type)+len(t.Type.Unit)+len(t.PeriodType.Type)+len(t.PeriodType.Unit)))
	})
	slices.SortFunc(list, func(a, b EngineType) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.profile(), b.profile()),
			compareTypes(a.Type, b.Type))
	})
	return list, err
}

// compareTypes orders types as most producers do.
func compareTypes(a, b model.SampleType) int {
	if (a.Type == "samples") != (b.Type == "samples") {
		if a.Type == "samples" {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Unit, b.Unit))
}

// view returns a view that has the types of a service, or of all if service is empty.
func (s *EngineSource) view(
	ctx context.Context, memory *model.Memory, service string, sel *model.Selection,
) (v *View, e *engineBlock, err error) {
	e = &engineBlock{
		block: head.New(time.Time{}), ctx: ctx, engine: s.engine, bySeries: map[engineSeries]int32{},
		found: map[EngineID]engineFound{}, listed: map[string]engineListed{},
	}
	e.block.ByKey = nil // parts add to the dictionary while they are read
	v = &View{Memory: memory, Release: func() {}}
	if e.types, err = s.types(ctx, memory, service, sel.From, sel.Until); err != nil {
		return nil, nil, err
	}
	strs := &e.block.Dict.Strings
	strs.Intern(sel.GroupBy) // the filter knows no others
	for _, a := range sel.Attributes {
		strs.Intern(a.Key)
	}
	types := head.New(time.Time{}) // of series without profiles
	for i := range e.types {
		t := &e.types[i]
		types.AddSeries(model.BlockSeries{
			Service: t.Service, Profile: t.profile(), Type: t.typ(), Period: t.PeriodType.Named(),
			Profiles: 1, Position: int32(i), Values: t.valuesOf(t.Temporality, t.Duration, t.IsTimed),
			From: t.From, Until: t.Until, Samples: t.Samples, Timestamps: t.IsTimed,
		}, nil)
	}
	v.lists = []model.Block{head.SnapshotOf(types, memory)}
	v.instances = func(sr *model.BlockSeries) int { return e.types[sr.Position].Instances }
	return v, e, memory.Grow(0)
}

// list lists the profiles of the wanted types that have a part in the selected time, with what is needed of those
// around.
func (s *EngineSource) list(ctx context.Context, e *engineBlock, v *View, sel *model.Selection,
	wanted func(*EngineType) bool) error {
	types := slices.DeleteFunc(slices.Clone(e.types), func(t EngineType) bool { return !wanted(&t) })
	for of := range model.Runs(types, func(a, b *EngineType) bool { return a.Service == b.Service }) {
		if err := s.listService(ctx, e, v, of, sel); err != nil {
			return err
		}
	}
	e.Snapshot = head.SnapshotOf(e.block, v.Memory)
	v.Blocks = append(v.Blocks, e)
	return v.Memory.Grow(0)
}

func (s *EngineSource) listService(ctx context.Context, e *engineBlock, v *View, types []EngineType,
	sel *model.Selection) error {
	from, until := sel.From, sel.Until
	if from == 0 {
		from = s.now().Add(-s.window).UnixNano()
	}
	before, after := deltaMargin, int64(0)
	for i := range types {
		switch types[i].valuesOf(types[i].Temporality, 0, false) {
		case kind.Cumulative:
			before, after = stateMargin, stateMargin
		case kind.Gauge:
			before = stateMargin
		}
	}
	if from -= before; until != 0 {
		until = min(until, math.MaxInt64-after) + after
	}
	e.listed[types[0].Service] = engineListed{types, from, until}
	err := s.engine.Series(ctx, types[0].Service, from, until,
		func(id EngineID, resource, profile []model.Attribute) error {
			if len(e.found) >= maxEngineSeries {
				return fmt.Errorf("%w: service %q has more than %d series", model.ErrTooLarge, model.Shorten(types[0].Service),
					maxEngineSeries)
			}
			before := e.block.Dict.MemoryBytes()
			found := engineFound{resource: e.attributes(resource), profile: e.attributes(profile)}
			for _, a := range profile {
				if a.Key == kind.TemporalityAttribute {
					found.temporality = a.Value
				}
			}
			e.found[id] = found
			return v.Memory.Grow(head.SeriesBytes + 2*cacheBytes*(len(resource)+len(profile)) + e.block.Dict.MemoryBytes() -
				before)
		})
	if err != nil {
		return err
	}
	n := 0
	return s.engine.Profiles(ctx, types, from, until, func(p *EngineProfile) error {
		if n++; n > maxEngineProfiles {
			return fmt.Errorf("%w: there are more than %d profiles", model.ErrTooLarge, maxEngineProfiles)
		}
		e.addProfile(&types[p.Type], p, int64(s.resolution))
		return v.Memory.Grow(2 * head.ChunkBytes)
	})
}

// View implements Source: the profiles of the query are listed.
func (s *EngineSource) View(ctx context.Context, q *Query) (*View, error) {
	service := q.Service
	if services := q.Services(); len(services) == 1 {
		service = services[0]
	}
	v, e, err := s.view(ctx, q.Memory, service, &q.Selection)
	if err != nil {
		return nil, err
	}
	var wanted func(*EngineType) bool
	switch {
	case q.Reads == ReadsTypes:
		return v, nil
	case q.Reads == ReadsSeries:
		wanted = func(t *EngineType) bool {
			return (q.Profile == "" || q.Profile == t.profile()) && t.typ().Is(q.Type)
		}
	case q.Only != nil:
		wanted = func(t *EngineType) bool {
			return slices.ContainsFunc(q.Only, func(o Series) bool {
				return o.Service == t.Service && o.Profile == t.profile() && o.Type == t.typ()
			})
		}
	case q.TimedOnly && q.Profile == "":
		wanted = func(t *EngineType) bool { return t.IsTimed }
	default:
		all := q.allTypes()
		types, err := v.resolveTypes(&q.Selection, all)
		if err != nil {
			return nil, err
		}
		wanted = func(t *EngineType) bool { return t.profile() == q.Profile && (all || t.typ() == types[0]) }
	}
	return v, s.list(ctx, e, v, &q.Selection, wanted)
}
