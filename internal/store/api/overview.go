// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file answers what costs what: the services by their processor time and memory, in one pass over the totals of
// their profiles. Only those on the list get a time line, which has to be computed for each.

const (
	// The default and the bound of the services that are listed. Each has two time lines.
	defaultListed, maxListed = 30, 200
	overviewPoints           = 60
	// serviceBytes is what a service takes before it is written, overviewBytes what a time line and its row take.
	serviceBytes, overviewBytes = 256, 2 << 10
)

// cost is what a service used in a time and in the one of the same length before.
type cost struct{ now, before float64 }

type serviceCost struct {
	answers.ServiceInfo
	cpu, memory use
}

// use is what a service uses of the processor or of memory, and the type that has it; nil if none has.
type use struct {
	cost
	isKnown bool
	of      *answers.Series
}

func (c *serviceCost) use(profile string) *use {
	if profile == kind.Memory {
		return &c.memory
	}
	return &c.cpu
}

func (s *server) overview(r *request) (*answer, error) {
	sel := r.selection()
	search := strings.ToLower(r.params.Get("search"))
	by := r.params.OneOf("sort", "cpu", "memory", "change", "name")
	limit := r.params.Int("limit", defaultListed, 1, maxListed)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.From, sel.Until = r.bounded(&sel)
	list, err := s.Store.Services(r.Context(), r.meter)
	if err != nil {
		return nil, err
	}
	if err := r.meter.Grow(serviceBytes * len(list)); err != nil {
		return nil, err
	}
	costs := make([]serviceCost, len(list))
	byName := make(map[string]*serviceCost, len(list))
	for i := range list {
		costs[i].ServiceInfo = list[i]
		byName[list[i].Service] = &costs[i]
	}
	total, err := s.addCosts(r, sel, byName)
	if err != nil {
		return nil, err
	}
	costs = slices.DeleteFunc(costs, func(c serviceCost) bool {
		return !strings.Contains(strings.ToLower(c.Service), search)
	})
	sortCosts(costs, by)
	return s.writeOverview(r, sel, costs, limit, total)
}

// bounded returns the selected time. Without one it is the time that the store keeps.
func (r *request) bounded(sel *model.Selection) (from, until int64) {
	until = cmp.Or(sel.Until, r.now.UnixNano())
	from = cmp.Or(sel.From, until-int64(time.Hour))
	return min(from, until-1), until
}

// addCosts adds the processor time and the memory of all services, and returns the sums of the processors in use.
func (s *server) addCosts(r *request, sel model.Selection, byName map[string]*serviceCost) (total cost, err error) {
	span := sel.Until - sel.From
	wide := sel
	wide.From, wide.Service, wide.Type, wide.GroupBy = max(sel.From-span, 1), "", "", ""
	for _, profile := range []string{kind.ProcessCPU, kind.Memory} {
		wide.Profile = profile
		series, err := s.Store.Series(r.Context(), wide)
		if err != nil {
			return cost{}, err
		}
		chosen := chooseTypes(series, profile, byName)
		spent := map[string]*spending{}
		if err := s.readTotals(r, wide, sel.From, chosen, spent); err != nil {
			return cost{}, err
		}
		for service, used := range spent {
			c := byName[service].use(profile)
			c.isKnown = true
			if profile == kind.Memory {
				c.cost = used.states(sel.From)
				continue
			}
			c.cost = used.rates()
			total.now, total.before = total.now+c.now, total.before+c.before
		}
	}
	return total, nil
}

// chooseTypes returns the series of the one type of each service that has its processor time, or its memory in use.
func chooseTypes(series []answers.Series, profile string, byName map[string]*serviceCost) (chosen []answers.Series) {
	for i := range series {
		in := &series[i]
		c := byName[in.Service]
		if c == nil || typeRank(in, profile) == 0 {
			continue
		}
		if best := c.use(profile); best.of == nil || typeRank(in, profile) > typeRank(best.of, profile) {
			best.of = in
		}
	}
	for i := range series {
		in := series[i]
		c := byName[in.Service]
		if c == nil || typeRank(&in, profile) == 0 || c.use(profile).of.Type != in.Type {
			continue
		}
		in.TimesPeriod = in.Type.Unit == "count"
		chosen = append(chosen, in)
	}
	return chosen
}

// typeRank returns how well a type has what a service costs, 0 if it has not.
func typeRank(in *answers.Series, profile string) int {
	switch {
	case profile == kind.Memory && in.Values == kind.Gauge && in.Type.Unit == "bytes":
		return 1 + map[string]int{"inuse_space": 1}[in.Type.Type]
	case profile == kind.ProcessCPU && in.Values != kind.Gauge:
		return kind.CPURank(in.Type.Type, in.Type.Unit, in.PeriodType.Unit)
	}
	return 0
}

// scaleOf returns the nanoseconds or bytes of a value.
func scaleOf(in *answers.Series) float64 {
	if in.TimesPeriod {
		return float64(max(kind.NanosPer(in.PeriodType.Unit), 1))
	}
	return float64(max(kind.NanosPer(in.Type.Unit), 1))
}

// spending is what the profiles of a service add up to; of states, times the time for which they hold.
type spending struct {
	sum cost
	// The start of the first profile of each time, and the end of the last one, which may be after the time.
	firstBefore, first, end int64
}

// readTotals adds up the totals of the profiles of series, before and after a time.
func (s *server) readTotals(r *request, wide model.Selection, from int64, series []answers.Series,
	spent map[string]*spending) error {
	if len(series) == 0 {
		return nil
	}
	selected, err := s.Store.Select(r.Context(),
		answers.NewQuery(r.Context(), r.meter, series, wide.From, wide.Until, answers.Want{Profiles: true, Ends: true}))
	if err != nil {
		return err
	}
	defer selected.Close()
	return selected.Read(func(samples *answers.Samples) error {
		in := &series[samples.Series]
		used := spent[in.Service]
		if used == nil {
			if err := r.meter.Grow(serviceBytes); err != nil {
				return err
			}
			used = &spending{firstBefore: math.MaxInt64, first: math.MaxInt64}
			spent[in.Service] = used
		}
		value := 0.0
		for _, v := range samples.Values {
			value += float64(v) * samples.Weight
		}
		for _, v := range samples.Fractions {
			value += v * samples.Weight
		}
		value *= scaleOf(in)
		if in.Values == kind.Gauge {
			used.hold(value, samples.Start, min(samples.End, wide.Until), from)
			return nil
		}
		used.end = max(used.end, samples.End)
		if samples.Time < from {
			used.firstBefore, used.sum.before = min(used.firstBefore, samples.Time), used.sum.before+value
		} else {
			used.first, used.sum.now = min(used.first, samples.Time), used.sum.now+value
		}
		return nil
	})
}

// rates returns the sums by time: from the first profile of each of the two times to the first one after it, or the end
// of the last one.
func (u *spending) rates() cost {
	return cost{now: mean(u.sum.now, u.first, u.end), before: mean(u.sum.before, u.firstBefore, min(u.first, u.end))}
}

func mean(sum float64, first, end int64) float64 {
	if first >= end {
		return 0
	}
	return sum / float64(end-first)
}

// hold adds a state by the parts of its time before and after from.
func (u *spending) hold(value float64, start, end, from int64) {
	before := min(max(from-start, 0), end-start)
	u.sum.before += value * float64(before)
	u.sum.now += value * float64(end-start-before)
	u.firstBefore, u.end = min(u.firstBefore, start), max(u.end, end)
}

// states returns the means of the states over the time for which there are some.
func (u *spending) states(from int64) cost {
	return cost{now: mean(u.sum.now, max(from, u.firstBefore), u.end),
		before: mean(u.sum.before, u.firstBefore, min(from, u.end))}
}

func sortCosts(list []serviceCost, by string) {
	slices.SortFunc(list, func(a, b serviceCost) int {
		order := 0
		switch by {
		case "cpu":
			order = cmp.Or(cmp.Compare(b.cpu.now, a.cpu.now), cmp.Compare(b.memory.now, a.memory.now))
		case "memory":
			order = cmp.Compare(b.memory.now, a.memory.now)
		case "change":
			order = cmp.Compare(math.Abs(b.cpu.now-b.cpu.before), math.Abs(a.cpu.now-a.cpu.before))
		}
		return cmp.Or(order, strings.Compare(a.Service, b.Service))
	})
}

func (s *server) writeOverview(
	r *request, sel model.Selection, list []serviceCost, limit int, total cost,
) (*answer, error) {
	a := r.json()
	a.format(`{"from":%d,"until":%d,"services":%d,"cpu":`, millis(sel.From), millis(sel.Until), len(list))
	a.cost(total, true)
	a.raw(`,"list":`)
	a.list(min(limit, len(list)), func(i int) {
		in := &list[i]
		a.format(`{"service":%s,"profiles":%d,"from":%d,"until":%d,"cpu":`, quote(in.Service), in.Profiles, millis(in.From),
			millis(in.Until))
		a.cost(in.cpu.cost, in.cpu.isKnown)
		a.raw(`,"memory":`)
		a.cost(in.memory.cost, in.memory.isKnown)
		a.raw(`,"cpu_line":`)
		s.line(r, a, sel, in.cpu.of)
		a.raw(`,"memory_line":`)
		s.line(r, a, sel, in.memory.of)
		a.raw("}")
	})
	a.raw("}")
	return a, a.err
}

// cost writes a value and the one before, or null.
func (b *body) cost(c cost, has bool) {
	if !has {
		b.raw("null")
		return
	}
	b.raw(`{"now":`)
	b.float(rounded(c.now))
	b.raw(`,"before":`)
	b.float(rounded(c.before))
	b.raw("}")
}

// rounded returns a number with as many digits as a page can show.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// line writes the time line of a type of a service, or null.
func (s *server) line(r *request, a *answer, sel model.Selection, of *answers.Series) {
	if of == nil || a.err != nil {
		a.raw("null")
		return
	}
	sel.Service, sel.Profile, sel.Type, sel.GroupBy = of.Service, of.Profile, of.Type.String(), ""
	t, err := s.Store.Timeline(r.Context(), sel, overviewPoints, r.now)
	if err == nil {
		err = r.meter.Grow(overviewBytes)
	}
	if err != nil {
		a.err = err
		return
	}
	a.format(`{"type":%s,"from":%d,"step_ms":%d,"values":`, quote(t.Type.String()), millis(t.From), millis(t.Step))
	a.values(t.Groups[0].Values)
	a.raw("}")
}
