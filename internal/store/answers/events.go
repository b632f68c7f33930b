// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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
	typeStates = map[string]string{"on_cpu": "running", "cpu": "running", "off_cpu": "off CPU", "gc_pause": "GC pause",
		"samples": "sample", "gpu_time": "GPU", "cpu_time": "CPU",
	}
)

// Events returns the observations of a service that have timestamps and a part in the selected time, of all its
// profiles unless the selection names one: the limit longest. GroupBy is the attribute that distinguishes threads; if
// it is empty, the first of laneKeys that they have is used. A value that is a time ends at its timestamp, others have
// no length.
func (s *Querier) Events(ctx context.Context, sel model.Selection, limit int) (*Events, error) {
	q := s.query(ctx, sel, Want{Series: true, Stacks: true, Attributes: true, Times: true})
	// An event belongs to the time if any part of it does: its end may be after it.
	q.TimedOnly, q.Until, q.Before, q.GroupBy = true, 0, sel.Until, ""
	selected, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	if err := q.Memory.Grow(4 * limit * eventBytes); err != nil {
		return nil, err
	}
	c := &eventCollector{
		sel: &sel, memory: q.Memory, limit: limit, lanes: map[string]int32{}, states: map[string]int32{},
		tree: newTreeBuilder(q.Memory), byStack: map[string]int32{},
	}
	err = selected.Read(func(samples *Samples) error {
		if err := c.begin(samples); err != nil {
			return err
		}
		typ := selected.Types[samples.Type]
		unit := kind.NanosPer(typ.Unit)
		for i, end := range samples.Timestamps {
			start := end - durationOf(samples.Values[i], unit)
			if end < sel.From || sel.Until != 0 && start >= sel.Until {
				continue
			}
			names := c.names(dictionary.AttributeSetIndex(model.At(samples.Attributes, i)), typ.Type)
			c.add(collectedEvent{Event{names.lane, names.state, model.At(samples.Stacks, i), start, end}, false})
		}
		return c.memory.Check()
	})
	if err != nil {
		return nil, err
	}
	return c.finish()
}

// collectedEvent is an event whose stack is one of the current block's dictionary until it is resolved.
type collectedEvent struct {
	Event
	isResolved bool
}

// setNames are the lane and the state in a set of attributes, plus one; 0 means not looked up yet.
type setNames struct{ lane, state int32 }

type eventCollector struct {
	sel           *model.Selection
	memory        *model.Memory
	limit         int
	events        []collectedEvent
	leftOut       int
	lanes, states map[string]int32
	laneTime      []int64
	// filter and series are the current ones, and sets has the names of sets of the series.
	filter *filter
	series model.BlockSeries
	sets   map[dictionary.AttributeSetIndex]setNames
	// stacks are the stacks of events of earlier blocks, as frames of the tree; byStack has their positions.
	tree    *treeBuilder
	stacks  [][]int32
	byStack map[string]int32
}

func (c *eventCollector) begin(s *Samples) error {
	isNew := c.filter == nil || c.filter.dict != s.Dict
	if isNew {
		if err := c.endBlock(); err != nil {
			return err
		}
		c.filter = newFilter(s.Dict, c.memory)
	}
	if sr := (model.BlockSeries{Service: c.sel.Service, Resource: s.Resource, Attributes: s.Profile}); isNew ||
		sr.Resource != c.series.Resource || sr.Attributes != c.series.Attributes {
		c.series, c.sets = sr, map[dictionary.AttributeSetIndex]setNames{}
	}
	return nil
}

// endBlock resolves the stacks of the events of the current block that are among the longest so far.
func (c *eventCollector) endBlock() error {
	if c.filter == nil {
		return nil
	}
	c.keepLongest()
	framer := &blockFramer{b: c.tree, dict: c.filter.dict}
	defer framer.end()
	known := map[int32]int32{}
	for i := range c.events {
		e := &c.events[i]
		if e.isResolved {
			continue
		}
		at, ok := known[e.Stack]
		if !ok {
			frames, err := framer.stack(dictionary.StackIndex(e.Stack), maxStackFrames)
			if err != nil {
				return err
			}
			at = c.stackOf(frames)
			known[e.Stack] = at
		}
		e.Stack, e.isResolved = at, true
	}
	return c.memory.Check()
}

// stackOf returns the position of a stack among all.
func (c *eventCollector) stackOf(frames []int32) int32 {
	var key []byte
	for _, f := range frames {
		key = binary.AppendUvarint(key, uint64(f))
	}
	at, ok := c.byStack[string(key)]
	if !ok {
		_ = c.memory.Grow(cacheBytes + len(key)) // Check returns the error
		at = int32(len(c.stacks))
		c.byStack[string(key)] = at
		c.stacks = append(c.stacks, frames)
	}
	return at
}

// numberOf returns the number of a name, the next one if the name is new.
func numberOf(names map[string]int32, name string) int32 {
	i, ok := names[name]
	if !ok {
		i = int32(len(names))
		names[strings.Clone(name)] = i // it can be a part of a block
	}
	return i
}

// names returns the lane and the state of a sample with a set of attributes.
func (c *eventCollector) names(set dictionary.AttributeSetIndex, typ string) setNames {
	f, sr := c.filter, &c.series
	known, ok := c.sets[set]
	if !ok {
		_ = c.memory.Grow(laneBytes)
		known.lane = numberOf(c.lanes, laneName(f, sr, c.sel, set)+instanceMark+instanceName(f, sr))
		known.state = -1
		for _, key := range stateKeys {
			if value, has := f.lookup(sr, set, key); has {
				known.state = numberOf(c.states, model.Shorten(value))
				break
			}
		}
		c.sets[set] = known
	}
	if known.state < 0 {
		known.state = numberOf(c.states, cmp.Or(typeStates[typ], typ))
	}
	for int(known.lane) >= len(c.laneTime) {
		c.laneTime = append(c.laneTime, 0)
	}
	return known
}

// lookup returns the value of a key on the sample or its series.
func (f *filter) lookup(sr *model.BlockSeries, set dictionary.AttributeSetIndex, key string) (string, bool) {
	k, ok := f.lookupKey(key)
	if !ok {
		return "", false
	}
	if value, has := f.value(set, k); has {
		return value, true
	}
	return f.seriesValue(sr, k)
}

func laneName(f *filter, sr *model.BlockSeries, sel *model.Selection, set dictionary.AttributeSetIndex) string {
	if sel.GroupBy != "" {
		if value, has := f.lookup(sr, set, sel.GroupBy); has {
			return model.Shorten(value)
		}
		return "(no " + model.Shorten(sel.GroupBy) + ")"
	}
	for _, lane := range laneKeys {
		value, has := f.lookup(sr, set, lane.key)
		if !has {
			continue
		}
		name := lane.word + model.Shorten(value)
		if lane.key == "thread.id" {
			if more, has := f.lookup(sr, set, "thread.name"); has && more != "" {
				name += " " + model.Shorten(more)
			}
		}
		return name
	}
	return "(no thread)"
}

// instanceMark separates the name of a thread from that of its instance, since each instance has a thread 1.
const instanceMark = "\x00"

var instanceKeys = []string{"service.instance.id", "k8s.pod.name", "container.id", "host.name"}

func instanceName(f *filter, sr *model.BlockSeries) string {
	for _, key := range instanceKeys {
		if value, has := f.lookup(sr, 0, key); has {
			return model.Shorten(value)
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

// keepLongest keeps the longest events, up to the limit; of equally long ones, the first.
func (c *eventCollector) keepLongest() {
	if more := len(c.events) - c.limit; more > 0 {
		names := byNumber(c.lanes)
		slices.SortStableFunc(c.events, func(a, b collectedEvent) int {
			return cmp.Or(cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(a.Start, b.Start),
				strings.Compare(names[a.Lane], names[b.Lane]))
		})
		c.events = c.events[:c.limit]
		c.leftOut += more
	}
}

// finish chooses the lanes with most time and resolves stacks.
func (c *eventCollector) finish() (*Events, error) {
	if err := c.endBlock(); err != nil {
		return nil, err
	}
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
	used := slices.Repeat([]int32{-1}, len(c.stacks)) // the index in out.Stacks of each stack
	slices.SortStableFunc(c.events, func(a, b collectedEvent) int { return cmp.Compare(a.Start, b.Start) })
	for _, e := range c.events {
		if e.Lane = shown[e.Lane]; e.Lane < 0 {
			out.LeftOut++
			continue
		}
		if used[e.Stack] < 0 {
			used[e.Stack] = int32(len(out.Stacks))
			out.Stacks = append(out.Stacks, c.stacks[e.Stack])
		}
		e.Stack = used[e.Stack]
		out.List = append(out.List, e.Event)
	}
	out.Frames = c.tree.frames
	return out, c.memory.Keep(c.memory.InUse())
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

func byNumber(numbers map[string]int32) []string {
	names := make([]string, len(numbers))
	for name, i := range numbers {
		names[i] = name
	}
	return names
}
