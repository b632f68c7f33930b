// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// goroutine is what is known of a goroutine, and the state that it is in.
type goroutine struct {
	state  trace.GoState
	since  trace.Time
	reason string // of the state, in the runtime's words
	// stack is where the state began, and own the goroutine's last stack.
	stack, own dictionary.StackIndex
	thread     trace.ThreadID
	proc       trace.ProcID
	// isWhole reports that the goroutine has been in the state since before the trace.
	isWhole            bool
	isSystem, isWorker bool

	regions []region
	task    trace.TaskID // the last one that the goroutine began
	link    dictionary.LinkIndex

	// parts are the parts of the state that wait until it has lasted for Options.MinDuration. partStart is where the next
	// one begins.
	parts     []part
	partStart trace.Time
}

// part is a part of a state, in which the goroutine had one context.
type part struct {
	end     trace.Time
	length  int64
	stack   dictionary.StackIndex
	context workContext
}

// transition ends a state of a goroutine and begins the next.
func (d *decoder) transition(e *trace.Event, t *trace.StateTransition) {
	id := t.Resource.Goroutine()
	from, to := t.Goroutine()
	g := d.goroutines[id]
	isNew := g == nil
	if isNew {
		g = &goroutine{isWhole: from == trace.GoUndetermined}
		d.goroutines[id] = g
	}
	info := d.stack(t.Stack)
	if info.stack != 0 {
		g.own, g.isSystem, g.isWorker = info.stack, info.isSystem, g.isWorker || info.isWorker
	}
	if !isNew && g.state == to { // a new generation repeats it
		if g.stack == 0 {
			g.stack = g.own
		}
		return
	}
	if !isNew {
		d.end(id, g)
		g.isWhole = false
	}
	if to == trace.GoNotExist {
		d.move(id, d.taskOf(g), trace.NoTask)
		delete(d.goroutines, id)
		d.parts -= cap(g.parts)
		return
	}
	g.state, g.since, g.reason, g.stack = to, d.now, t.Reason, g.own
	g.thread, g.proc = e.Thread(), e.Proc()
	if from == trace.GoUndetermined { // in this state since the generation began, and another thread may report it
		g.since, g.thread, g.proc = d.generation, trace.NoThread, trace.NoProc
	}
	g.partStart = g.since
}

// label marks the workers of the garbage collector: the runtime labels them GC (dedicated), GC (fractional) or GC
// (idle).
func (d *decoder) label(e *trace.Event) {
	l := e.Label()
	if l.Resource.Kind != trace.ResourceGoroutine || !strings.HasPrefix(l.Label, "GC (") {
		return
	}
	if g := d.goroutines[l.Resource.Goroutine()]; g != nil {
		g.isWorker = true
	}
}

// end ends a goroutine's state. If it was too short, its parts are left out.
func (d *decoder) end(id trace.GoID, g *goroutine) {
	d.split(id, g, d.contextOf(g))
	d.b.Stats.TooShort += len(g.parts)
	g.parts = g.parts[:0]
}

// split ends the part of a goroutine's state that had a context. All parts so far become observations as soon as the
// state has lasted long enough.
func (d *decoder) split(id trace.GoID, g *goroutine, context workContext) {
	if length := int64(d.now - g.partStart); length > 0 {
		d.parts -= cap(g.parts)
		g.parts = append(g.parts, part{end: d.now, length: length, stack: g.stack, context: context})
		d.parts += cap(g.parts)
		g.partStart = d.now
	}
	which := offCPU
	if g.state == trace.GoRunning {
		which = onCPU
	}
	switch {
	case !d.options.Everything && (g.isWorker || which == offCPU && g.isSystem):
		d.b.Stats.Filtered += len(g.parts)
	case !d.options.Aggregate && int64(d.now-g.since) < int64(d.options.MinDuration):
		return
	default:
		at := place{id, g.thread, g.proc}
		if !g.state.Executing() {
			at.thread, at.proc = trace.NoThread, trace.NoProc
		}
		for i := range g.parts {
			d.observe(which, d.b.TextAttribute(events.AttributeGoroutineState, g.stateName()), at, &g.parts[i])
		}
	}
	g.parts = g.parts[:0]
}

func (g *goroutine) stateName() string {
	switch {
	case g.state == trace.GoRunning:
		return "running"
	case g.state == trace.GoRunnable:
		return "runnable"
	case g.state == trace.GoSyscall:
		return "syscall"
	case g.reason == "":
		return "waiting" // the wait began before the trace
	default:
		return g.reason
	}
}

// endAll ends the states that had not ended when the trace did.
func (d *decoder) endAll() {
	for _, id := range slices.Sorted(maps.Keys(d.goroutines)) {
		g := d.goroutines[id]
		isForever := g.state == trace.GoWaiting && (g.isWhole || g.reason == "forever")
		switch {
		case !isForever || d.options.Everything:
			d.end(id, g)
		case d.now > g.partStart:
			d.b.Stats.Filtered++
		}
	}
	byName := func(a, b rangeKey) int {
		return cmp.Or(cmp.Compare(a.goroutine, b.goroutine), cmp.Compare(a.name, b.name))
	}
	for _, key := range slices.SortedFunc(maps.Keys(d.ranges), byName) {
		d.endRange(key.name, d.ranges[key], place{key.goroutine, trace.NoThread, trace.NoProc})
	}
}

// rangeKey identifies a range: a goroutine has one range of a name at a time.
type rangeKey struct {
	name      string
	goroutine trace.GoID
}

type openRange struct {
	since trace.Time
	stack dictionary.StackIndex
}

// markAssist is the range in which a goroutine assists the garbage collector.
const markAssist = "GC mark assist"

// rangeEvent begins and ends the ranges in which the program waits for the garbage collector.
func (d *decoder) rangeEvent(e *trace.Event) {
	const stopping = "stop-the-world"
	r := e.Range()
	if !strings.HasPrefix(r.Name, stopping) && r.Name != markAssist || r.Scope.Kind != trace.ResourceGoroutine {
		return
	}
	key := rangeKey{name: r.Name, goroutine: r.Scope.Goroutine()}
	open, isOpen := d.ranges[key]
	if e.Kind() != trace.EventRangeEnd {
		if !isOpen {
			d.ranges[key] = openRange{since: d.now, stack: d.stack(e.Stack()).stack}
		}
		return
	}
	if isOpen {
		d.endRange(key.name, open, place{key.goroutine, e.Thread(), e.Proc()})
		delete(d.ranges, key)
	}
}

// endRange ends a range of a goroutine.
func (d *decoder) endRange(name string, open openRange, at place) {
	length := int64(d.now - open.since)
	if length <= 0 {
		return
	}
	if name == markAssist && !d.options.Aggregate && length < int64(d.options.MinDuration) {
		d.b.Stats.TooShort++
		return
	}
	d.observe(gcPause, d.b.TextAttribute(attributeRange, name), at,
		&part{end: d.now, length: length, stack: open.stack, context: d.contextOf(d.goroutines[at.goroutine])})
}
