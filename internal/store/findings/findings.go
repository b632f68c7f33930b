// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// Finding is one sentence, with what shows it.
type Finding struct {
	Rule string `json:"rule"`
	// Text is the sentence with its number, Advice what to look at next.
	Text   string `json:"text"`
	Advice string `json:"advice"`
	// Link is the state of the page that shows it, as in its URL after #.
	Link string `json:"link"`
}

const (
	maxNodes = 100_000
	day      = int64(24 * time.Hour)
	// startUp is how long a new version loads, compiles and fills its caches, which it does once.
	startUp = int64(2 * time.Minute)
)

// search is one look at a service. sel has its service and a time with both ends.
type search struct {
	*answers.Querier
	ctx   context.Context //nolint:containedctx // it is that of one call
	sel   model.Selection
	now   time.Time
	types []answers.ProfileInfo
	found []Finding
	// unjudged has what there are too few profiles for.
	unjudged []string
}

// Of returns what there is to say of a service in a time, which the selection has with its service, and what could not
// be judged. It is silent about everything else.
func Of(
	ctx context.Context, q *answers.Querier, sel model.Selection, now time.Time,
) (found []Finding, unjudged []string, err error) {
	types, err := q.Catalog(ctx, sel.Service, sel.Meter)
	if err != nil {
		return nil, nil, err
	}
	sel.GroupBy, sel.Attributes = "", nil
	s := &search{Querier: q, ctx: ctx, sel: sel, now: now, types: types}
	for _, look := range []func() error{s.growth, s.leaves, s.waiting, s.leak} {
		if err := look(); err != nil && !errors.Is(err, model.ErrNothing) {
			return nil, nil, err
		}
	}
	return s.found, s.unjudged, nil
}

func (s *search) miss(what string) { s.unjudged = append(s.unjudged, what) }

// typeOf returns the type of a profile that ranks highest, or nil if all are 0.
func (s *search) typeOf(profile string, rank func(*answers.ProfileInfo) int) (best *answers.ProfileInfo) {
	highest := 0
	for i := range s.types {
		in := &s.types[i]
		if in.Service != s.sel.Service || in.Profile != profile {
			continue
		}
		if n := rank(in); n > highest {
			best, highest = in, n
		}
	}
	return best
}

// processorTime returns the type that has the processor time, or counts samples of it.
func (s *search) processorTime() *answers.ProfileInfo {
	return s.typeOf(kind.ProcessCPU, func(in *answers.ProfileInfo) int {
		if in.Values == kind.Gauge {
			return 0
		}
		return kind.CPURank(in.Type.Type, in.Type.Unit, in.PeriodType.Unit)
	})
}

// counts returns the type that counts samples of processor time.
func (s *search) counts() *answers.ProfileInfo {
	return s.typeOf(kind.ProcessCPU, func(in *answers.ProfileInfo) int {
		if _, isCount := kind.CPUTime(in.Type.Type, in.Type.Unit, "cpu", in.PeriodType.Unit); !isCount {
			return 0
		}
		return 1
	})
}

// of returns the selection of a type.
func (s *search) of(in *answers.ProfileInfo) model.Selection {
	sel := s.sel
	sel.Profile, sel.Type = in.Profile, in.Type.String()
	return sel
}

// nanosOf returns the nanoseconds of a total of g, whose type is that of in or the time for which its samples stand.
func nanosOf(in *answers.ProfileInfo, g *answers.Graph, total int64) float64 {
	if nanos := kind.NanosPer(g.Type.Unit); nanos > 0 {
		return float64(total) * float64(nanos)
	}
	return float64(total) * float64(g.Period()) * float64(kind.NanosPer(in.PeriodType.Unit))
}

// samples returns how many samples a selection of processor time has: they are counted beside it, or it is taken every
// 10 ms.
func (s *search) samples(sel model.Selection, nanos float64) (float64, error) {
	if in := s.counts(); in != nil {
		sel.Type = in.Type.String()
		g, err := s.FlameGraph(s.ctx, sel, 1)
		if err != nil {
			return 0, err
		}
		n := float64(g.Total[0])
		if kind.IsTime(g.Type.Unit) { // samples of different periods are answered as the time for which they stand
			n = nanosOf(in, g, g.Total[0]) / float64(max(g.Period()*kind.NanosPer(in.PeriodType.Unit), 1))
		}
		if n > 0 {
			return n, nil
		}
	}
	return nanos / 1e7, nil
}

const (
	noGrowth = "growth of functions: it needs 500 samples each of two versions, or of this time and of a day earlier"
	noShares = "shares of processor time, such as garbage collection: they need 5 s of it and 500 samples"
	noLocks  = "waits for locks: there is no profile mutex"
	noLeak   = "goroutines: they need 15 minutes of the profile goroutine"
)

// growth compares the last two versions, or the time with that of the day before.
func (s *search) growth() error {
	in := s.processorTime()
	if in == nil {
		s.miss(noGrowth)
		return nil
	}
	sel := s.of(in)
	versions, err := s.versions(sel)
	if err != nil {
		return err
	}
	base, since, before := sel, "today", "a day earlier"
	link := s.link(in, "view", "diff")
	if len(versions) > 1 {
		last, previous := versions[len(versions)-1], versions[len(versions)-2]
		sel.Attributes = []model.Attribute{{Key: query.VersionKey, Value: last.Value}}
		base.Attributes = []model.Attribute{{Key: query.VersionKey, Value: previous.Value}}
		since, before = "in version "+last.Value, "in "+previous.Value
		link.Set("attr."+query.VersionKey, last.Value)
		link.Set("base.attr."+query.VersionKey, previous.Value)
		sel.From, base.From = max(sel.From, last.From+startUp), max(base.From, previous.From+startUp)
		if max(sel.From, base.From) >= sel.Until {
			s.miss(noGrowth)
			return nil
		}
		link.Set("from", millis(sel.From))
		if base.From != sel.From {
			link.Set("base.from", millis(base.From))
			link.Set("base.until", millis(base.Until))
		}
	} else {
		if in.From > sel.From-day {
			s.miss(noGrowth) // there was nothing yet
			return nil
		}
		base.From, base.Until = sel.From-day, sel.Until-day
		link.Set("base.from", millis(base.From))
		link.Set("base.until", millis(base.Until))
	}
	g, err := s.Diff(s.ctx, sel, base, maxNodes)
	if err != nil {
		return err
	}
	samplesNow, err := s.samples(sel, nanosOf(in, g, g.Total[0]))
	if err != nil {
		return err
	}
	samplesBefore, err := s.samples(base, nanosOf(in, g, g.BaseTotal[0]))
	if err != nil {
		return err
	}
	if g.Profiles == 0 || g.BaseTotal[0] == 0 || min(samplesNow, samplesBefore) < minSamples {
		s.miss(noGrowth)
		return nil
	}
	earlier, err := s.FlameGraph(s.ctx, base, 1)
	if err != nil || earlier.Profiles == 0 {
		return err
	}
	if most, ok := grown(g, samplesNow, samplesBefore, float64(g.Profiles)/float64(earlier.Profiles)); ok {
		link.Set("q", most.name)
		s.add("growth", link, fmt.Sprintf("%s takes %s of the processor time %s, and took %s %s.", model.Shorten(most.name),
			percent(most.now), since, percent(most.before), before), "The difference is far larger than chance: compare them.")
	}
	return nil
}

// versions returns those that have values in the selected time, in the order in which they first appeared.
func (s *search) versions(sel model.Selection) ([]query.Version, error) {
	list, err := query.Versions(s.ctx, s.Querier, sel, query.VersionKey)
	if err != nil || len(list) < 2 {
		return list, err
	}
	sel.GroupBy = query.VersionKey
	t, err := s.Timeline(s.ctx, sel, 1, s.now)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, g := range t.Groups {
		sum, _ := answers.Sum(g.Values)
		has[g.Name] = sum > 0
	}
	return slices.DeleteFunc(list, func(v query.Version) bool { return !has[v.Value] }), nil
}

// leaves looks for functions that should not take much.
func (s *search) leaves() error {
	in := s.processorTime()
	if in == nil {
		s.miss(noShares)
		return nil
	}
	g, err := s.FlameGraph(s.ctx, s.of(in), maxNodes)
	if err != nil {
		return err
	}
	nanos := nanosOf(in, g, g.Total[0])
	samples, err := s.samples(s.of(in), nanos)
	if err != nil {
		return err
	}
	if nanos < minSeconds*1e9 || samples < minSamples {
		s.miss(noShares)
		return nil
	}
	for i := range leafRules {
		rule := &leafRules[i]
		if err := s.sel.Meter.Grow(len(g.Frame) + len(g.Frames)); err != nil {
			return err
		}
		if share := rule.shareOf(g.Tree); share >= rule.least {
			link := s.link(in, "q", "/"+rule.function.String()+"/")
			s.add(rule.name, link, fmt.Sprintf("%s of the processor time is %s.", percent(share), rule.what), rule.advice)
		}
	}
	return nil
}

// waiting looks at how long goroutines or threads wait for locks.
func (s *search) waiting() error {
	in := s.typeOf(kind.Mutex, func(in *answers.ProfileInfo) int {
		if in.Values == kind.Gauge || !kind.IsTime(in.Type.Unit) {
			return 0
		}
		return 1
	})
	if in == nil {
		s.miss(noLocks)
		return nil
	}
	// A time line would have more: its steps begin before the time and end after it.
	g, err := s.FlameGraph(s.ctx, s.of(in), 1)
	if err != nil {
		return err
	}
	if waiting := nanosOf(in, g, g.Total[0]) / float64(s.sel.Until-max(s.sel.From, in.From)); waiting >= minWaiting {
		s.add("waiting", s.link(in), fmt.Sprintf("%.1f goroutines or threads wait for a lock on average.", waiting),
			"The profile has who holds them.")
	}
	return nil
}

// leak looks for goroutines that only become more.
func (s *search) leak() error {
	in := s.typeOf(kind.Goroutine, func(in *answers.ProfileInfo) int {
		if in.Default {
			return 1
		}
		return 0
	})
	if in == nil || s.sel.Until-max(s.sel.From, in.From) < minLeakMinutes*int64(time.Minute) {
		s.miss(noLeak)
		return nil
	}
	sel := s.of(in)
	sel.From = max(sel.From, in.From)
	t, err := s.Timeline(s.ctx, sel, 60, s.now)
	if err != nil {
		return err
	}
	if first, last, ok := onlyGrows(t.Groups[0].Values); ok {
		s.add("goroutines", s.link(in), fmt.Sprintf("Goroutines only become more: from %.0f to %.0f.", first, last),
			"Compare two times: what is new waits for something that does not come.")
	}
	return nil
}

func (s *search) add(rule string, link url.Values, text, advice string) {
	s.found = append(s.found, Finding{Rule: rule, Text: text, Advice: advice, Link: link.Encode()})
}

// link returns the state of the page for a type in the time of the search.
func (s *search) link(in *answers.ProfileInfo, more ...string) url.Values {
	v := url.Values{"service": {s.sel.Service}, "profile": {in.Profile}, "type": {in.Type.String()},
		"from": {millis(s.sel.From)}, "until": {millis(s.sel.Until)}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

func millis(nanos int64) string { return strconv.FormatInt(nanos/1e6, 10) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
