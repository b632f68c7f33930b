// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"maps"
	"slices"

	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Attributes of samples besides those of package events: the user's annotations in the words of runtime/trace, and the
// name of a pause.
const (
	attributeTaskID   = "go.task.id"
	attributeTaskType = "go.task.type"
	attributeRegion   = "go.region.type"
	attributeRange    = "go.range.name"
)

// logTraceParent is the category of trace.Log that links a task, or a goroutine outside of tasks, to a span.
const logTraceParent = "traceparent"

type region struct {
	task     trace.TaskID
	typeName string
}

// task is a task that has begun and not ended.
type task struct {
	typeName string
	parent   trace.TaskID
	link     dictionary.LinkIndex
	// workers are the goroutines that work on it; nil if there are none.
	workers map[trace.GoID]struct{}
}

// user follows the user's annotations. A goroutine works on the task of its innermost region, or else on the last task
// that it began. If it runs and its context changes, its interval is split, and so are those of others that work on a
// task that ends or gets another link.
func (d *decoder) user(e *trace.Event) {
	id := e.Goroutine()
	g := d.goroutines[id]
	before, from := d.contextOf(g), d.taskOf(g)
	d.splitOthers(e, id)
	d.annotate(g, e)
	d.move(id, from, d.taskOf(g))
	if g == nil || g.state != trace.GoRunning {
		return
	}
	if info := d.stack(e.Stack()); info.stack != 0 {
		g.own = info.stack
	}
	if d.contextOf(g) != before {
		d.split(e.Goroutine(), g, before)
		g.stack = g.own
	}
}

// Each event of the user's allows splitsPerEvent goroutines to be split, and the trace splitsConstant more: a task can
// have very many goroutines, and very many logs. A state beyond that has the context of its end.
const (
	splitsConstant = 1 << 16
	splitsPerEvent = 4
)

// splitOthers splits the states of other goroutines whose context an event is about to change.
func (d *decoder) splitOthers(e *trace.Event, id trace.GoID) {
	d.splitsLeft += splitsPerEvent
	var t *task
	switch e.Kind() {
	case trace.EventTaskEnd:
		t = d.tasks[e.Task().ID]
	case trace.EventLog:
		l := e.Log()
		if link, ok := d.linkOf(&l); ok && d.tasks[l.Task] != nil && d.tasks[l.Task].link != link {
			t = d.tasks[l.Task]
		}
	}
	if t == nil || len(t.workers) > d.splitsLeft {
		return
	}
	d.splitsLeft -= len(t.workers)
	for _, other := range slices.Sorted(maps.Keys(t.workers)) {
		if g := d.goroutines[other]; g != nil && other != id {
			d.split(other, g, d.contextOf(g))
		}
	}
}

// move notes that a goroutine works on another task.
func (d *decoder) move(id trace.GoID, from, to trace.TaskID) {
	if from == to {
		return
	}
	if t := d.tasks[from]; t != nil {
		if delete(t.workers, id); len(t.workers) == 0 {
			t.workers = nil
		}
	}
	if t := d.tasks[to]; t != nil {
		if t.workers == nil {
			t.workers = map[trace.GoID]struct{}{}
		}
		t.workers[id] = struct{}{}
	}
}

// annotate changes the context of a goroutine, which may be nil.
func (d *decoder) annotate(g *goroutine, e *trace.Event) {
	switch e.Kind() {
	case trace.EventTaskBegin:
		t := e.Task()
		begun := &task{typeName: t.Type, parent: t.Parent}
		if parent := d.tasks[t.Parent]; parent != nil {
			begun.link = parent.link
		} else if g != nil {
			begun.link = g.link
		}
		d.tasks[t.ID] = begun
		if g != nil {
			g.task = t.ID
		}
	case trace.EventTaskEnd:
		t := e.Task()
		delete(d.tasks, t.ID)
		if g != nil && g.task == t.ID {
			if g.task = t.Parent; d.tasks[t.Parent] == nil {
				g.task = trace.NoTask
			}
		}
	case trace.EventRegionBegin:
		if g != nil {
			r := e.Region()
			g.regions = append(g.regions, region{task: r.Task, typeName: r.Type})
		}
	case trace.EventRegionEnd:
		if g != nil && len(g.regions) > 0 {
			g.regions = g.regions[:len(g.regions)-1]
		}
	case trace.EventLog:
		d.log(g, e.Log())
	}
}

// log sets the link to a span from a traceparent: of the task, or of the goroutine if it is in no task. An empty
// traceparent removes the link.
func (d *decoder) log(g *goroutine, l trace.Log) {
	index, ok := d.linkOf(&l)
	if !ok {
		return
	}
	if t := d.tasks[l.Task]; t != nil {
		t.link = index
	} else if g != nil {
		g.link = index
	}
}

// linkOf returns the link that a log sets; ok is false if it sets none.
func (d *decoder) linkOf(l *trace.Log) (index dictionary.LinkIndex, ok bool) {
	if l.Category != logTraceParent {
		return 0, false
	}
	if link, isLink := events.TraceParent(l.Message); isLink {
		return d.b.Dict.Links.Intern(link), true
	}
	return 0, l.Message == ""
}

// taskOf returns the task that a goroutine, which may be nil, works on.
func (d *decoder) taskOf(g *goroutine) trace.TaskID {
	if g == nil {
		return trace.NoTask
	}
	if n := len(g.regions); n > 0 {
		if inner := g.regions[n-1].task; inner != trace.BackgroundTask && inner != trace.NoTask {
			return inner
		}
	}
	return g.task
}

// workContext is what a goroutine works on. It has no task id and no link in sums.
type workContext struct {
	region, task string
	taskID       trace.TaskID
	link         dictionary.LinkIndex
}

// contextOf returns the context of a goroutine, which may be nil.
func (d *decoder) contextOf(g *goroutine) (c workContext) {
	if g == nil {
		return c
	}
	id, link := d.taskOf(g), g.link
	if n := len(g.regions); n > 0 {
		c.region = g.regions[n-1].typeName
	}
	if t := d.tasks[id]; t != nil && id != trace.BackgroundTask {
		c.task, c.taskID = t.typeName, id
		if t.link != 0 {
			link = t.link
		}
	}
	if d.options.Aggregate {
		c.taskID = 0
		return c
	}
	c.link = link
	return c
}
