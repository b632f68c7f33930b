// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// observe adds the observation of the current sample.
func (d *decoder) observe() {
	h := &d.head
	kind, state := kindOf(h)
	value := h.period
	if !h.hasPeriod {
		value = 1
	}
	p, known := d.profiles[profileKey{process: h.process, event: kind.Name}]
	if d.isDeep || !known && len(d.profiles) == maxProfiles || d.layout.anchor == byPlace && len(d.stack) == 0 {
		d.b.Stats.Dropped++
		return
	}
	if !known {
		p = d.newProfile(h, kind)
	}
	id := compact.Identity{Stack: d.b.Dict.Stacks.Intern(d.stack), Attributes: d.b.AddAttributes(0,
		d.b.TextAttribute(events.AttributeThreadName, h.comm),
		d.b.NumberAttribute(events.AttributeThreadID, h.thread, h.thread != unknown),
		d.b.NumberAttribute(events.AttributeCPU, h.cpu, h.cpu != unknown),
		d.b.TextAttribute(events.AttributeThreadState, state),
	)}
	if d.layout.anchor != byTime {
		d.b.Stats.Events++
		d.b.Observe(p, id, compact.Observation{Value: value})
		return
	}
	d.b.Event(p, id, compact.Observation{Timestamp: h.timestamp, Value: value})
}

var (
	cpuTime = events.Nanoseconds("cpu")
	offCPU  = events.Nanoseconds("off_cpu")
)

// kindOf returns the sample type of an event, and the state of the thread if the event states it. The periods of clocks
// are times, and so are those of perf record --off-cpu, of the scheduler's statistics, and of switches if perf inject
// has added them.
func kindOf(h *header) (kind events.Type, state string) {
	stat, isStat := strings.CutPrefix(h.event, "sched:sched_stat_")
	switch {
	case isStat && stat != "runtime" && h.hasPeriod:
		if stat == "wait" {
			stat = "runnable"
		}
		return offCPU, dictionary.ValidUTF8(stat)
	case h.event == "sched:sched_switch" && h.period > 1, h.event == "offcpu-time" && h.hasPeriod:
		return offCPU, ""
	case (h.event == "cpu-clock" || h.event == "task-clock") && h.hasPeriod:
		return cpuTime, ""
	case h.event != "":
		return events.Count(h.event), ""
	case h.hasPeriod: // of an event that is not printed
		return events.Count("events"), ""
	default:
		return events.Count("samples"), ""
	}
}

// newProfile adds the profile of an event of a process.
func (d *decoder) newProfile(h *header, kind events.Type) compact.ProfileIndex {
	key := profileKey{process: h.process, event: kind.Name}
	scope, known := d.scopes[h.process]
	if !known {
		resource := pcommon.NewResource()
		if h.process != unknown {
			resource.Attributes().PutInt(events.AttributeProcessID, h.process)
			if h.process == h.thread && h.comm != "" {
				resource.Attributes().PutStr("process.executable.name", d.b.CleanString(h.comm))
			}
		}
		scope = d.b.Scope(d.b.Resource(resource, ""), pcommon.NewInstrumentationScope(), "")
		d.scopes[h.process] = scope
	}
	kind.Name = d.b.CleanString(kind.Name)
	period := events.Type{}
	if kind == cpuTime {
		period = cpuTime
	}
	shape := compact.Shape{Timestamps: d.layout.anchor == byTime, Values: true}
	p := d.b.NewProfile(scope, events.Profile{Sample: kind, Period: period, Shape: shape})
	d.profiles[key] = p
	return p
}
