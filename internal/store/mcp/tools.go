// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

func (s *server) addTools() {
	addTool(s, "list_services", "Lists the services that have profiles, and for which time.", listServices)
	addTool(s, "list_profiles",
		"Lists the profiles of a service (such as process_cpu, memory, goroutine) and their sample types.", listProfiles)
	addTool(s, "list_attributes",
		"Lists attributes (such as service.version or k8s.pod.name) and their values, to filter and to compare by.",
		listAttributes)
	addTool(s, "hottest_functions",
		"Lists the functions of a profile with the largest values: self is the function alone, total includes what it calls.",
		hottestFunctions)
	addTool(s, "call_tree",
		"Shows what a function calls, or what calls it, as a tree of the largest paths; without a function, the whole profile from its entry.", callTreeOf)
	addTool(s, "findings",
		"Lists what stands out in a service: functions that have grown since the last version or since yesterday, garbage collection, locks, "+
			"compiled patterns, JSON, copies, goroutines that only become more. Begin here.", findingsOf)
	addTool(s, "timeline", "Shows the values of a profile over time, also by the values of an attribute.", timeline)
	addTool(s, "compare",
		"Compares two times, or two values of an attribute such as service.version: which functions have become a larger or smaller part.", compare)
}

type span struct {
	From       string   `json:"from,omitempty" jsonschema:"start, such as 2026-01-31T12:00:00Z or Unix time"`
	Until      string   `json:"until,omitempty" jsonschema:"end; now if it is missing"`
	Seconds    float64  `json:"seconds,omitempty" jsonschema:"length of the time before until, instead of from"`
	Attributes []string `json:"attributes,omitempty" jsonschema:"filters, each key=value; of several values of one key any matches"`
}

// selection is what most tools read.
type selection struct {
	Service string `json:"service,omitempty" jsonschema:"name of the service; without one, the error lists some"`
	Profile string `json:"profile,omitempty" jsonschema:"name of the profile, such as process_cpu; without one, the error lists those of the service"`
	Type    string `json:"type,omitempty" jsonschema:"sample type, such as inuse_space; the profile's default if it is missing"`
	span
}

// maxAttributes bounds the filters of a selection.
const maxAttributes = 50

// set sets the parameters of a span, which have a prefix.
func (s *span) set(p *query.Params, prefix string) {
	p.Set(prefix+"from", s.From)
	p.Set(prefix+"until", s.Until)
	if s.Seconds != 0 {
		p.Set(prefix+"seconds", strconv.FormatFloat(s.Seconds, 'g', -1, 64))
	}
	if len(s.Attributes) > maxAttributes {
		p.Fail(query.BadRequest(fmt.Sprintf("`attributes` must have at most %d entries, found %d", maxAttributes,
			len(s.Attributes)), ""))
		return
	}
	for _, given := range s.Attributes {
		key, value, ok := strings.Cut(given, "=")
		if !ok || key == "" {
			p.Fail(query.BadRequest(fmt.Sprintf("`attributes` must be key=value, found %q", model.Shorten(given)),
				"list_attributes lists them"))
		}
		p.Add(prefix+"attr."+key, value)
	}
}

// read returns the selection, and that of base if base is not nil, or the fault of an argument.
func (s *selection) read(c *call, base *baseSelection) (sel, other model.Selection, err error) {
	p := c.params
	p.Set("service", s.Service)
	p.Set("profile", s.Profile)
	p.Set("type", s.Type)
	s.set(p, "")
	if s.From == "" && s.Until == "" && s.Seconds == 0 && c.DefaultTime > 0 {
		p.Set("seconds", strconv.FormatFloat(c.DefaultTime.Seconds(), 'f', -1, 64))
	}
	sel = p.Selection(c.now, "", nil)
	sel.Meter = c.meter
	if err := c.requireNames(sel.Service, &sel.Profile); err != nil {
		return sel, other, err
	}
	if base != nil {
		p.Set("base.service", base.Service)
		base.set(p, "base.")
		other = p.Selection(c.now, "base.", &sel)
	}
	return sel, other, p.Check()
}

// within returns a number of an argument, or its default for 0.
func (c *call) within(key string, n, def, limit int) int {
	if n != 0 {
		c.params.Set(key, strconv.Itoa(n))
	}
	return c.params.Int(key, def, 1, limit)
}

// oneOf returns an argument that is one of several words, the first by default.
func (c *call) oneOf(key, word string, words ...string) string {
	c.params.Set(key, word)
	return c.params.OneOf(key, words...)
}

// nothingFound returns the error of a selection without profiles, with the time for which there are some.
func (c *call) nothingFound(sel *model.Selection) error {
	return query.NothingFound(c.ctx, c.Store, sel, func(from, until int64) string {
		return fmt.Sprintf("from %s to %s; list_attributes lists attributes", formatTime(from), formatTime(until))
	})
}

// leftOut appends how to ask for what the answer does not have.
func (c *call) leftOut(n int, what, how string) {
	if n > 0 {
		c.linef("left out: %d %s; ask with %s", n, what, how)
	}
}

// graph returns the tree of a selection, and that of the stacks that the filter selects.
func (c *call) graph(
	in *selection, filter *frameFilter,
) (sel model.Selection, g *answers.Graph, t *answers.Tree, err error) {
	sel, _, err = in.read(c, nil)
	stacks, wrong := filter.compile()
	if err := cmp.Or(err, wrong); err != nil {
		return sel, nil, nil, err
	}
	if g, err = c.Store.FlameGraph(c.ctx, sel, math.MaxInt32); err != nil {
		return sel, nil, nil, err
	}
	if g.Profiles == 0 {
		return sel, nil, nil, c.nothingFound(&sel)
	}
	t, err = stacks.apply(c.meter, g.Tree)
	return sel, g, t, err
}

// describe appends what an answer is about.
func (c *call) describe(what string, sel *model.Selection, g *answers.Graph, t *answers.Tree) {
	c.linef("%s of %s %s %s, in %s (%s)", what, name(sel.Service), name(sel.Profile), name(g.Type.Type),
		clean(cmp.Or(g.Type.Unit, "count"), 30), g.Values)
	c.linef("%d profiles from %s to %s; total %s", g.Profiles, formatTime(g.From), formatTime(g.Until),
		value(float64(g.Total[0]), g.Type.Unit))
	if g.IsPruned {
		c.linef("the smallest nodes are left out, since all need more memory than a query may take; their values are in the total")
	}
	if t != g.Tree {
		c.linef("selected stacks: %s (%s); percentages are of the total", value(float64(t.Total[0]), g.Type.Unit),
			percent(t.Total[0], g.Total[0]))
	}
}

const tableBytes = 64

type hottestIn struct {
	selection
	frameFilter
	Sort  string `json:"sort,omitempty" jsonschema:"self (default) or total"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many, 20 by default, at most 200"`
}

func hottestFunctions(c *call, in *hottestIn) error {
	limit := c.within("limit", in.Limit, 20, 200)
	by := c.oneOf("sort", in.Sort, "self", "total")
	sel, g, t, err := c.graph(&in.selection, &in.frameFilter)
	if err != nil {
		return err
	}
	if err := c.meter.Grow(tableBytes * len(g.Frames)); err != nil {
		return err
	}
	rows := slices.DeleteFunc(t.Functions(), func(r answers.FunctionRow) bool { return r.Total == 0 })
	answers.SortFunctions(rows, by)
	c.describe("hottest functions by "+by, &sel, g, t)
	c.row("self", "self%", "total", "total%", "function")
	leftOut := c.rows(len(rows), limit, func(i int) []string {
		r := &rows[i]
		return []string{
			value(float64(r.Self), g.Type.Unit), percent(r.Self, g.Total[0]), value(float64(r.Total), g.Type.Unit),
			percent(r.Total, g.Total[0]), label(r.Frame),
		}
	})
	var self int64
	for _, r := range rows[len(rows)-leftOut:] {
		self = otlp.SaturatingAdd(self, r.Self)
	}
	c.leftOut(leftOut, fmt.Sprintf("functions with %s of self", percent(self, g.Total[0])),
		"a larger `limit`, `focus` or `ignore`")
	return nil
}

type callTreeIn struct {
	selection
	frameFilter
	Function   string  `json:"function,omitempty" jsonschema:"name of the function: a text that it contains, or a regular expression between slashes"`
	Direction  string  `json:"direction,omitempty" jsonschema:"callees (default: what it calls) or callers (what calls it)"`
	Depth      int     `json:"depth,omitempty" jsonschema:"how many calls above or below, 20 by default, at most 100"`
	MinPercent float64 `json:"min_percent,omitempty" jsonschema:"smallest part of the total that is shown, 0.5 by default"`
	Limit      int     `json:"limit,omitempty" jsonschema:"how many functions of the tree, the largest ones, 40 by default, at most 400"`
}

func callTreeOf(c *call, in *callTreeIn) error {
	limit := c.within("limit", in.Limit, 40, 400)
	depth := c.within("depth", in.Depth, 20, 100)
	direction := c.oneOf("direction", in.Direction, "callees", "callers")
	if !(in.MinPercent >= 0 && in.MinPercent <= 100) {
		return query.BadRequest("`min_percent` must be from 0 to 100", "")
	}
	match, err := matcher("function", in.Function)
	if err != nil {
		return err
	}
	if match == nil && direction == "callers" {
		return query.BadRequest("`callers` needs a `function`", "hottest_functions lists names")
	}
	sel, g, t, err := c.graph(&in.selection, &in.frameFilter)
	if err != nil {
		return err
	}
	wanted, err := matches(c.meter, t.Frames, match)
	if err != nil {
		return err
	}
	tree := newCallTree(c.meter, depth)
	if direction == "callers" {
		err = tree.addCallers(t, wanted)
	} else {
		err = tree.addCallees(t, wanted)
	}
	if err != nil {
		return err
	}
	if len(tree.nodes) == 1 {
		return &query.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("no selected function matches %q", in.Function),
			Hint: "hottest_functions lists names"}
	}
	c.describe(direction, &sel, g, t)
	if in.Function != "" {
		c.matched(tree, t, in.Function, g)
	}
	whole := g.Total[0]
	least := max(int64(math.Ceil(cmp.Or(in.MinPercent, 0.5)/100*float64(whole))), 1)
	children, leftOut := tree.largest(limit, least)
	if direction == "callers" {
		c.linef("percent, value and path, a function first and its callers below it; functions of one path are joined with ;")
	} else {
		c.linef("percent, value and path, callers first; functions of one path are joined with ;")
	}
	leftOut += tree.write(&c.answer, t.Frames, whole, g.Type.Unit, children)
	c.leftOut(leftOut, "functions of the tree", "a larger `limit`, a smaller `min_percent`, or a `function` among them")
	c.leftOut(tree.tooDeep, fmt.Sprintf("calls beyond %d", depth), "a larger `depth`")
	return nil
}

// matched appends which functions a pattern has found.
func (c *call) matched(tree *callTree, t *answers.Tree, pattern string, g *answers.Graph) {
	var names []string
	for _, n := range tree.nodes {
		if n.parent == 0 {
			names = append(names, function(t.Frames[n.frame].Name))
		}
	}
	const most = 5
	slices.Sort(names)
	names = slices.Compact(names)
	shown := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	c.linef("%q is %s, with %s (%s) in all", pattern, shown, value(float64(tree.nodes[0].total), g.Type.Unit),
		percent(tree.nodes[0].total, g.Total[0]))
}

type timelineIn struct {
	selection
	GroupBy string `json:"group_by,omitempty" jsonschema:"key of an attribute: a column for each of its largest values"`
	Points  int    `json:"points,omitempty" jsonschema:"about how many steps, 24 by default, at most 200"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many columns, 5 by default, at most 20"`
}

func timeline(c *call, in *timelineIn) error {
	points := c.within("points", in.Points, 24, 200)
	limit := c.within("limit", in.Limit, 5, 20)
	sel, _, err := in.read(c, nil)
	if err != nil {
		return err
	}
	sel.GroupBy = in.GroupBy
	tl, err := c.Store.Timeline(c.ctx, sel, points, c.now)
	if err != nil {
		return err
	}
	sums := map[string]float64{}
	for _, g := range tl.Groups {
		sums[g.Name], _ = answers.Sum(g.Values)
	}
	slices.SortStableFunc(tl.Groups, func(a, b answers.TimelineGroup) int {
		return cmp.Compare(sums[b.Name], sums[a.Name])
	})
	c.linef("%s %s %s over time, in %s (%s) for each step of %s; - is without profiles", name(sel.Service),
		name(sel.Profile), name(tl.Type.Type), clean(cmp.Or(tl.Type.Unit, "count"), 30), tl.Values, time.Duration(tl.Step))
	shown := tl.Groups[:min(len(tl.Groups), limit)]
	header := []string{"from"}
	for _, g := range shown {
		if in.GroupBy == "" {
			header = append(header, "value")
			continue
		}
		header = append(header, name(in.GroupBy)+"="+name(g.Name))
	}
	c.row(header...)
	n := len(tl.Groups[0].Values)
	leftOut := c.rows(n, n, func(i int) []string {
		columns := []string{formatTime(tl.From + int64(i)*tl.Step)}
		for _, g := range shown {
			columns = append(columns, value(g.Values[i], tl.Type.Unit))
		}
		return columns
	})
	c.leftOut(leftOut, "steps", "fewer `points`")
	if tl.MoreGroups > 0 {
		c.linef("%s is the sum of %d further values", answers.OtherGroup, tl.MoreGroups)
	}
	c.leftOut(len(tl.Groups)-len(shown), "values of the attribute", "a larger `limit`, or `attributes`")
	return nil
}
