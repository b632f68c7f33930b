// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// addHeap adds a sampling heap profile: the bytes that the functions allocated and that are still in use. It has no
// time of its own.
func (d *decoder) addHeap(scope compact.ScopeIndex, p *profile, anchor events.Anchor) error {
	space := events.Type{Name: "space", Unit: "bytes"}
	to := d.b.NewProfile(scope, events.Profile{
		Sample: events.Type{Name: "inuse_space", Unit: "bytes"}, Period: space, Shape: compact.Shape{Values: true},
	})
	for i := range p.nodes {
		if err := d.b.Check(0); err != nil {
			return err
		}
		size := p.nodes[i].selfSize
		if size == 0 {
			continue
		}
		stack := unreadable
		if size > 0 && size < math.MaxInt64 {
			stack = d.stackOf(&p.tree, int32(i), none)
		}
		if stack == unreadable {
			d.b.Stats.Dropped++
			continue
		}
		d.b.Stats.Events++
		d.b.Observe(to, compact.Identity{Stack: stack}, compact.Observation{Value: int64(size)})
	}
	if anchor.EndNanos > 0 {
		d.b.SetWindow(to, anchor.EndNanos, anchor.EndNanos)
		d.b.GuessClock()
	}
	return nil
}
