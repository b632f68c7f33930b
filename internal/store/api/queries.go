// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// millis returns a time in Unix milliseconds, as in JSON.
func millis(nanos int64) int64 { return nanos / int64(time.Millisecond) }

func (s *server) status(r *request) (*answer, error) {
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	fields, err := s.statusFields(r)
	if err != nil {
		return nil, err
	}
	return jsonAnswer(fields)
}

func (s *server) statusFields(r *request) (map[string]any, error) {
	stats, err := s.Store.Status(r.Context())
	if err != nil {
		return nil, err
	}
	evicted, refused := map[string]int{}, map[string]int{}
	for i, n := range stats.Evicted {
		evicted[model.Evicted(i).String()] = n
	}
	for i, n := range stats.Refused {
		refused[model.Refused(i).String()] = n
	}
	return map[string]any{
		"version": s.Version, "now": millis(r.now.UnixNano()), "window_ms": stats.Window.Milliseconds(),
		"resolution_ms": stats.Resolution.Milliseconds(), "max_bytes": s.MaxBytes, "bytes": stats.Bytes,
		"series": stats.Series, "max_series": stats.MaxSeries, "profiles": stats.Profiles, "samples": stats.Samples,
		"evicted": evicted, "refused": refused, "disk_failing": stats.DiskFailing, "disk_bytes": stats.DiskBytes,
		"disk_blocks":  stats.DiskBlocks,
		"coarse_until": millis(stats.CoarseUntil), "coarse_step_ms": millis(stats.CoarseStep),
	}, nil
}

func (s *server) services(r *request) (*answer, error) {
	search := strings.ToLower(r.params.Get("search"))
	limit := r.params.Int("limit", math.MaxInt32, 1, math.MaxInt32)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	services, err := s.Store.Services(r.Context(), r.meter)
	if err != nil {
		return nil, err
	}
	type service struct {
		Service  string `json:"service"`
		Profiles int    `json:"profiles"`
		Samples  int    `json:"samples"`
		From     int64  `json:"from"`
		Until    int64  `json:"until"`
	}
	services = slices.DeleteFunc(services, func(in answers.ServiceInfo) bool {
		return !strings.Contains(strings.ToLower(in.Service), search)
	})
	list := []service{}
	for _, in := range services[:min(limit, len(services))] {
		list = append(list, service{in.Service, in.Profiles, in.Samples, millis(in.From), millis(in.Until)})
	}
	return jsonAnswer(map[string]any{"services": list, "more": len(services) - len(list)})
}

type profileJSON struct {
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

func (s *server) profiles(r *request) (*answer, error) {
	service := r.params.Get("service")
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	infos, err := s.Store.Catalog(r.Context(), service, r.meter)
	if err != nil {
		return nil, err
	}
	return jsonAnswer(map[string]any{"profiles": listProfiles(infos, service)})
}

// listProfiles lists the profiles of a service, or of all if service is empty.
func listProfiles(infos []answers.ProfileInfo, service string) []profileJSON {
	list := []profileJSON{}
	for _, in := range infos {
		if service != "" && in.Service != service {
			continue
		}
		list = append(list, profileJSON{
			in.Service, in.Profile, in.Type.String(), in.Default, in.Values.String(), millis(in.From), millis(in.Until),
			in.Samples, in.Bytes, in.Timestamps, in.Moved, in.Instances,
		})
	}
	return list
}

func (r *request) selection() model.Selection {
	sel := r.params.Selection(r.now, "", nil)
	sel.Meter = r.meter
	return sel
}

func (r *request) json() *answer { return &answer{body: body{meter: r.meter}, contentType: jsonType} }

// selected reads the selection, which must name a service and a profile.
func (r *request) selected() model.Selection {
	sel := r.selection()
	if sel.Service == "" || sel.Profile == "" {
		r.params.Fail(query.BadRequest("`service` and `profile` must be given", "GET /api/profiles lists what there is"))
	}
	return sel
}

func (s *server) attributes(r *request) (*answer, error) {
	sel := r.selected()
	limit := r.params.Int("limit", 100, 1, 10_000)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	infos, err := s.Store.Attributes(r.Context(), sel, limit)
	if err != nil {
		return nil, err
	}
	// A longer key or value is too long for the page and for a URL.
	infos = slices.DeleteFunc(infos, func(in answers.AttributeInfo) bool { return len(in.Key) > maxNameBytes })
	a := r.json()
	a.raw(`{"attributes":`)
	a.list(len(infos), func(i int) {
		in := &infos[i]
		all := len(in.Values)
		in.Values = slices.DeleteFunc(in.Values, func(v answers.AttributeValue) bool { return len(v.Value) > maxNameBytes })
		a.format(`{"key":%s,"scope":%q,"values":`, quote(in.Key), in.Scope)
		a.list(len(in.Values), func(i int) {
			a.format(`{"value":%s,"samples":%d}`, quote(in.Values[i].Value), in.Values[i].Samples)
		})
		a.format(`,"more":%d}`, in.More+all-len(in.Values))
	})
	a.raw("}")
	return a, a.err
}

func (s *server) timeline(r *request) (*answer, error) {
	sel := r.selected()
	points := r.params.Int("points", 360, 1, 10_000)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	t, err := s.Store.Timeline(r.Context(), sel, points, r.now)
	if err != nil {
		return nil, err
	}
	a := r.json()
	a.format(`{"type":%s,"unit":%s,"kind":%q,"from":%d,"step_ms":%d,"more_groups":%d,"groups":`,
		quote(t.Type.String()), quote(t.Type.Unit), t.Values, millis(t.From), millis(t.Step), t.MoreGroups)
	a.list(len(t.Groups), func(i int) {
		g := &t.Groups[i]
		a.format(`{"name":%s,"values":`, quote(g.Name))
		a.values(g.Values)
		a.raw("}")
	})
	a.raw("}")
	return a, a.err
}

func (s *server) heatmap(r *request) (*answer, error) {
	sel := r.selected()
	columns := r.params.Int("columns", 600, 1, 1200)
	rows := r.params.Int("rows", 50, 1, 1000)
	if !slices.Contains(answers.HeatRows, rows) {
		r.params.Fail(query.BadRequest(fmt.Sprintf("`rows` must be one of %v, found %d", answers.HeatRows, rows), ""))
	}
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	h, err := s.Store.HeatMap(r.Context(), sel, columns, rows)
	if err != nil {
		return nil, err
	}
	a := r.json()
	a.format(`{"type":%s,"unit":%s,"from":%d,"seconds":%d,"columns":%d,"rows":%d,"observations":%d,"cut":%t,"cells":`,
		quote(h.Type.String()), quote(h.Type.Unit), millis(h.From), h.Seconds, h.Columns, h.Rows, h.Observations, h.IsCut)
	a.list(len(h.Cells), func(i int) { a.float(math.Round(h.Cells[i]*1000) / 1000) })
	a.raw("}")
	return a, a.err
}

// events answers with columns. Times are nanoseconds since base, which is in Unix milliseconds: nanoseconds since 1970
// would be too large for a number in JavaScript.
func (s *server) events(r *request) (*answer, error) {
	sel := r.selection()
	if sel.Service == "" {
		r.params.Fail(query.BadRequest("`service` must be given", "GET /api/services lists them"))
	}
	limit := r.params.Int("limit", 5000, 1, 20_000)
	if err := r.params.Check(); err != nil {
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
	a := r.json()
	a.format(`{"base":%d,"left_out":%d,"lanes_left_out":%d,"frames":`, base, e.LeftOut, e.LanesLeftOut)
	a.frames(e.Frames)
	a.raw(`,"lanes":`)
	a.quotedList(e.Lanes)
	a.raw(`,"states":`)
	a.quotedList(e.States)
	a.raw(`,"stacks":`)
	a.list(len(e.Stacks), func(i int) { writeInts(&a.body, e.Stacks[i]) })
	for _, column := range []struct {
		name  string
		value func(*answers.Event) int64
	}{
		{"lane", func(e *answers.Event) int64 { return int64(e.Lane) }},
		{"state", func(e *answers.Event) int64 { return int64(e.State) }},
		{"stack", func(e *answers.Event) int64 { return int64(e.Stack) }},
		{"start", func(e *answers.Event) int64 { return e.Start - base*int64(time.Millisecond) }},
		{"length", func(e *answers.Event) int64 { return e.End - e.Start }},
	} {
		a.format(`,%q:`, column.name)
		a.list(len(e.List), func(i int) { a.int(column.value(&e.List[i])) })
	}
	a.raw("}")
	return a, a.err
}

// The default and the bound of the parameter max_nodes.
const (
	defaultMaxNodes = 100_000
	maxNodesLimit   = 500_000
)

func (s *server) flamegraph(r *request) (*answer, error) {
	sel := r.selected()
	most := r.params.Int("max_nodes", defaultMaxNodes, 1, maxNodesLimit)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	g, err := s.Store.FlameGraph(r.Context(), sel, most)
	if err != nil {
		return nil, err
	}
	return r.graphAnswer(g, "")
}

func (s *server) diff(r *request) (*answer, error) {
	sel := r.selected()
	base := r.params.Selection(r.now, "base.", &sel)
	most := r.params.Int("max_nodes", defaultMaxNodes, 1, maxNodesLimit)
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	g, err := s.Store.Diff(r.Context(), sel, base, most)
	if err != nil {
		return nil, err
	}
	return r.graphAnswer(g, fmt.Sprintf(`"base_total":%d,`, g.BaseTotal[0]))
}

// graphAnswer writes a tree. more has further fields, each with a comma after it.
func (r *request) graphAnswer(g *answers.Graph, more string) (*answer, error) {
	a := r.json()
	a.head(g.Summary, g.Total[0])
	a.format(`%s"profiles":%d,"truncated":%d,"pruned":%t,"more_groups":%d,"frames":`, more, g.Profiles, g.Truncated,
		g.IsPruned, g.MoreGroups)
	a.frames(g.Frames)
	a.raw(`,"nodes":`)
	a.nodes(g.Tree)
	a.raw("}")
	return a, a.err
}

func (s *server) table(r *request) (*answer, error) {
	sel := r.selected()
	limit := r.params.Int("limit", 1000, 1, 100_000)
	by := r.params.OneOf("sort", "self", "total", "name")
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.GroupBy = ""
	g, err := s.Store.FlameGraph(r.Context(), sel, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if err := r.meter.Grow(tableBytes * len(g.Frames)); err != nil {
		return nil, err
	}
	rows := g.Functions()
	answers.SortFunctions(rows, by)
	a := r.json()
	a.head(g.Summary, g.Total[0])
	a.format(`"more":%d,"pruned":%t,"functions":`, max(0, len(rows)-limit), g.IsPruned)
	a.list(min(limit, len(rows)), func(i int) {
		row := &rows[i]
		a.format(`{"name":%s,"file":%s,"kind":%s,"self":%d,"total":%d}`,
			quote(row.Frame.Name), quote(row.Frame.File), quote(row.Frame.Kind), row.Self, row.Total)
	})
	a.raw("}")
	return a, a.err
}

// tableBytes is what a row of a table takes before it is written.
const tableBytes = 32
