// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package storeapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// millis returns a time as JSON has it.
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
	type value struct {
		Value   string `json:"value"`
		Samples int    `json:"samples"`
	}
	type attribute struct {
		Key    string  `json:"key"`
		Scope  string  `json:"scope"`
		Values []value `json:"values"`
		More   int     `json:"more"`
	}
	list := []attribute{}
	for _, in := range infos {
		a := attribute{Key: in.Key, Scope: "resource", Values: []value{}, More: in.More}
		if in.Sample {
			a.Scope = "sample"
		}
		for _, v := range in.Values {
			if len(v.Value) > maxNameBytes {
				a.More++ // too long for the page and for a URL
				continue
			}
			a.Values = append(a.Values, value{v.Value, v.Samples})
		}
		list = append(list, a)
	}
	return jsonAnswer(map[string]any{"attributes": list})
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
	b := fmt.Appendf(nil, `{"type":%s,"unit":%s,"kind":%q,"from":%d,"step_ms":%d,"groups":[`,
		quote(t.Type.String()), quote(t.Type.Unit), t.Values, millis(t.From), millis(t.Step))
	for i, g := range t.Groups {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%s,"values":`, quote(g.Name))
		b = appendList(b, len(g.Values), func(b []byte, i int) []byte {
			if v := g.Values[i]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				return strconv.AppendFloat(b, v, 'f', -1, 64)
			}
			return append(b, "null"...)
		})
		b = append(b, '}')
	}
	return &answer{body: append(b, "]}"...), contentType: "application/json"}, nil
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
	return &answer{body: append(b, '}'), contentType: "application/json"}, nil
}

// events answers with columns. Times are nanoseconds since base, which is Unix milliseconds: their sum would be too
// large for a number in JavaScript.
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
	for i, event := range e.List {
		if start := millis(event.Start); i == 0 || start < base {
			base = start
		}
	}
	b := fmt.Appendf(nil, `{"base":%d,"left_out":%d,"lanes_left_out":%d,"frames":`, base, e.LeftOut, e.LanesLeftOut)
	if b, err = appendFrames(b, e.Frames); err != nil {
		return nil, err
	}
	for _, column := range []struct {
		name  string
		count int
		write func(b []byte, i int) []byte
	}{
		{"lanes", len(e.Lanes), func(b []byte, i int) []byte { return append(b, quote(e.Lanes[i])...) }},
		{"states", len(e.States), func(b []byte, i int) []byte { return append(b, quote(e.States[i])...) }},
		{"stacks", len(e.Stacks), func(b []byte, i int) []byte { return appendInts(b, e.Stacks[i]) }},
		{"lane", len(e.List), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(e.List[i].Lane), 10) }},
		{"state", len(e.List), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(e.List[i].State), 10) }},
		{"stack", len(e.List), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(e.List[i].Stack), 10) }},
		{"start", len(e.List), func(b []byte, i int) []byte {
			return strconv.AppendInt(b, e.List[i].Start-base*int64(time.Millisecond), 10)
		}},
		{"length", len(e.List), func(b []byte, i int) []byte { return strconv.AppendInt(b, e.List[i].End-e.List[i].Start, 10) }},
	} {
		b = appendList(fmt.Appendf(b, `,%q:`, column.name), column.count, column.write)
	}
	if len(b) > maxAnswerBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
	}
	return &answer{body: append(b, '}'), contentType: "application/json"}, nil
}

// appendList writes n values as a list; write appends one of them.
func appendList(b []byte, n int, write func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, i)
	}
	return append(b, ']')
}

func appendInts[T int32 | int64](b []byte, list []T) []byte {
	return appendList(b, len(list), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(list[i]), 10) })
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
	b := head(g.Type, g.Values.String(), g.Total[0], g.From, g.Until)
	b = fmt.Appendf(b, `%s"profiles":%d,"truncated":%d,"frames":`, more, g.Profiles, g.Truncated)
	b, err := appendFrames(b, g.Frames)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"nodes":`...)
	b = appendNodes(b, g.Tree, 0)
	return &answer{body: append(b, '}'), contentType: "application/json"}, nil
}

func head(t store.SampleType, kind string, total, from, until int64) []byte {
	return fmt.Appendf(nil, `{"type":%s,"unit":%s,"kind":%q,"total":%d,"from":%d,"until":%d,`,
		quote(t.String()), quote(t.Unit), kind, total, millis(from), millis(until))
}

// maxNameBytes is the longest text of a frame in JSON. pprof has all of it.
const maxNameBytes = 1 << 10

func quote(s string) []byte {
	if len(s) > maxNameBytes {
		s = s[:maxNameBytes] + "…"
	}
	b, _ := json.Marshal(s) // strings can be marshalled; < > & and invalid UTF-8 are escaped
	return b
}

// appendFrames writes the columns of frames.
func appendFrames(b []byte, frames ...[]store.Frame) ([]byte, error) {
	for i, column := range []struct {
		name string
		text func(*store.Frame) string
	}{
		{"name", func(f *store.Frame) string { return f.Name }},
		{"file", func(f *store.Frame) string { return f.File }},
		{"mapping", func(f *store.Frame) string { return f.Mapping }},
		{"build_id", func(f *store.Frame) string { return f.BuildID }},
		{"kind", func(f *store.Frame) string { return f.Kind }},
	} {
		b = fmt.Appendf(b, `%c%q:[`, "{,"[min(i, 1)], column.name)
		first := true
		for _, list := range frames {
			for k := range list {
				if !first {
					b = append(b, ',')
				}
				first = false
				if b = append(b, quote(column.text(&list[k]))...); len(b) > maxAnswerBytes {
					return nil, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
				}
			}
		}
		b = append(b, ']')
	}
	b = append(b, `,"line":[`...)
	first := true
	for _, list := range frames {
		for k := range list {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = strconv.AppendInt(b, list[k].Line, 10)
		}
	}
	return append(b, "]}"...), nil
}

// appendNodes writes the columns of nodes. Their frames begin at firstFrame in the answer.
func appendNodes(b []byte, t *store.Tree, firstFrame int32) []byte {
	b = appendList(append(b, `{"frame":`...), len(t.Frame), func(b []byte, i int) []byte {
		f := t.Frame[i]
		if f >= 0 {
			f += firstFrame
		}
		return strconv.AppendInt(b, int64(f), 10)
	})
	b = appendInts(append(b, `,"parent":`...), t.Parent)
	for _, column := range []struct {
		name   string
		values []int64
	}{{"self", t.Self}, {"total", t.Total}, {"base_self", t.BaseSelf}, {"base_total", t.BaseTotal}} {
		if column.values == nil {
			continue
		}
		b = appendInts(fmt.Appendf(b, `,%q:`, column.name), column.values)
	}
	return append(b, '}')
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
	b := head(g.Type, g.Values.String(), g.Total[0], g.From, g.Until)
	b = fmt.Appendf(b, `"more":%d,"functions":[`, max(0, len(rows)-limit))
	for i, row := range rows[:min(limit, len(rows))] {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%s,"file":%s,"kind":%s,"self":%d,"total":%d}`,
			quote(row.Frame.Name), quote(row.Frame.File), quote(row.Frame.Kind), row.Self, row.Total)
		if len(b) > maxAnswerBytes {
			return nil, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
		}
	}
	return &answer{body: append(b, "]}"...), contentType: "application/json"}, nil
}

func (s *server) sandwich(r *request) (*answer, error) {
	sel := r.selected()
	function := r.params.get("function")
	if function == "" {
		r.params.fail(badRequest("`function` must be given", "the names are those of /api/table"))
	}
	most := r.params.number("max_nodes", defaultMaxNodes, 1, mostMaxNodes)
	if err := r.params.err; err != nil {
		return nil, err
	}
	sw, err := s.Store.Sandwich(r.Context(), sel, function, most)
	if err != nil {
		return nil, err
	}
	b := head(sw.Type, sw.Values.String(), cmp.Or(sw.Callees.Total[0], sw.Callers.Total[0]), sw.From, sw.Until)
	b = fmt.Appendf(b, `"truncated":%d,"frames":`, sw.Callers.Truncated+sw.Callees.Truncated)
	if b, err = appendFrames(b, sw.Callers.Frames, sw.Callees.Frames); err != nil {
		return nil, err
	}
	b = append(b, `,"callers":`...)
	b = appendNodes(b, sw.Callers, 0)
	b = append(b, `,"callees":`...)
	b = appendNodes(b, sw.Callees, int32(len(sw.Callers.Frames)))
	return &answer{body: append(b, '}'), contentType: "application/json"}, nil
}
