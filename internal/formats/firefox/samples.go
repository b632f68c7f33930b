// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// samples are nodes of the table of stacks at times, in milliseconds since the start of the profile.
type samples struct {
	stack, time, deltas, weight, cpu column

	weightType string
	// areAllocations distinguishes them from the samples of a thread.
	areAllocations bool
}

// What a weight can be.
const (
	weightSamples = "samples"
	weightTime    = "tracing-ms"
	weightBytes   = "bytes"
)

// readSamples reads samples of a thread. weightType is what their weights are if they do not state it.
func (d *decoder) readSamples(t *thread, weightType string) error {
	s := samples{areAllocations: weightType != ""}
	err := d.readColumns(map[string]any{
		"stack": &s.stack, "time": &s.time, "timeDeltas": &s.deltas, "weight": &s.weight, "threadCPUDelta": &s.cpu,
		"weightType": &s.weightType,
	})
	if s.weightType = cmp.Or(s.weightType, weightType); len(s.stack) > 0 {
		t.samples = append(t.samples, s)
	}
	return err
}

// The profiles that are made.
var (
	cpuTime   = profileOf(events.Nanoseconds("cpu"))
	wallTime  = profileOf(events.Nanoseconds("wall"))
	allocated = profileOf(events.Bytes("alloc_space"))
	retained  = events.Profile{Sample: events.Bytes("retained_space"), Period: events.Bytes("space"), Every: 1,
		Shape: compact.Shape{Values: true}}
)

func profileOf(t events.Type) events.Profile {
	return events.Profile{Sample: t, Period: t, Every: 1, Shape: compact.Shape{Timestamps: true, Values: true}}
}

// addThreads adds the samples of all threads: first of those that share tables, so that these are read once.
func (d *decoder) addThreads(p *process) error {
	own := func(t *thread) int { return min(len(t.stacks.frame), 1) }
	slices.SortStableFunc(p.threads, func(a, b *thread) int { return own(a) - own(b) })
	for i, t := range p.threads {
		from := &p.shared
		if t.hasStacks() {
			t.share(from)
			from = &t.tables
		}
		if i == 0 || t.hasStacks() {
			if err := d.fillTree(&resolver{tables: from, libs: p.libs}); err != nil {
				return err
			}
		}
		attributes := d.threadAttributes(t)
		for i := range t.samples {
			if err := d.addSamples(p, &t.samples[i], attributes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decoder) threadAttributes(t *thread) dictionary.AttributeSetIndex {
	process, processErr := strconv.ParseInt(string(t.pid), 10, 64)
	thread, threadErr := strconv.ParseInt(string(t.tid), 10, 64)
	return d.AddAttributes(0, d.NumberAttribute(events.AttributeProcessID, process, processErr == nil),
		d.NumberAttribute(events.AttributeThreadID, thread, threadErr == nil),
		d.TextAttribute(events.AttributeThreadName, t.name))
}

func (d *decoder) addSamples(p *process, s *samples, attributes dictionary.AttributeSetIndex) error {
	own, factor := s.profile(&p.meta)
	to, cpuTo := target{Profile: own}, target{Profile: cpuTime}
	cpu := float64(kind.NanosPer(p.meta.Units.CPU)) // cycles are not a time
	start, _ := events.Scaled(p.meta.StartTime, 1e6)
	at := 0.0 // milliseconds since then
	for i := range s.stack {
		if err := d.Check(0); err != nil {
			return err
		}
		if len(s.time) > 0 {
			at = s.time.at(i)
		} else {
			at += s.deltas.at(i)
		}
		since, node := math.Round(at*1e6), s.stack.index(int32(i))
		stack, ok := d.tree.Stack(&d.Builder, node)
		if t := float64(start) + since; !ok || !(t >= 0 && t < events.Year2100*1e9) {
			d.Stats.Dropped++
			continue
		}
		timestamp := uint64(start + int64(since))
		id := compact.Identity{Stack: stack, Attributes: attributes}
		if used := math.Round(s.cpu.at(i) * cpu); used > 0 && used < math.MaxInt64 {
			d.observe(&cpuTo, id, timestamp, int64(used))
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
		case weight == 0, weight < 0 && own == allocated: // an allocation that was freed
			d.Stats.Filtered++
		case weight > 0 && weight < math.MaxInt64:
			d.observe(&to, id, timestamp, int64(weight))
		default:
			d.Stats.Dropped++
		}
	}
	return nil
}

// profile returns the profile that the samples belong to, and what its values are of the weights. If each sample counts
// as one, it has times alone.
func (s *samples) profile(m *meta) (p events.Profile, factor float64) {
	switch {
	case m.Product == vernier && s.areRetained():
		return retained, 1
	case s.weightType == weightTime:
		return wallTime, 1e6
	case s.weightType == weightBytes:
		return allocated, 1
	}
	isWeighted := slices.ContainsFunc(s.weight, func(weight float64) bool { return weight != 1 })
	p = events.Profile{Sample: events.Count("samples"), Period: wallTime.Period,
		Shape: compact.Shape{Timestamps: true, Values: isWeighted}}
	if period := m.Interval * 1e6; period > 0 && period < math.MaxInt64 {
		p.Every = int64(math.Round(period))
	}
	return p, 1
}

const vernier = "Ruby/Vernier"

// areRetained reports whether samples by Vernier are objects that are still there, with their bytes as weights: without
// times, and up to Vernier 1.5 with the type of weights of its other samples.
func (s *samples) areRetained() bool {
	hasTime := slices.ContainsFunc(s.time, func(at float64) bool { return at != 0 })
	return !s.areAllocations && (s.weightType == weightBytes || len(s.weight) > 0 && len(s.time) > 0 && !hasTime)
}

// target is a profile, which is added with its first sample.
type target struct {
	events.Profile
	index   compact.ProfileIndex
	isAdded bool
}

func (d *decoder) observe(to *target, id compact.Identity, timestamp uint64, value int64) {
	if !to.isAdded {
		to.index, to.isAdded = d.InternProfile(d.scope, to.Profile), true
	}
	d.Event(to.index, id, compact.Observation{Timestamp: timestamp, Value: value})
}
