// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// This file is the rule of time for each kind of values: for which time a profile counts, and for how much of it in a
// selection.

// First returns the start of the profile.
func (p *Profile) First() int64 {
	if p.Values == kind.Gauge {
		return p.Start - p.Duration
	}
	return p.Start
}

// Last returns the end of the profile.
func (p *Profile) Last() int64 {
	if p.Values == kind.Gauge {
		return p.Start
	}
	return p.End
}

// interval returns the time between a gauge and the next one of its series, as far as it is known.
func (p *Profile) interval() int64 { return (p.End - p.Start) / 2 }

// KeptAt returns the time of a profile, or under which it is kept.
func (p *Profile) KeptAt() int64 {
	if p.Time == 0 || p.Flags&IsMoved != 0 {
		return p.First()
	}
	return p.Time
}

// IsTimed reports whether its observations have times that can be shown.
func (p *Profile) IsTimed() bool { return p.Flags&(HasTimestamps|IsMoved) == HasTimestamps }

// Place sets the time under which a profile is kept that arrives now: its own with that of its observations, whose
// first and last times these are. It is the time of its arrival if it has neither, or if one of them is outside the
// window.
func (p *Profile) Place(first, last, now, window int64) {
	oldest, newest := now-window, now+int64(time.Minute)
	p.Start, p.End = p.Time, p.Time+min(p.Duration, math.MaxInt64-p.Time)
	isTimed, hasTime := p.Flags&HasTimestamps != 0, p.Time != 0
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
		p.Flags |= IsMoved
	}
}

// Overlap returns the part of [start, until) that lies in the selected time, and whether there is one. A time without a
// length has itself.
func (sel *Selection) Overlap(start, until int64) (from, end int64, ok bool) {
	from, end = max(start, sel.From), until
	if sel.Until != 0 {
		end = min(end, sel.Until)
	}
	return from, end, from < end || start == until && from == start && (sel.Until == 0 || start < sel.Until)
}

// Cuts reports whether only a part of a profile's timestamps lies in the selected time.
func (sel *Selection) Cuts(p *Profile) bool {
	return p.Values != kind.Gauge && p.IsTimed() && (sel.From > p.Start || sel.Until != 0 && sel.Until < p.End)
}

// Holds returns until when a gauge counts: until the next one of the selection if that comes within two intervals,
// otherwise for one.
func (sel *Selection) Holds(p *Profile, next int64) int64 {
	if next <= p.End && (sel.Until == 0 || next < sel.Until) {
		return next
	}
	return p.Start + p.interval()
}

// Shown returns what values are in answers.
func Shown(v kind.Values) kind.Values {
	if v == kind.Cumulative {
		return kind.Delta
	}
	return v
}

const (
	// firstGaugeInterval is the interval of the first gauge of a series.
	firstGaugeInterval = int64(time.Minute)
	// MaxGaugeInterval is the longest interval of gauges.
	MaxGaugeInterval = int64(time.Hour)
)

// GaugeTimes are the time of a series' last gauge, and that from the one before.
type GaugeTimes struct {
	At, Interval int64
	// Seen are hashes of the last profiles and their times.
	Seen []uint64
}

// maxSeen is how many of the last gauges of a series are known when they are sent again: those of five minutes, every
// ten seconds.
const maxSeen = 32

// Hold sets the time for which a gauge may count: two intervals, which are the time since the gauge before. One that
// was sent again does not count. hash is that of its content.
func (g *GaugeTimes) Hold(p *Profile, hash uint64, resolution int64) {
	isNew := g.See(p.End, hash)
	p.Start = p.End
	if isNew {
		p.End += 2 * max(cmp.Or(g.Interval, firstGaugeInterval), resolution)
	}
}

// See notes the time of a gauge, and reports whether it is a new one, or another part of one. A series that was missing
// for more than four intervals keeps its previous interval.
func (g *GaugeTimes) See(at int64, hash uint64) (isNew bool) {
	hash = dictionary.Combine(hash, uint64(at))
	if slices.Contains(g.Seen, hash) {
		return false
	}
	g.Seen = slices.Concat(g.Seen[max(0, len(g.Seen)+1-maxSeen):], []uint64{hash})
	if since := at - g.At; since > 0 {
		if g.At != 0 && (g.Interval == 0 || since <= 4*g.Interval) {
			g.Interval = min(since, MaxGaugeInterval)
		}
		g.At = at
	}
	return true
}
