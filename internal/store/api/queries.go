// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// millis returns a time in Unix milliseconds, as in JSON.
func millis(nanos int64) int64 { return nanos / int64(time.Millisecond) }

func (s *server) status(r *request) (*answer, error) {
	stats, cfg := s.Store.Stats(), s.Store.Config()
	evicted, refused := map[string]int{}, map[string]int{}
	for i, n := range stats.Evicted {
		evicted[store.Evicted(i).String()] = n
	}
	for i, n := range stats.Refused {
		refused[store.Refused(i).String()] = n
	}
	return jsonAnswer(map[string]any{
		"version": s.Version, "now": millis(r.now.UnixNano()), "window_ms": cfg.Window.Milliseconds(),
		"resolution_ms": cfg.Resolution.Milliseconds(), "max_bytes": s.MaxBytes, "bytes": stats.Bytes,
		"series": stats.Series, "max_series": cfg.MaxSeries, "profiles": stats.Profiles, "samples": stats.Samples,
		"evicted": evicted, "refused": refused, "files": s.Files,
	})
}

func (s *server) services(*request) (*answer, error) {
	type service struct {
		Service  string `json:"service"`
		Profiles int    `json:"profiles"`
		Samples  int    `json:"samples"`
		From     int64  `json:"from"`
		Until    int64  `json:"until"`
	}
	list := []service{}
	for _, in := range s.Store.Services() {
		list = append(list, service{in.Service, in.Profiles, in.Samples, millis(in.From), millis(in.Until)})
	}
	return jsonAnswer(map[string]any{"services": list})
}

func (s *server) profiles(r *request) (*answer, error) {
	type profile struct {
		Service    string `json:"service"`
		Profile    string `json:"profile"`
		Type       string `json:"type"`
		Default    bool   `json:"default"`
		Kind       string `json:"kind"`
		From       int64  `json:"from"`
		Until      int64  `json:"until"`
		Samples    int    `json:"samples"`
		Bytes      int    `json:"bytes"`
		Timestamps bool   `json:"timestamps"`
		Rearranged int    `json:"rearranged"`
		Instances  int    `json:"instances"`
	}
	list := []profile{}
	for _, in := range s.Store.Profiles(r.params.get("service")) {
		list = append(list, profile{
			in.Service, in.Profile, in.Type.String(), in.Default, in.Values.String(), millis(in.From), millis(in.Until),
			in.Samples, in.Bytes, in.Timestamps, in.Moved, in.Instances,
		})
	}
	return jsonAnswer(map[string]any{"profiles": list})
}

// selected reads the selection, which must name a service and a profile.
func (r *request) selected() store.Selection {
	sel := r.params.selection(r.now, "", nil)
	if sel.Service == "" || sel.Profile == "" {
		r.params.fail(badRequest("`service` and `profile` must be given", "GET /api/profiles lists what there is"))
	}
	return sel
}

func (s *server) attributes(r *request) (*answer, error) {
	sel := r.selected()
	limit := r.params.number("limit", 100, 1, 10_000)
	if err := r.params.err; err != nil {
		return nil, err
	}
	infos, err := s.Store.Attributes(r.Context(), sel, limit)
	if err != nil {
		return nil, err
	}
	// A longer key or value is too long for the page and for a URL.
	infos = slices.DeleteFunc(infos, func(in store.AttributeInfo) bool { return len(in.Key) > maxNameBytes })
	b := appendList([]byte(`{"attributes":`), len(infos), func(b []byte, i int) []byte {
		in := &infos[i]
		scope, all := "resource", len(in.Values)
		if in.Sample {
			scope = "sample"
		}
		in.Values = slices.DeleteFunc(in.Values, func(v store.AttributeValue) bool { return len(v.Value) > maxNameBytes })
		b = fmt.Appendf(b, `{"key":%s,"scope":%q,"values":`, quote(in.Key), scope)
		b = appendList(b, len(in.Values), func(b []byte, i int) []byte {
			return fmt.Appendf(b, `{"value":%s,"samples":%d}`, quote(in.Values[i].Value), in.Values[i].Samples)
		})
		return fmt.Appendf(b, `,"more":%d}`, in.More+all-len(in.Values))
	})
	return columnsAnswer(append(b, '}'))
}

func (s *server) timeline(r *request) (*answer, error) {
	sel := r.selected()
	points := r.params.number("points", 360, 1, 10_000)
	if err := r.params.err; err != nil {
		return nil, err
	}
	t, err := s.Store.Timeline(r.Context(), sel, points, r.now)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"type":%s,"unit":%s,"kind":%q,"from":%d,"step_ms":%d,"groups":`,
		quote(t.Type.String()), quote(t.Type.Unit), t.Values, millis(t.From), millis(t.Step))
	b = appendList(b, len(t.Groups), func(b []byte, i int) []byte {
		g := &t.Groups[i]
		b = fmt.Appendf(b, `{"name":%s,"values":`, quote(g.Name))
		b = appendList(b, len(g.Values), func(b []byte, i int) []byte {
			if v := g.Values[i]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
			}
			return append(b, "null"...)
		})
		return append(b, '}')
	})
	return columnsAnswer(append(b, '}'))
}

func (s *server) heatmap(r *request) (*answer, error) {
	sel := r.selected()
	columns := r.params.number("columns", 600, 1, 1200)
	rows := r.params.number("rows", 50, 1, 1000)
	if !slices.Contains(store.HeatRows, rows) {
		r.params.fail(badRequest(fmt.Sprintf("`rows` must be one of %v, found %d", store.HeatRows, rows), ""))
	}
	if err := r.params.err; err != nil {
		return nil, err
	}
	h, err := s.Store.HeatMap(r.Context(), sel, columns, rows)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"type":%s,"unit":%s,"from":%d,"seconds":%d,"columns":%d,"rows":%d,"observations":%d,"cut":%t,"cells":`,
		quote(h.Type.String()), quote(h.Type.Unit), millis(h.From), h.Seconds, h.Columns, h.Rows, h.Observations, h.IsCut)
	b = appendList(b, len(h.Cells), func(b []byte, i int) []byte {
		return strconv.AppendFloat(b, math.Round(h.Cells[i]*1000)/1000, 'f', -1, 64)
	})
	return columnsAnswer(append(b, '}'))
}

// events answers with columns. Times are nanoseconds since base, which is in Unix milliseconds: nanoseconds since 1970
// would be too large for a number in JavaScript.
func (s *server) events(r *request) (*answer, error) {
	sel := r.params.selection(r.now, "", nil)
	if sel.Service == "" {
		r.params.fail(badRequest("`service` must be given", "GET /api/services lists them"))
	}
	limit := r.params.number("limit", 5000, 1, 20_000)
	if err := r.params.err; err != nil {
		return nil, err
	}
	e, err := s.Store.Events(r.Context(), sel, limit)
	if err != nil {
		return nil, err
	}
	base := int64(0)
	if len(e.List) > 0 {
		base = millis(e.List[0].Start)
	}
	b := fmt.Appendf(nil, `{"base":%d,"left_out":%d,"lanes_left_out":%d,"frames":`, base, e.LeftOut, e.LanesLeftOut)
	b = appendFrames(b, e.Frames)
	b = appendTexts(append(b, `,"lanes":`...), e.Lanes)
	b = appendTexts(append(b, `,"states":`...), e.States)
	b = appendList(append(b, `,"stacks":`...), len(e.Stacks), func(b []byte, i int) []byte { return appendInts(b, e.Stacks[i]) })
	for _, column := range []struct {
		name  string
		value func(*store.Event) int64
	}{
		{"lane", func(e *store.Event) int64 { return int64(e.Lane) }},
		{"state", func(e *store.Event) int64 { return int64(e.State) }},
		{"stack", func(e *store.Event) int64 { return int64(e.Stack) }},
		{"start", func(e *store.Event) int64 { return e.Start - base*int64(time.Millisecond) }},
		{"length", func(e *store.Event) int64 { return e.End - e.Start }},
	} {
		b = appendList(fmt.Appendf(b, `,%q:`, column.name), len(e.List), func(b []byte, i int) []byte {
			return strconv.AppendInt(b, column.value(&e.List[i]), 10)
		})
	}
	return columnsAnswer(append(b, '}'))
}

// The default and the bound of the parameter max_nodes.
const (
	defaultMaxNodes = 100_000
	mostMaxNodes    = 500_000
)

func (s *server) flamegraph(r *request) (*answer, error) {
	sel := r.selected()
	most := r.params.number("max_nodes", defaultMaxNodes, 1, mostMaxNodes)
	if err := r.params.err; err != nil {
		return nil, err
	}
	g, err := s.Store.FlameGraph(r.Context(), sel, most)
	if err != nil {
		return nil, err
	}
	return graphAnswer(g, "")
}

func (s *server) diff(r *request) (*answer, error) {
	sel := r.selected()
	base := r.params.selection(r.now, "base.", &sel)
	most := r.params.number("max_nodes", defaultMaxNodes, 1, mostMaxNodes)
	if err := r.params.err; err != nil {
		return nil, err
	}
	g, err := s.Store.Diff(r.Context(), sel, base, most)
	if err != nil {
		return nil, err
	}
	return graphAnswer(g, fmt.Sprintf(`"base_total":%d,`, g.BaseTotal[0]))
}

// graphAnswer writes a tree. more has further fields, each with a comma after it.
func graphAnswer(g *store.Graph, more string) (*answer, error) {
	b := head(g.Summary, g.Total[0])
	b = fmt.Appendf(b, `%s"profiles":%d,"truncated":%d,"frames":`, more, g.Profiles, g.Truncated)
	b = append(appendFrames(b, g.Frames), `,"nodes":`...)
	return columnsAnswer(append(appendNodes(b, g.Tree), '}'))
}

func (s *server) table(r *request) (*answer, error) {
	sel := r.selected()
	limit := r.params.number("limit", 1000, 1, 100_000)
	by := r.params.oneOf("sort", "self", "total", "name")
	if err := r.params.err; err != nil {
		return nil, err
	}
	sel.GroupBy = ""
	g, err := s.Store.FlameGraph(r.Context(), sel, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	rows := g.Functions()
	store.SortFunctions(rows, by)
	b := fmt.Appendf(head(g.Summary, g.Total[0]), `"more":%d,"functions":`, max(0, len(rows)-limit))
	b = appendList(b, min(limit, len(rows)), func(b []byte, i int) []byte {
		row := &rows[i]
		return fmt.Appendf(b, `{"name":%s,"file":%s,"kind":%s,"self":%d,"total":%d}`,
			quote(row.Frame.Name), quote(row.Frame.File), quote(row.Frame.Kind), row.Self, row.Total)
	})
	return columnsAnswer(append(b, '}'))
}
