// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"math"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// This file is the rule of time for each kind of values: for which time a profile counts, and for how much of it in a
// selection.

// first and last return the start and the end of the profile.
func (p *Profile) first() int64 {
	if p.Values == kind.Gauge {
		return p.Start - p.Duration
	}
	return p.Start
}

func (p *Profile) last() int64 {
	if p.Values == kind.Gauge {
		return p.Start
	}
	return p.End
}

// interval returns the time between a gauge and the next one of its series, as far as it is known.
func (p *Profile) interval() int64 { return (p.End - p.Start) / 2 }

// profileTime returns the time of a profile, or under which it is kept.
func (p *Profile) profileTime() int64 {
	if p.Time == 0 || p.Flags&isMoved != 0 {
		return p.first()
	}
	return p.Time
}

// isTimed reports whether its observations have times that can be shown.
func (p *Profile) isTimed() bool { return p.Flags&(hasTimestamps|isMoved) == hasTimestamps }

// place sets the time under which a profile is kept that arrives now: its own with that of its observations, whose
// first and last times these are. It is the time of its arrival if it has neither, or if one of them is outside the
// window.
func (p *Profile) place(first, last, now, window int64) {
	oldest, newest := now-window, now+int64(time.Minute)
	p.Start, p.End = p.Time, p.Time+min(p.Duration, math.MaxInt64-p.Time)
	isTimed, hasTime := p.Flags&hasTimestamps != 0, p.Time != 0
	isOutside := hasTime && (p.End < oldest || p.End > newest) || isTimed && (last < oldest || first > newest)
	if isTimed {
		first, last := max(first, oldest), min(last, newest)
		if !hasTime || first < p.Start {
			p.Start = first - 1 // it ends at its timestamp
		}
		if !hasTime || last >= p.End {
			p.End = last + 1 // ends are exclusive
		}
	}
	if isOutside || !hasTime && !isTimed {
		p.Start, p.End = now-min(p.Duration, window), now
	}
	if isOutside {
		p.Flags |= isMoved
	}
}

// overlap returns the part of [start, until) that lies in the selected time, and whether there is one. A time without a
// length has itself.
func (sel *Selection) overlap(start, until int64) (from, end int64, ok bool) {
	from, end = max(start, sel.From), until
	if sel.Until != 0 {
		end = min(end, sel.Until)
	}
	return from, end, from < end || start == until && from == start && (sel.Until == 0 || start < sel.Until)
}

// cuts reports whether only a part of a profile's timestamps lies in the selected time.
func (sel *Selection) cuts(p *Profile) bool {
	return p.Values != kind.Gauge && p.isTimed() && (sel.From > p.Start || sel.Until != 0 && sel.Until < p.End)
}

// holds returns until when a gauge counts: until the next one of the selection if that comes within two intervals,
// otherwise for one.
func (sel *Selection) holds(p *Profile, next int64) int64 {
	if next <= p.End && (sel.Until == 0 || next < sel.Until) {
		return next
	}
	return p.Start + p.interval()
}

// shownValues returns what values are in answers.
func shownValues(v kind.Values) kind.Values {
	if v == kind.Cumulative {
		return kind.Delta
	}
	return v
}

const (
	// firstGaugeInterval is the interval of the first gauge of a series.
	firstGaugeInterval = int64(time.Minute)
	maxGaugeInterval   = int64(time.Hour)
)

// gaugeTimes are the time of a series' last gauge, and that from the one before.
type gaugeTimes struct{ at, interval int64 }

// hold sets the time for which a gauge may count: two intervals, which are the time since the gauge before.
func (g *gaugeTimes) hold(p *Profile, resolution int64) {
	g.see(p.End)
	p.Start, p.End = p.End, p.End+2*max(cmp.Or(g.interval, firstGaugeInterval), resolution)
}

// see notes the time of a gauge. A series that was missing for more than four intervals keeps its previous interval.
func (g *gaugeTimes) see(at int64) {
	since := at - g.at
	if g.at != 0 && since > 0 && (g.interval == 0 || since <= 4*g.interval) {
		g.interval = min(since, maxGaugeInterval)
	}
	g.at = max(g.at, at)
}
