// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// Events is what single threads or goroutines did over time.
type Events struct {
	// Lanes are the names of the threads, in their order; numbers in names are compared as numbers.
	Lanes []string
	// States are the words for what they did.
	States []string
	// List is in the order of starts.
	List   []Event
	Frames []Frame
	// Stacks are indices of Frames, leaf first.
	Stacks [][]int32
	// LeftOut is how many shorter events there are, LanesLeftOut how many threads with less time.
	LeftOut, LanesLeftOut int
}

// Event is one observation with a timestamp. Start and End are Unix nanoseconds; if they are equal the event has no
// length.
type Event struct {
	Lane, State, Stack int32
	Start, End         int64
}

const (
	maxLanes = 200
	// maxStackFrames bounds the frames of a stack beside an event.
	maxStackFrames = 64
)

// laneKeys are the attributes that name a thread, in order of preference; stateKeys are those of its state.
var (
	laneKeys = []struct{ key, word string }{
		{"go.goroutine.id", "goroutine "}, {"thread.id", "thread "}, {"thread.name", ""}, {"process.pid", "process "},
	}
	stateKeys = []string{"go.goroutine.state", "thread.state"}
	// typeStates are the states that sample types imply.
	typeStates = map[string]string{"on_cpu": "running", "cpu": "running", "off_cpu": "off CPU", "gc_pause": "GC pause", "samples": "sample"}
)

// Events returns the observations of a service that have timestamps and a part in the selected time, of all its
// profiles unless the selection names one: the limit longest. GroupBy is the attribute that distinguishes threads; if
// it is empty, the first of laneKeys that they have is used. A value that is a time ends at its timestamp, others have
// no length.
func (s *Store) Events(ctx context.Context, sel Selection, limit int) (*Events, error) {
	v := s.view(newMemory(ctx, sel.Meter))
	defer v.release()
	err := v.loadParts(&sel, func(in *blockfile.Series) bool {
		return in.Timestamps && (sel.Profile == "" || in.Profile == sel.Profile)
	})
	if err != nil {
		return nil, err
	}
	filters, err := v.filters(&sel)
	if err != nil {
		return nil, err
	}
	if err := v.memory.take(4 * limit * eventBytes); err != nil {
		return nil, err
	}
	c := &eventCollector{memory: v.memory, limit: limit, lanes: map[string]int32{}, states: map[string]int32{}}
	// An event belongs to the time if any part of it does: its end may be after it.
	open := sel
	open.Until = 0
	r := &reader{sel: &open, filters: filters, groups: newGroups(len(v.blocks)), memory: v.memory}
	open.GroupBy = ""
	found := slices.ContainsFunc(v.catalog(), func(e *block) bool {
		return slices.ContainsFunc(e.series, func(sr series) bool {
			strs := &e.dict.Strings
			return strs.At(sr.service) == sel.Service && (sel.Profile == "" || strs.At(sr.profile) == sel.Profile)
		})
	})
	for n, e := range v.blocks {
		strs := &e.dict.Strings
		for i := range e.series {
			sr := &e.series[i]
			c.sets = map[dictionary.AttributeSetIndex]setNames{}
			if strs.At(sr.service) != sel.Service || sel.Profile != "" && strs.At(sr.profile) != sel.Profile {
				continue
			}
			typ := SampleType{strs.At(sr.typ), strs.At(sr.unit)}
			if sel.Type != "" && sel.Type != typ.String() && sel.Type != typ.Type || !filters[n].canMatch(sr) {
				continue
			}
			unit := timeUnit(typ.Unit)
			var terms []weightedChunk
			for k := range sr.chunks {
				t := weightedChunk{block: n, series: sr, chunk: &sr.chunks[k]}
				if t.chunk.flags&(hasTimestamps|isMoved) != hasTimestamps || t.chunk.end < sel.From {
					continue
				}
				terms = append(terms, t)
			}
			if err := v.load(terms); err != nil {
				return nil, err
			}
			for _, t := range terms {
				r.observations(&t, func(_ int, row *rows) {
					end := t.chunk.time + row.timestamp
					start := end - durationOf(row.value, unit)
					if end < sel.From || sel.Until != 0 && start >= sel.Until {
						return
					}
					names := c.names(filters[n], sr, &sel, dictionary.AttributeSetIndex(row.attribute), typ.Type)
					c.add(collectedEvent{Event{names.lane, names.state, row.stack, start, end}, int32(n)})
				})
				if err := v.memory.check(); err != nil {
					return nil, err
				}
			}
		}
	}
	if !found {
		if sel.Profile != "" {
			return nil, fmt.Errorf("%w: service %q has no profile %q", ErrNothing, Shorten(sel.Service), Shorten(sel.Profile))
		}
		return nil, fmt.Errorf("%w: there is no service %q", ErrNothing, Shorten(sel.Service))
	}
	return c.finish(v)
}

type collectedEvent struct {
	Event
	block int32
}

// setNames are the lane and the state in a set of attributes, plus one; 0 means not looked up yet.
type setNames struct{ lane, state int32 }

type eventCollector struct {
	memory        *memory
	limit         int
	events        []collectedEvent
	leftOut       int
	lanes, states map[string]int32
	laneTime      []int64
	sets          map[dictionary.AttributeSetIndex]setNames // of the series
}

// numberOf returns the number of a name, the next one if the name is new.
func numberOf(names map[string]int32, name string) int32 {
	i, ok := names[name]
	if !ok {
		i = int32(len(names))
		names[name] = i
	}
	return i
}

// names returns the lane and the state of a sample with a set of attributes.
func (c *eventCollector) names(f *filter, sr *series, sel *Selection, set dictionary.AttributeSetIndex, typ string) setNames {
	known, ok := c.sets[set]
	if !ok {
		_ = c.memory.take(laneBytes)
		known.lane = numberOf(c.lanes, laneName(f, sr, sel, set)+instanceMark+instanceName(f, sr))
		known.state = -1
		for _, key := range stateKeys {
			if value, has := f.lookup(sr, set, key); has {
				known.state = numberOf(c.states, Shorten(value))
				break
			}
		}
		c.sets[set] = known
	}
	if known.state < 0 {
		state := typeStates[typ]
		if state == "" {
			state = typ
		}
		known.state = numberOf(c.states, state)
	}
	for int(known.lane) >= len(c.laneTime) {
		c.laneTime = append(c.laneTime, 0)
	}
	return known
}

// lookup returns the value of a key on the sample or its series.
func (f *filter) lookup(sr *series, set dictionary.AttributeSetIndex, key string) (string, bool) {
	k, ok := f.lookupKey(key)
	if !ok {
		return "", false
	}
	if value, has := f.value(set, k); has {
		return value, true
	}
	return f.seriesValue(sr, k)
}

func laneName(f *filter, sr *series, sel *Selection, set dictionary.AttributeSetIndex) string {
	if sel.GroupBy != "" {
		if value, has := f.lookup(sr, set, sel.GroupBy); has {
			return Shorten(value)
		}
		return NoGroup
	}
	for _, lane := range laneKeys {
		value, has := f.lookup(sr, set, lane.key)
		if !has {
			continue
		}
		name := lane.word + Shorten(value)
		if lane.key == "thread.id" {
			if more, has := f.lookup(sr, set, "thread.name"); has && more != "" {
				name += " " + Shorten(more)
			}
		}
		return name
	}
	return NoGroup
}

// instanceMark separates the name of a thread from that of its instance, since each instance has a thread 1.
const instanceMark = "\x00"

var instanceKeys = []string{"service.instance.id", "k8s.pod.name", "container.id", "host.name"}

func instanceName(f *filter, sr *series) string {
	for _, key := range instanceKeys {
		if value, has := f.lookup(sr, 0, key); has {
			return Shorten(value)
		}
	}
	return ""
}

// shownLanes removes the instance from the names if there is only one.
func shownLanes(names []string) []string {
	instances := map[string]bool{}
	shown := make([]string, len(names))
	for _, name := range names {
		_, instance, _ := strings.Cut(name, instanceMark)
		instances[instance] = true
	}
	for i, name := range names {
		thread, instance, _ := strings.Cut(name, instanceMark)
		shown[i] = thread
		if len(instances) > 1 {
			shown[i] += " · " + instance
		}
	}
	return shown
}

func (c *eventCollector) add(e collectedEvent) {
	c.events = append(c.events, e)
	c.laneTime[e.Lane] += e.End - e.Start
	if len(c.events) >= 4*c.limit {
		c.keepLongest()
	}
}

// keepLongest keeps the longest events, up to the limit, ordered by their starts.
func (c *eventCollector) keepLongest() {
	if more := len(c.events) - c.limit; more > 0 {
		slices.SortStableFunc(c.events, func(a, b collectedEvent) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
		c.events = c.events[:c.limit]
		c.leftOut += more
	}
}

// finish chooses the lanes with most time and resolves stacks.
func (c *eventCollector) finish(v *view) (*Events, error) {
	c.keepLongest()
	out := &Events{LeftOut: c.leftOut, States: byNumber(c.states)}
	names := shownLanes(byNumber(c.lanes))
	order := make([]int32, len(names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.laneTime[b], c.laneTime[a]), strings.Compare(names[a], names[b]))
	})
	if len(order) > maxLanes {
		out.LanesLeftOut = len(order) - maxLanes
		order = order[:maxLanes]
	}
	shown := slices.Repeat([]int32{-1}, len(names)) // the index in out.Lanes of each lane
	// Sort by name, so that most threads keep their position when another time is selected.
	slices.SortStableFunc(order, func(a, b int32) int { return compareNumbered(names[a], names[b]) })
	for i, lane := range order {
		shown[lane] = int32(i)
		out.Lanes = append(out.Lanes, names[lane])
	}
	b := newTreeBuilder(v.memory)
	framers := make([]blockFramer, len(v.blocks))
	for n, e := range v.blocks {
		framers[n] = blockFramer{b: b, dict: e.dict}
	}
	type stackKey struct{ block, stack int32 }
	stacks := map[stackKey]int32{}
	slices.SortStableFunc(c.events, func(a, b collectedEvent) int { return cmp.Compare(a.Start, b.Start) })
	for _, e := range c.events {
		if e.Lane = shown[e.Lane]; e.Lane < 0 {
			out.LeftOut++
			continue
		}
		key := stackKey{e.block, e.Stack}
		at, ok := stacks[key]
		if !ok {
			at = int32(len(out.Stacks))
			stacks[key] = at
			stack, err := framers[e.block].stack(dictionary.StackIndex(e.Stack), maxStackFrames)
			if err != nil {
				return nil, err
			}
			out.Stacks = append(out.Stacks, stack)
		}
		e.Stack = at
		out.List = append(out.List, e.Event)
	}
	out.Frames = b.frames
	return out, v.memory.keep(v.memory.used)
}

// compareNumbered compares names that differ in a number by the number: goroutine 9 before goroutine 10.
func compareNumbered(a, b string) int {
	const digits = "0123456789"
	cut := func(s string) (word string, digitsLen int) {
		i := strings.IndexAny(s, digits)
		if i < 0 {
			return s, 0
		}
		return s[:i], len(s) - i - len(strings.TrimLeft(s[i:], digits))
	}
	wordA, digitsA := cut(a)
	wordB, digitsB := cut(b)
	return cmp.Or(strings.Compare(wordA, wordB), cmp.Compare(digitsA, digitsB), strings.Compare(a, b))
}

// byNumber returns the names in the order of their numbers.
func byNumber(numbers map[string]int32) []string {
	names := make([]string, len(numbers))
	for name, i := range numbers {
		names[i] = name
	}
	return names
}
