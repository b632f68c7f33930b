// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/findings"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

type findingsIn struct {
	Service string  `json:"service,omitempty" jsonschema:"name of the service; without one, the error lists some"`
	From    string  `json:"from,omitempty" jsonschema:"start, such as 2026-01-31T12:00:00Z or Unix time"`
	Until   string  `json:"until,omitempty" jsonschema:"end; now if it is missing"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"length of the time before until, instead of from"`
}

func findingsOf(c *call, in *findingsIn) error {
	p := c.params
	p.Set("service", in.Service)
	(&span{From: in.From, Until: in.Until, Seconds: in.Seconds}).set(p, "")
	if in.From == "" && in.Seconds == 0 && c.DefaultTime > 0 {
		p.Set("seconds", strconv.FormatFloat(c.DefaultTime.Seconds(), 'f', -1, 64))
	}
	sel := p.Selection(c.now, "", nil)
	sel.Meter = c.meter
	if err := c.requireNames(sel.Service, nil); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	sel.Until = cmp.Or(sel.Until, c.now.UnixNano())
	first, err := c.requireProfiles(&sel)
	if err != nil {
		return err
	}
	sel.From = cmp.Or(sel.From, first)
	list, unjudged, err := findings.Of(c.ctx, c.Store, sel, c.now)
	if err != nil {
		return err
	}
	c.linef("%d findings about %s from %s to %s", len(list), name(sel.Service), formatTime(sel.From),
		formatTime(sel.Until))
	for i := range list {
		f := &list[i]
		link := ""
		if c.HasPage {
			link = " On the page: /#" + f.Link
		}
		c.linef("%s: %s %s%s", f.Rule, clean(f.Text, 500), f.Advice, link)
	}
	switch {
	case len(unjudged) > 0:
		if len(list) == 0 {
			c.linef("nothing stands out in what there is")
		}
		c.linef("not judged: %s", strings.Join(unjudged, "; "))
	case len(list) == 0:
		c.linef("nothing stands out: no function has grown, and garbage collection, locks, regular expressions, JSON, copies and goroutines are within bounds")
	}
	return nil
}

// requireProfiles returns when the first profile of a service began, and an error if the service has none in a time:
// then nothing stands out, and nothing is well.
func (c *call) requireProfiles(sel *model.Selection) (from int64, err error) {
	list, err := c.Store.Catalog(c.ctx, sel.Service, c.meter)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, noService(sel.Service)
	}
	from, until := list[0].From, list[0].Until
	for i := range list {
		from, until = min(from, list[i].From), max(until, list[i].Until)
	}
	if from < sel.Until && until >= sel.From {
		return from, nil
	}
	return 0, &query.Error{Status: http.StatusNotFound, Message: "no profile is in the selected time",
		Hint: fmt.Sprintf("there are profiles from %s to %s", formatTime(from), formatTime(until))}
}
