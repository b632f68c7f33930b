// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"math"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// samples are nodes of the table of stacks at times, in milliseconds since the start of the profile.
type samples struct {
	stack        indices
	time, deltas reals
	weight, cpu  reals
	weightType   string
}

// What a weight can be.
const (
	weightSamples = "samples"
	weightTime    = "tracing-ms"
	weightBytes   = "bytes"
)

var null = math.NaN()

func (d *decoder) readSamples(s *samples) error {
	columns := map[string]any{
		"stack": &s.stack, "time": &s.time, "timeDeltas": &s.deltas, "weight": &s.weight, "threadCPUDelta": &s.cpu,
	}
	schema := map[string]int{}
	return d.json.Object(func(key string) error {
		switch column, ok := columns[key]; {
		case ok:
			return d.value(column)
		case key == "schema":
			return d.value(&schema)
		case key == "data":
			return d.json.Array(func() error { return d.readRow(schema, columns) })
		case key == "weightType":
			var weightType string
			err := d.value(&weightType)
			if weightType != "" {
				s.weightType = weightType
			}
			return err
		}
		return d.json.Skip()
	})
}

// profileKey is what distinguishes the profiles that are made.
type profileKey struct {
	typ    events.Type
	period int64
	// isCounted means that each sample counts as one, and has a time alone.
	isCounted bool
}

func (d *decoder) profileOf(key profileKey) compact.ProfileIndex {
	p, known := d.profiles[key]
	if !known {
		period := key.typ
		if key.typ.Unit == "count" {
			period = events.Type{Name: "wall", Unit: "nanoseconds"}
		}
		shape := compact.Shape{Timestamps: true, Values: !key.isCounted}
		p = d.NewProfile(d.scope, events.Profile{Sample: key.typ, Period: period, Every: key.period, Shape: shape})
		d.profiles[key] = p
	}
	return p
}

// addThreads adds the samples of all threads: first of those that share tables, so that these are read once.
func (d *decoder) addThreads(p *process) error {
	isFilled := false
	for _, t := range p.threads {
		if t.hasStacks() {
			continue
		}
		if !isFilled {
			isFilled = true
			if err := d.fillTree(&resolver{tables: &p.shared, libs: p.libs}); err != nil {
				return err
			}
		}
		if err := d.addThread(p, t); err != nil {
			return err
		}
	}
	for _, t := range p.threads {
		if !t.hasStacks() {
			continue
		}
		t.share(&p.shared)
		if err := d.fillTree(&resolver{tables: &t.tables, libs: p.libs}); err != nil {
			return err
		}
		if err := d.addThread(p, t); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) addThread(p *process, t *thread) error {
	attributes := d.threadAttributes(t)
	if err := d.addSamples(p, &t.samples, attributes); err != nil {
		return err
	}
	for i := range t.allocations {
		if err := d.addSamples(p, &t.allocations[i], attributes); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) threadAttributes(t *thread) dictionary.AttributeSetIndex {
	var set []int32
	for _, number := range []struct {
		key string
		id  id
	}{{events.AttributeProcessID, t.pid}, {events.AttributeThreadID, t.tid}} {
		if v, err := strconv.ParseInt(string(number.id), 10, 64); err == nil {
			set = append(set, d.IntAttribute(number.key, v))
		}
	}
	if t.name != "" {
		set = append(set, d.StringAttribute(events.AttributeThreadName, t.name))
	}
	return d.Dict.AttributeSets.Intern(set)
}

// nanosPer has the units of CPU time. Cycles are not a time.
var nanosPer = map[string]float64{"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6}

func (d *decoder) addSamples(p *process, s *samples, attributes dictionary.AttributeSetIndex) error {
	key, factor := s.key(&p.meta)
	cpu := nanosPer[p.meta.Units.CPU]
	start, _ := events.Scaled(p.meta.StartTime, 1e6)
	at := 0.0 // milliseconds since then
	for i, node := range s.stack {
		if err := d.Check(0); err != nil {
			return err
		}
		if len(s.time) > 0 {
			at = s.time.at(i)
		} else {
			at += s.deltas.at(i)
		}
		since := math.Round(at * 1e6)
		stack, ok := d.tree.Stack(&d.Builder, node)
		if t := float64(start) + since; !ok || !(t >= 0 && t < events.Year2100*1e9) {
			d.Stats.Dropped++
			continue
		}
		timestamp := uint64(start + int64(since))
		id := compact.Identity{Stack: stack, Attributes: attributes}
		if used := math.Round(s.cpu.at(i) * cpu); used > 0 && used < math.MaxInt64 {
			d.observe(profileKey{typ: events.Type{Name: "cpu", Unit: "nanoseconds"}, period: 1}, id, timestamp, int64(used))
		}
		if node == events.NoNode { // what was not sampled
			d.Stats.Filtered++
			continue
		}
		weight := 1.0
		if len(s.weight) > 0 {
			weight = math.Round(s.weight.at(i) * factor)
		}
		switch {
		case weight == 0, key.typ.Name == allocated.Name && weight < 0: // an allocation that was freed
			d.Stats.Filtered++
		case weight > 0 && weight < math.MaxInt64:
			d.observe(key, id, timestamp, int64(weight))
		default:
			d.Stats.Dropped++
		}
	}
	return nil
}

var allocated = events.Type{Name: "alloc_space", Unit: "bytes"}

// key returns the profile that the samples belong to, and what its values are of the weights.
func (s *samples) key(m *meta) (key profileKey, factor float64) {
	switch s.weightType {
	case weightTime:
		return profileKey{typ: events.Type{Name: "wall", Unit: "nanoseconds"}, period: 1}, 1e6
	case weightBytes:
		return profileKey{typ: allocated, period: 1}, 1
	}
	key = profileKey{typ: events.Type{Name: "samples", Unit: "count"}, isCounted: true}
	if period := m.Interval * 1e6; period > 0 && period < math.MaxInt64 {
		key.period = int64(math.Round(period))
	}
	for i := range s.weight {
		key.isCounted = key.isCounted && s.weight[i] == 1
	}
	return key, 1
}

func (d *decoder) observe(key profileKey, id compact.Identity, timestamp uint64, value int64) {
	d.Event(d.profileOf(key), id, compact.Observation{Timestamp: timestamp, Value: value})
}
