// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

type baseSelection struct {
	Service string `json:"service,omitempty" jsonschema:"another service"`
	span
}

type compareIn struct {
	selection
	frameFilter
	Base  *baseSelection `json:"base,omitempty" jsonschema:"what to compare with: its time, attributes or service; what is missing is as in the selection. Without base: the time of the same length before"`
	Sort  string         `json:"sort,omitempty" jsonschema:"self (default) or total"`
	Limit int            `json:"limit,omitempty" jsonschema:"how many functions, 20 by default, at most 200"`
}

type change struct {
	frame     *answers.Frame
	now, base int64
	points    float64 // of percent
}

func compare(c *call, in *compareIn) error {
	limit := c.within("limit", in.Limit, 20, 200)
	by := c.oneOf("sort", in.Sort, "self", "total")
	stacks, err := in.compile()
	if err != nil {
		return err
	}
	sel, base, err := in.sides(c)
	if err != nil {
		return err
	}
	g, err := c.Store.Diff(c.ctx, sel, base, math.MaxInt32)
	if err != nil {
		return err
	}
	if g.Profiles == 0 {
		return c.nothingFound(&sel)
	}
	if g.BaseTotal[0] == 0 {
		e := c.Queries.Error(c.nothingFound(&base))
		return &query.Error{Status: e.Status, Message: "the base has nothing: " + e.Message, Hint: e.Hint, Cause: e.Cause}
	}
	t, err := stacks.apply(c.meter, g.Tree)
	if err != nil {
		return err
	}
	if err := c.meter.Grow(3 * tableBytes * len(g.Frames)); err != nil {
		return err
	}
	changes := changesOf(t, g.Total[0], g.BaseTotal[0], by)
	c.describe("changes by "+by, &sel, g, t)
	c.linef("base: %s%s; total %s", name(base.Service), sideText(&base), value(float64(g.BaseTotal[0]), g.Type.Unit))
	c.linef("change: percentage points of the total, the largest first")
	c.row("change", "now", "now%", "base", "base%", "function")
	leftOut := c.rows(len(changes), limit, func(i int) []string {
		r := &changes[i]
		return []string{
			fmt.Sprintf("%+.1f", r.points), value(float64(r.now), g.Type.Unit), percent(r.now, g.Total[0]),
			value(float64(r.base), g.Type.Unit), percent(r.base, g.BaseTotal[0]), label(r.frame),
		}
	})
	if leftOut > 0 {
		c.leftOut(leftOut,
			fmt.Sprintf("functions, which change by at most %.1f", math.Abs(changes[len(changes)-leftOut].points)),
			"a larger `limit`, `focus` or `ignore`")
	}
	return nil
}

// isSame reports whether a base states nothing that distinguishes it from the selection.
func (b *baseSelection) isSame(sel *selection) bool {
	return b == nil || (b.Service == "" || b.Service == sel.Service) && b.From == "" && b.Until == "" && b.Seconds == 0 &&
		len(b.Attributes) == 0
}

func (in *compareIn) sides(c *call) (sel, base model.Selection, err error) {
	if !in.Base.isSame(&in.selection) {
		return in.read(c, in.Base)
	}
	if sel, _, err = in.read(c, nil); err != nil {
		return sel, base, err
	}
	if sel.From == 0 {
		return sel, base,
			query.BadRequest("`base` must be given where the selection has no start", "or give `seconds`, or `from`")
	}
	base = sel
	until := cmp.Or(sel.Until, c.now.UnixNano())
	base.From, base.Until = max(sel.From-(until-sel.From), 1), sel.From
	return sel, base, nil
}

func sideText(sel *model.Selection) string {
	text := ""
	for _, a := range sel.Attributes {
		text += " " + name(a.Key) + "=" + name(a.Value)
	}
	if sel.From > 0 {
		text += " from " + formatTime(sel.From)
	}
	if sel.Until > 0 {
		text += " to " + formatTime(sel.Until)
	}
	return clean(text, maxErrorBytes)
}

// changesOf returns the functions whose part of the total differs, the largest difference first.
func changesOf(t *answers.Tree, total, baseTotal int64, by string) []change {
	other := *t
	other.Self, other.Total = t.BaseSelf, t.BaseTotal
	rows, baseRows := t.Functions(), other.Functions()
	var changes []change
	for i := range rows {
		now, base := rows[i].Self, baseRows[i].Self
		if by == "total" {
			now, base = rows[i].Total, baseRows[i].Total
		}
		if points := 100 * (share(now, total) - share(base, baseTotal)); points != 0 {
			changes = append(changes, change{rows[i].Frame, now, base, points})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(byChange(a.points, b.points), strings.Compare(a.frame.Name, b.frame.Name),
			strings.Compare(a.frame.File, b.frame.File))
	})
	return changes
}

// byChange orders changes, the largest first. What one function gains as a share, others lose, so two can change by as
// much but for the rounding: then what grew is before what shrank.
func byChange(a, b float64) int {
	size, other := math.Abs(a), math.Abs(b)
	if math.Abs(size-other) <= 1e-9*size {
		return cmp.Compare(math.Copysign(1, b), math.Copysign(1, a))
	}
	return cmp.Compare(other, size)
}
