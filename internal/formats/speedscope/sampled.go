// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package speedscope

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

const unreadable dictionary.StackIndex = -1

// readStack reads a stack: indices of frames, root first.
func (d *decoder) readStack() error {
	var indices []int64
	isStack, err := d.json.Value(&indices)
	if err != nil {
		return err
	}
	d.stack = d.stack[:0]
	for _, i := range slices.Backward(indices) {
		if i < 0 || i >= int64(len(d.frames)) {
			isStack = false
			break
		}
		d.stack = append(d.stack, d.frames[i])
	}
	stack := unreadable
	if isStack {
		stack = d.Dict.Stacks.Intern(d.stack)
	}
	d.profile.stacks = append(d.profile.stacks, stack)
	return nil
}

// addSamples adds the samples of a sampled profile. Equal stacks are one sample: the file need not have them in their
// order in time.
func (d *decoder) addSamples(p *profile, attributes dictionary.AttributeSetIndex) error {
	if len(p.stacks) == 0 {
		return nil
	}
	typ, factor := d.typeOf(p)
	to := d.profileOf(typ, false)
	for i, stack := range p.stacks {
		if err := d.Check(0); err != nil {
			return err
		}
		weight := 0.0
		if i < len(p.weights) {
			weight = p.weights[i]
		}
		value, ok := events.Scaled(weight, factor)
		if !ok || stack == unreadable || i >= len(p.weights) {
			d.Stats.Dropped++
			continue
		}
		d.Stats.Events++
		if value > 0 {
			d.Observe(to, compact.Identity{Stack: stack, Attributes: attributes}, compact.Observation{Value: value})
		}
	}
	return nil
}
