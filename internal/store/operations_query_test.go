// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	pprofencode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// query asks something, and compares the answer with that of the model.
func (h *history) query() {
	sel := model.Selection{Service: pick(h.rnd, "shop", "cart")}
	typ := pick(h.rnd, "process_cpu/cpu", "memory/inuse_space", "memory/alloc_space", "off_cpu/off_cpu")
	sel.Profile, sel.Type, _ = strings.Cut(typ, "/")
	sel.From, sel.Until = h.someTime()
	switch h.rnd.IntN(4) {
	case 0:
		sel.Attributes = []model.Attribute{{Key: "endpoint", Value: "/pay"}}
	case 1:
		sel.Attributes = []model.Attribute{{Key: "service.version", Value: pick(h.rnd, "1", "2")}}
	}
	sel.GroupBy = pick(h.rnd, "", "", "endpoint", "service.version", "service.instance.id")
	sel.LastState = h.rnd.IntN(6) == 0
	what := pick(h.rnd, "flame graph", "flame graph", "diff", "pprof", "time line", "events", "lists")
	h.note("%s %+v", what, sel)
	var err error
	switch what {
	case "flame graph":
		err = h.flameGraph(sel)
	case "diff":
		err = h.diff(sel)
	case "pprof":
		err = h.pprof(sel)
	case "time line":
		err = h.timeLine(sel)
	case "events":
		err = h.events(sel)
	case "lists":
		err = h.lists(sel)
	}
	if errors.Is(err, model.ErrNothing) {
		want, _ := h.model.sums(model.Selection{Service: sel.Service, Profile: sel.Profile, Type: sel.Type, From: h.sure()})
		require.Empty(h.t, want, "%v", err)
		return
	}
	require.True(h.t, err == nil || h.disk.isFailing() && errors.Is(err, store.ErrUnreadable), "%v", err)
}

// sure is from when on all that was acknowledged is there, and states hold only for what is there.
func (h *history) sure() int64 {
	if h.cut < h.oldest {
		return 0
	}
	return h.cut + int64(3*time.Hour)
}

// someTime returns a time for a query, whose bounds often are those of profiles.
func (h *history) someTime() (from, until int64) {
	bound := func() int64 {
		if n := len(h.model.list); n > 0 && h.rnd.IntN(3) > 0 {
			c := h.model.list[h.rnd.IntN(n)]
			return pick(h.rnd, c.start, c.end, c.start+c.interval, c.start+int64(time.Second))
		}
		return h.oldest + h.rnd.Int64N(h.now.UnixNano()-h.oldest+int64(time.Hour))
	}
	switch h.rnd.IntN(4) {
	case 0:
		return h.sure(), 0
	case 1:
		return max(bound(), h.sure()), 0
	}
	from, until = bound(), bound()
	from, until = max(min(from, until), h.sure()), max(from, until)
	return from, max(until, from+1)
}

// exactness is how near an answer must be to that of the model: the parts that became coarser are known by whole
// ranges.
func (h *history) exactness(sel model.Selection) (tolerance float64, ok bool) {
	stats := h.store.Stats()
	switch coarse := stats.CoarseUntil; {
	case coarse == 0 || sel.From > coarse+int64(3*time.Hour):
		return 0.5001, true
	case sel.From > h.oldest || sel.Until != 0:
		return 0, false
	case sel.LastState, sel.Type == "inuse_space" && (sel.GroupBy != "" || sel.Attributes != nil):
		return 0, false
	}
	return 1, true
}

func (h *history) compare(sel model.Selection, want, got map[modelKey]float64) {
	tolerance, ok := h.exactness(sel)
	if !ok {
		return
	}
	for key, value := range want {
		if math.Abs(value) <= tolerance {
			delete(want, key)
			delete(got, key)
		}
	}
	for key := range got {
		if want[key] == 0 && math.Abs(got[key]) <= 1 {
			delete(got, key)
		}
	}
	require.Len(h.t, got, len(want), "%+v\n%v\n%v", sel, want, got)
	for key, value := range want {
		require.InDelta(h.t, value, got[key], tolerance+1e-9*math.Abs(value), "%+v of %+v", key, sel)
	}
}

func withoutEndpoints(sums map[modelKey]float64) map[modelKey]float64 {
	out := map[modelKey]float64{}
	for key, value := range sums {
		key.endpoint = ""
		out[key] += value
	}
	return out
}

// stacks returns the own values of a tree by group and stack, or those of its base.
func (h *history) stacks(tree *answers.Tree, sel model.Selection, isBase bool) map[modelKey]float64 {
	own, total := tree.Self, tree.Total
	if isBase {
		own, total = tree.BaseSelf, tree.BaseTotal
	}
	stacks, keys, below := map[modelKey]float64{}, make([]modelKey, len(own)), make([]int64, len(own))
	for i := len(own) - 1; i > 0; i-- {
		below[i] += own[i]
		below[tree.Parent[i]] += below[i]
		require.Equal(h.t, below[i], total[i], "a total is what is in and below a node")
	}
	for i := 1; i < len(own); i++ {
		key, name := keys[tree.Parent[i]], tree.Frames[tree.Frame[i]].Name
		switch {
		case sel.GroupBy != "" && tree.Parent[i] == 0:
			key.group = name
		case key.stack == "":
			key.stack = name
		default:
			key.stack += ";" + name
		}
		keys[i] = key
		if own[i] != 0 {
			stacks[key] += float64(own[i])
		}
	}
	return stacks
}

func (h *history) flameGraph(sel model.Selection) error {
	g, err := h.store.FlameGraph(h.t.Context(), sel, 1<<20)
	if err != nil {
		return err
	}
	want, isOpen := h.model.sums(sel)
	if isOpen {
		return nil
	}
	h.compare(sel, withoutEndpoints(want), h.stacks(g.Tree, sel, false))
	if tolerance, ok := h.exactness(sel); ok && tolerance < 1 && sel.Attributes == nil && !sel.LastState {
		n, of := 0, selectionOf(sel)
		h.model.selected(&of, func(*counted, int64, int64) { n++ })
		require.Equal(h.t, n, g.Profiles, "%+v", sel)
	}
	return nil
}

func (h *history) diff(sel model.Selection) error {
	base := sel
	base.From, base.Until = h.someTime()
	g, err := h.store.Diff(h.t.Context(), sel, base, 1<<20)
	if err != nil {
		return err
	}
	for isBase, of := range map[bool]model.Selection{false: sel, true: base} {
		if want, isOpen := h.model.sums(of); !isOpen {
			h.compare(of, withoutEndpoints(want), h.stacks(g.Tree, of, isBase))
		}
	}
	return nil
}

func (h *history) pprof(sel model.Selection) error {
	sel.GroupBy = ""
	merged, err := h.store.Merge(h.t.Context(), sel)
	if err != nil {
		return err
	}
	got := map[modelKey]float64{}
	if merged.SampleCount() > 0 {
		encoded, _, err := pprofencode.Encode(merged.Profiles)
		require.NoError(h.t, err)
		require.Len(h.t, encoded, 1)
		p := profiletest.ParsePprof(h.t, encoded[0].Bytes)
		for _, sample := range p.Sample {
			var names []string
			for _, l := range slices.Backward(sample.Location) {
				names = append(names, l.Line[0].Function.Name)
			}
			if sample.Value[0] != 0 {
				got[modelKey{stack: strings.Join(names, ";"),
					endpoint: strings.Join(sample.Label["endpoint"], "")}] += float64(sample.Value[0])
			}
		}
	}
	// whose samples differ by thread, and are rounded one by one
	if want, isOpen := h.model.sums(sel); !isOpen && sel.Type != "off_cpu" {
		h.compare(sel, want, got)
	}
	return nil
}

// timeLine compares a time line whose steps begin and end with the selection.
func (h *history) timeLine(sel model.Selection) error {
	const steps = 20
	width := int64(h.cfg.Resolution) * pick(h.rnd, 1, 1+h.rnd.Int64N(100))
	sel.From = (max(sel.From, h.oldest)/width + 1) * width
	sel.Until = sel.From + steps*width
	sel.LastState = false
	tl, err := h.store.Timeline(h.t.Context(), sel, steps, h.now)
	if err != nil {
		return err
	}
	require.Equal(h.t, sel.From, tl.From)
	require.Equal(h.t, width, tl.Step)
	if _, ok := h.exactness(sel); !ok || h.isOpen(sel) {
		return nil
	}
	want := h.model.line(sel, tl.From, tl.Step, steps)
	if len(want) == 0 {
		require.Len(h.t, tl.Groups, 1)
	}
	for _, g := range tl.Groups {
		name := g.Name
		if sel.GroupBy != "" {
			name = sel.GroupBy + "=" + name
		}
		line := want[name]
		for i, value := range g.Values {
			if len(line) == 0 {
				require.True(h.t, math.IsNaN(value) || value == 0, "step %d of %q of %+v: %v", i, name, sel, value)
				continue
			}
			require.InDelta(h.t, zero(line[i]), zero(value), 1e-3+1e-9*math.Abs(zero(line[i])), "step %d of %q of %+v", i, name,
				sel)
			if sel.GroupBy == "" && sel.Attributes == nil {
				require.Equal(h.t, math.IsNaN(line[i]), math.IsNaN(value), "step %d of %q of %+v", i, name, sel)
			}
		}
		delete(want, name)
	}
	require.Empty(h.t, want)
	return nil
}

func zero(value float64) float64 {
	if math.IsNaN(value) {
		return 0
	}
	return value
}

func (h *history) isOpen(sel model.Selection) bool {
	_, isOpen := h.model.sums(sel)
	return isOpen
}

// events compares the observations of a service, one by one, and their heat map.
func (h *history) events(sel model.Selection) error {
	sel.Profile, sel.Type, sel.GroupBy, sel.LastState, sel.Attributes = "", "", "", false, nil
	e, err := h.store.Events(h.t.Context(), sel, 1<<20)
	if err != nil {
		return err
	}
	if _, ok := h.exactness(model.Selection{From: sel.From, Until: max(sel.Until, 1)}); !ok {
		return nil
	}
	until := selectionOf(sel).until
	var want, got []string
	for _, c := range h.model.list {
		if c.service != sel.Service || !c.isTimed() || c.isMoved {
			continue
		}
		for _, row := range c.rows {
			if begun := row.at - row.value; row.at >= sel.From && begun < until {
				want = append(want, fmt.Sprint(begun, row.at, row.thread, c.instance, row.stack))
			}
		}
	}
	several := slices.ContainsFunc(e.Lanes, func(name string) bool { return strings.Contains(name, " · ") })
	for _, event := range e.List {
		lane, instance, _ := strings.Cut(e.Lanes[event.Lane], " · ")
		if !several { // then the name has no instance
			instance = e.Lanes[event.Lane]
		}
		var names []string
		for _, frame := range slices.Backward(e.Stacks[event.Stack]) {
			names = append(names, e.Frames[frame].Name)
		}
		require.Equal(h.t, "off CPU", e.States[event.State])
		got = append(got, fmt.Sprint(event.Start, event.End, lane, instance, strings.Join(names, ";")))
	}
	if !several {
		require.Len(h.t, got, len(want))
		return nil
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(h.t, want, got, "%+v", sel)
	return nil
}

// lists compares which services, profiles and series there are.
func (h *history) lists(sel model.Selection) error {
	profiles, err := h.store.Catalog(h.t.Context(), "", nil)
	if err != nil {
		return err
	}
	series, err := h.store.Series(h.t.Context(), model.Selection{Service: sel.Service, From: sel.From, Until: sel.Until})
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, sr := range series {
		found[fmt.Sprint(sr.Service, sr.Profile, sr.Type, sr.Labels)] = true
	}
	rows := map[string]int{}
	for _, c := range h.model.list {
		name := fmt.Sprint(c.service, c.name, c.typ)
		if c.values == kind.Delta {
			rows[name] += len(c.rows)
		}
		isInTime := c.start >= sel.From && c.start < selectionOf(sel).until
		if isInTime && c.service == sel.Service {
			labels := []model.Attribute{{Key: "service.instance.id", Value: c.instance}, {Key: "service.name", Value: c.service},
				{Key: "service.version", Value: c.version}}
			require.True(h.t, found[fmt.Sprint(c.service, c.name, c.typ, labels)], "%s of %+v", c.series(), sel)
		}
	}
	if h.sure() > 0 || h.store.Stats().CoarseUntil > 0 {
		return nil
	}
	for _, p := range profiles {
		if want := rows[fmt.Sprint(p.Service, p.Profile, p.Type)]; want > 0 {
			require.Equal(h.t, want, p.Samples, "samples of %s %s", p.Service, p.Profile)
		}
		delete(rows, fmt.Sprint(p.Service, p.Profile, p.Type))
	}
	require.Empty(h.t, rows)
	return nil
}
