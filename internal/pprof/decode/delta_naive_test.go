// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// naiveBaseline computes deltas in the simplest way: identities are names, and tables are maps.
type naiveBaseline struct {
	taken  bool
	header string
	time   int64
	at     time.Time
	counts map[string][]int64
}

// naiveDelta is what Decode must return: the profiles of cumulative types and of the others. Either is nil if it is
// empty.
type naiveDelta struct {
	counted, present *profile.Profile
	stats            DeltaStats
	next             naiveBaseline
}

func naiveIsCumulative(t *profile.ValueType) bool {
	isState := strings.HasPrefix(t.Type, "inuse") || strings.HasPrefix(t.Type, "live_") ||
		slices.Contains([]string{"live", "objects", "space", "goroutine", "goroutines", "threadcreate"}, t.Type)
	return !isState
}

// delta requires p to have sample types, and no negative values.
func (b *naiveBaseline) delta(p *profile.Profile, at time.Time) naiveDelta {
	next := naiveBaseline{taken: true, time: max(0, p.TimeNanos), at: at, counts: map[string][]int64{},
		header: fmt.Sprintf("%q %q %d", typeNames(p.SampleType), typeNames([]*profile.ValueType{p.PeriodType}), p.Period)}
	var cumulative, present []int
	for t, v := range p.SampleType {
		if naiveIsCumulative(v) {
			cumulative = append(cumulative, t)
		} else {
			present = append(present, t)
		}
	}
	if len(cumulative) == 0 {
		return naiveDelta{present: p, next: *b}
	}
	for _, s := range p.Sample {
		name := naiveIdentity(s)
		if next.counts[name] == nil {
			next.counts[name] = make([]int64, len(cumulative))
		}
		for k, t := range cumulative {
			sum := new(big.Int).Add(big.NewInt(next.counts[name][k]), big.NewInt(s.Value[t]))
			next.counts[name][k] = math.MaxInt64
			if sum.IsInt64() {
				next.counts[name][k] = sum.Int64()
			}
		}
	}
	d := naiveDelta{next: next}
	d.stats.First = !b.taken
	if b.taken {
		d.stats.Reason = b.restart(&next)
		d.stats.Restarted = d.stats.Reason != RestartNone
	}
	if len(present) > 0 {
		d.present = project(p, present, func(s *profile.Sample) []int64 { return s.Value })
	}
	if d.stats != (DeltaStats{}) {
		return d
	}
	spent := map[string]bool{}
	d.counted = project(p, cumulative, func(s *profile.Sample) []int64 {
		name, values := naiveIdentity(s), make([]int64, len(s.Value))
		for k, t := range cumulative {
			if before := b.counts[name]; !spent[name] && before != nil {
				values[t] = next.counts[name][k] - before[k]
			} else if !spent[name] {
				values[t] = next.counts[name][k]
			}
		}
		spent[name] = true
		return values
	})
	d.counted = withoutEmptyTypes(d.counted)
	d.counted.TimeNanos, d.counted.DurationNanos = b.at.UnixNano(), at.Sub(b.at).Nanoseconds()
	if b.time > 0 && next.time > b.time {
		d.counted.TimeNanos, d.counted.DurationNanos = b.time, next.time-b.time
	}
	if len(d.counted.SampleType) == 0 {
		d.counted = nil
	}
	return d
}

func (b *naiveBaseline) restart(next *naiveBaseline) RestartReason {
	if b.header != next.header {
		return RestartTypesChanged
	}
	if next.time != 0 && next.time < b.time {
		return RestartTimeWentBack
	}
	vanished := false
	for name, before := range b.counts {
		now, ok := next.counts[name]
		for k, v := range before {
			vanished = vanished || !ok && v > 0
			if ok && now[k] < v-v>>50 {
				return RestartValueFell
			}
		}
	}
	if vanished {
		return RestartStackVanished
	}
	for name, before := range b.counts {
		for k := range next.counts[name] {
			next.counts[name][k] = max(next.counts[name][k], before[k])
		}
	}
	return RestartNone
}

// project returns a profile of some of p's types, with other values. (profile.Copy would drop labels whose text is
// empty.)
func project(p *profile.Profile, types []int, values func(*profile.Sample) []int64) *profile.Profile {
	out := &profile.Profile{
		Mapping: p.Mapping, Location: p.Location, Function: p.Function, Comments: p.Comments, DocURL: p.DocURL,
		DropFrames: p.DropFrames, KeepFrames: p.KeepFrames, TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos,
		PeriodType: p.PeriodType, Period: p.Period,
	}
	for _, t := range types {
		out.SampleType = append(out.SampleType, p.SampleType[t])
		if p.SampleType[t].Type == p.DefaultSampleType {
			out.DefaultSampleType = p.DefaultSampleType
		}
	}
	for _, s := range p.Sample {
		all, projected := values(s), *s
		projected.Value = nil
		for _, t := range types {
			projected.Value = append(projected.Value, all[t])
		}
		out.Sample = append(out.Sample, &projected)
	}
	return out
}

func withoutEmptyTypes(p *profile.Profile) *profile.Profile {
	var types []int
	for t := range p.SampleType {
		if slices.ContainsFunc(p.Sample, func(s *profile.Sample) bool { return s.Value[t] != 0 }) {
			types = append(types, t)
		}
	}
	return project(p, types, func(s *profile.Sample) []int64 { return s.Value })
}

func typeNames(types []*profile.ValueType) (names []string) {
	for _, t := range types {
		if t != nil {
			names = append(names, t.Type, t.Unit)
		} else {
			names = append(names, "", "")
		}
	}
	return names
}

func naiveIdentity(s *profile.Sample) string {
	var b strings.Builder
	for _, l := range s.Location {
		fmt.Fprintf(&b, "%x %t", l.Address, l.IsFolded)
		if m := l.Mapping; m != nil {
			fmt.Fprintf(&b, " in %x %x %x %q %q", m.Start, m.Limit, m.Offset, m.File, m.BuildID)
		}
		for _, line := range l.Line {
			fmt.Fprintf(&b, " %d:%d", line.Line, line.Column)
			if f := line.Function; f != nil {
				fmt.Fprintf(&b, " %q %q %d", f.Name, f.SystemName, f.StartLine)
				if l.Address == 0 {
					fmt.Fprintf(&b, " %q", f.Filename)
				}
			}
		}
		b.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Label)) {
		if len(s.Label[name]) > 0 {
			fmt.Fprintf(&b, "%q=%q\n", name, s.Label[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.NumLabel)) {
		units := make([]string, len(s.NumLabel[name]))
		copy(units, s.NumUnit[name])
		if len(units) > 0 {
			fmt.Fprintf(&b, "%q=%d %q\n", name, s.NumLabel[name], units)
		}
	}
	return b.String()
}
