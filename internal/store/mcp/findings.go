// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/findings"
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
	if in.From == "" && in.Seconds == 0 {
		p.Set("seconds", strconv.FormatFloat(cmp.Or(c.DefaultTime, time.Hour).Seconds(), 'f', -1, 64))
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
	list, err := findings.Of(c.ctx, c.Store, sel, c.now)
	if err != nil {
		return err
	}
	c.linef("%d findings about %s from %s to %s", len(list), name(sel.Service), formatTime(sel.From),
		formatTime(sel.Until))
	for i := range list {
		f := &list[i]
		c.linef("%s: %s %s On the page: /#%s", f.Rule, clean(f.Text, 500), f.Advice, f.Link)
	}
	if len(list) == 0 {
		c.linef("nothing stands out: no function has grown, and garbage collection, locks, regular expressions, JSON, copies and goroutines are within bounds")
	}
	return nil
}
