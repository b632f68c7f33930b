// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"math"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// engineSum has the class that a sum of the answer belongs to. Of totals, the next profile subtracts the same sum: next
// is its class if that is another one, and factor what the sum is multiplied by there. Classes are those of addends
// plus one; 0 is no class.
type engineSum struct {
	class, next int
	factor      float64
}

// engineUse is how a profile counts: for a sum by a weight.
type engineUse struct {
	engineSum
	weight float64
}

// add adds a weight for a class.
func (u *engineUse) add(class int, weight float64) {
	if u.class != 0 && u.class != class {
		u.next, u.factor = class, weight/u.weight
		return
	}
	if u.class, u.weight = class, u.weight+weight; u.weight == 0 {
		*u = engineUse{}
	}
}

// spans makes the spans of a query: profiles of a series that follow each other and count alike are one.
type spans struct {
	query EngineQuery
	sums  []engineSum
	bySum map[engineSum]int32
	// partial are hours in which profiles of a series do not count alike.
	partial map[int64]bool
}

func newSpans(p *enginePart, list []model.Addend, want model.SumsWanted) *spans {
	of := p.block.listed[p.service]
	s := &spans{query: EngineQuery{From: math.MaxInt64, SumsWanted: want}, bySum: map[engineSum]int32{},
		partial: map[int64]bool{}}
	profiles := map[string]bool{}
	for ofSeries := range model.Runs(list, func(a, b *model.Addend) bool { return a.Series == b.Series }) {
		sr := ofSeries[0].Series
		profiles[sr.Profile] = true
		s.add(&p.Series[sr.First], ofSeries)
	}
	for i := range of.types {
		if t := &of.types[i]; t.typ() == list[0].Series.Type && profiles[t.profile()] {
			s.query.Types = append(s.query.Types, *t)
		}
	}
	if !want.Attributes && want.Keys == nil && !want.Links && !want.Timestamps && len(s.sums) > 0 {
		s.wholeHours(of)
	}
	return s
}

// add adds the profiles of a series.
func (s *spans) add(of *head.Series, list []model.Addend) {
	uses := make([]engineUse, len(of.Chunks))
	for _, a := range list {
		uses[a.Profile.At].add(a.Class+1, a.Weight)
		if a.Profile.Values == kind.Cumulative && a.Profile.Flags&(model.IsBaseline|model.IsReset) == 0 && !s.query.Counts {
			uses[a.Profile.At-1].add(a.Class+1, -a.Weight)
		}
	}
	q, from := &s.query, int64(0)
	for i := range of.Chunks {
		t, u := of.Chunks[i].Time, uses[i]
		isSame := i > 0 && u == uses[i-1]
		switch {
		case u.class == 0:
		case isSame:
			q.Spans[len(q.Spans)-1].Until = t
		default:
			whole := math.Trunc(u.weight)
			q.Spans = append(q.Spans, EngineSpan{
				Series: idOf(&of.BlockSeries), From: from, Until: t, Sum: s.sum(u.engineSum), Whole: int64(whole),
				Part: u.weight - whole,
			})
		}
		if i > 0 && !isSame && hourOf(from-1) == hourOf(t) {
			s.partial[hourOf(t)] = true
		}
		if u.class != 0 {
			q.From, q.Until = min(q.From, t), max(q.Until, t)
		}
		from = t + 1
	}
}

func (s *spans) sum(of engineSum) int32 {
	i, ok := s.bySum[of]
	if !ok {
		i = int32(len(s.sums))
		s.sums, s.bySum[of] = append(s.sums, of), i
	}
	return i
}

const hourNanos = int64(time.Hour)

// hourOf returns the start of the hour of a time.
func hourOf(t int64) int64 { return t - (t%hourNanos+hourNanos)%hourNanos }

// wholeHours sets the bounds of the hours that are listed as a whole, and in which all profiles of a series count
// alike.
func (s *spans) wholeHours(of engineListed) {
	from, until := max(hourOf(of.from+hourNanos-1), hourOf(s.query.From)), hourOf(s.query.Until)+hourNanos
	if of.until != 0 {
		until = min(until, hourOf(of.until))
	}
	middle := from + (until-from)/2
	for hour := range s.partial {
		if hour < middle {
			from = max(from, hour+hourNanos)
		} else {
			until = min(until, hour)
		}
	}
	if from < until {
		s.query.WholeFrom, s.query.WholeUntil = from, until
	}
}

func idOf(sr *model.BlockSeries) (id EngineID) {
	copy(id[:], sr.ID[:])
	return id
}
