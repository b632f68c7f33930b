// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Attributes of samples besides those of package events: the user's annotations in the words of runtime/trace, and the name of
// a pause.
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
}

// user follows the user's annotations. A goroutine works on the task of its innermost region, or else on the last task that it
// began. If it runs and its context changes, its interval is split.
func (d *decoder) user(e *trace.Event) {
	g := d.goroutines[e.Goroutine()]
	before := d.contextOf(g)
	d.annotate(g, e)
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
	if l.Category != logTraceParent {
		return
	}
	index := dictionary.LinkIndex(0)
	if link, ok := events.TraceParent(l.Message); ok {
		index = d.b.Dict.Links.Intern(link)
	} else if l.Message != "" {
		return
	}
	if t := d.tasks[l.Task]; t != nil {
		t.link = index
	} else if g != nil {
		g.link = index
	}
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
	id, link := g.task, g.link
	if n := len(g.regions); n > 0 {
		inner := g.regions[n-1]
		c.region = inner.typeName
		if inner.task != trace.BackgroundTask && inner.task != trace.NoTask {
			id = inner.task
		}
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

func (d *decoder) addContext(c workContext) {
	if c.region != "" {
		d.attributes = append(d.attributes, d.b.StringAttribute(attributeRegion, c.region))
	}
	if c.task != "" {
		d.attributes = append(d.attributes, d.b.StringAttribute(attributeTaskType, c.task))
	}
	if c.taskID != 0 {
		d.attributes = append(d.attributes, d.b.IntAttribute(attributeTaskID, int64(c.taskID)))
	}
}
