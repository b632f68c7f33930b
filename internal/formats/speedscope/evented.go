// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package speedscope

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// opening is when a frame opens or closes.
type opening struct {
	at     float64
	frame  int32
	isOpen bool
}

// openingBytes and stackBytes are the memory of an opening and of a stack with its weight, in lists that grow, and
// fractionBytes that of an entry of a map, which may just have grown.
const openingBytes, stackBytes, fractionBytes = 2 * 16, 12, 64

func (d *decoder) readOpening() error {
	event := struct {
		Type  string  `json:"type"`
		Frame int64   `json:"frame"`
		At    float64 `json:"at"`
	}{Frame: -1}
	if err := d.json.Read(&event); err != nil {
		return err
	}
	if event.Frame < 0 || event.Frame >= int64(len(d.frames)) || event.Type != "O" && event.Type != "C" {
		d.Stats.Dropped++
		return nil
	}
	d.profile.openings = append(d.profile.openings,
		opening{at: event.At, frame: int32(event.Frame), isOpen: event.Type == "O"})
	return nil
}

// child names a node by its caller and its frame.
type child struct{ caller, frame int32 }

// timeline follows the events of one profile.
type timeline struct {
	d          *decoder
	to         compact.ProfileIndex
	isTimed    bool // and not values of another kind
	factor     int64
	attributes dictionary.AttributeSetIndex

	now      float64
	node     int32 // of the open frames
	open     []int32
	isOpen   map[int32]int // how often a frame is open
	children map[child]int32
}

// addIntervals adds the intervals of an evented profile, each of which ends at its timestamp.
func (d *decoder) addIntervals(p *profile, attributes dictionary.AttributeSetIndex) error {
	if len(p.openings) == 0 {
		return nil
	}
	typ, factor := d.typeOf(p)
	t := timeline{
		d: d, isTimed: typ.Unit == nanoseconds, factor: factor, attributes: attributes,
		now: p.openings[0].at, node: events.NoNode, isOpen: map[int32]int{}, children: map[child]int32{},
	}
	t.to = d.profileOf(typ, t.isTimed)
	d.tree.Reset()
	for _, event := range p.openings {
		if err := d.Check(0); err != nil {
			return err
		}
		t.advance(event.at)
		if !event.isOpen {
			t.close(event.frame)
		} else if err := t.push(event.frame); err != nil {
			return err
		}
	}
	if p.end > t.now {
		t.advance(p.end) // frames that never close
	}
	return nil
}

// advance adds the time until at to the stack that is open.
func (t *timeline) advance(at float64) {
	d := t.d
	length, ok := events.Scaled(at-t.now, t.factor)
	end, isTime := events.Scaled(at, t.factor)
	if !ok || t.isTimed && (!isTime || end >= events.Year2100*1e9) {
		d.Stats.Dropped++
		return
	}
	lasted := at - t.now
	t.now = at
	if lasted == 0 || t.node == events.NoNode {
		return
	}
	stack, ok := d.tree.Stack(&d.Builder, t.node)
	if !ok {
		d.Stats.Dropped++
		return
	}
	id := compact.Identity{Stack: stack, Attributes: t.attributes}
	if !t.isTimed {
		d.Stats.Events++
		if value := d.whole(identity{id, t.to}, lasted); value > 0 {
			d.Observe(t.to, id, compact.Observation{Value: value})
		}
		return
	}
	if length == 0 {
		return
	}
	d.Event(t.to, id, compact.Observation{Timestamp: uint64(end), Value: length})
	d.Widen(t.to, uint64(end-min(length, end)), uint64(end))
}

const childBytes = 48

func (t *timeline) push(frame int32) error {
	at := child{t.node, frame}
	node, known := t.children[at]
	if !known {
		node = t.d.tree.Add(t.node, t.d.frames[frame])
		t.children[at] = node
		if err := t.d.Grow(events.NodeBytes + childBytes); err != nil {
			return err
		}
	}
	t.node = node
	t.open = append(t.open, frame)
	t.isOpen[frame]++
	return nil
}

// close closes a frame, and those that it has called and that are still open.
func (t *timeline) close(frame int32) {
	if t.isOpen[frame] == 0 {
		t.d.Stats.Dropped++
		return
	}
	for {
		last := t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.isOpen[last]--
		t.node = t.d.tree.Caller(t.node)
		if last == frame {
			return
		}
		t.d.Stats.Dropped++
	}
}
