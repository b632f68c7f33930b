// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"unique"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// origin is the last resource and scope that were interned. They are interned for the first sample that needs them, so
// that those of records without samples are not in the output.
type origin struct {
	resourceLogs plog.ResourceLogs
	scopeLogs    plog.ScopeLogs
	resource     compact.ResourceIndex
	scope        compact.ScopeIndex
	id           otlp.ContentID // of the resource
}

// internOrigin makes sure that the record's resource and scope are interned.
func (t *translator) internOrigin() {
	o := &t.origin
	if o.scopeLogs == t.at.scope {
		return
	}
	if o.resourceLogs != t.at.resource {
		in := t.at.resource.Resource()
		*o = origin{resourceLogs: t.at.resource, resource: t.assembler.Resource(in, t.at.resource.SchemaUrl())}
		for name, value := range in.Attributes().All() {
			o.id.AddString(name)
			if value.Type() == pcommon.ValueTypeStr {
				o.id.AddString(value.Str())
			}
		}
	}
	o.scopeLogs, o.scope = t.at.scope, t.assembler.Scope(o.resource, t.at.scope.Scope(), t.at.scope.SchemaUrl())
}

// observation is one sample of a record.
type observation struct {
	compact.Identity
	// time and period are in nanoseconds, 0 if they are not known.
	time, period int64
	value        int64
}

// groupKey is what the samples of one Profile share.
type groupKey struct {
	scope      compact.ScopeIndex
	attributes dictionary.AttributeSetIndex
	period     int64
	typ        Type
	shape      compact.Shape
	// description is that of the records, or notDescribed.
	description unique.Handle[description]
}

var notDescribed unique.Handle[description]

// group is a Profile of the output.
type group struct {
	groupKey
	profile     compact.ProfileIndex
	first, last int64
	id          otlp.ContentID
	// record is the last record that is part of id.
	record int
}

// groups finds the group of an observation. Entry 0 of the list is unused.
type groups struct {
	list    []group
	indexOf map[groupKey]int32
	last    int32
}

// reset empties the list. Large maps are not kept, since clearing one takes time in proportion to its capacity.
func (g *groups) reset() {
	if len(g.list) > maxKeptGroups || g.indexOf == nil {
		*g = groups{indexOf: make(map[groupKey]int32)}
	}
	clear(g.indexOf)
	clear(g.list)
	g.list = append(g.list[:0], group{})
	g.last = 0
}

const maxKeptGroups = 1 << 12

// add adds an observation of the current record. The record supplies the link and time that the observation lacks.
func (t *translator) add(o *observation) {
	if !t.begun {
		t.begin()
	}
	t.samplesLeft--
	r := &t.record
	if o.Link == 0 && r.link != (dictionary.Link{}) {
		o.Link = t.dict.Links.Intern(r.link)
	}
	o.time = cmp.Or(o.time, r.time)
	key := groupKey{scope: t.origin.scope, attributes: t.profileAttributes, description: t.description}
	if r.described {
		key.shape = r.description.shape
	} else {
		key.typ = r.typ
		if r.typ == TypeCPU {
			key.period = o.period
		}
		// A time implies a count of one. No agent is known to write other counts.
		key.shape = compact.Shape{Timestamps: o.time != 0, Values: r.typ == TypeAllocation || o.value != 1 || o.time == 0}
	}
	if g := t.groups.last; g == 0 || t.groups.list[g].groupKey != key {
		g, ok := t.group(key)
		if !ok {
			t.result.Dropped[scan.DropOverBudget]++
			return
		}
		t.groups.last = g
	}
	t.result.Samples++
	g := &t.groups.list[t.groups.last]
	if g.record != t.number {
		g.record = t.number
		g.id.AddNumber(t.bodyID[0])
		g.id.AddNumber(t.bodyID[1])
	}
	if g.shape.Timestamps {
		if g.first == 0 || o.time < g.first {
			g.first = o.time
		}
		g.last = max(g.last, o.time)
	}
	t.assembler.Observe(g.profile, o.Identity, compact.Observation{Timestamp: uint64(o.time), Value: o.value})
}

// begin is called at a record's first sample: a record without samples adds nothing to the output.
func (t *translator) begin() {
	t.begun = true
	t.internOrigin()
	t.profileAttributes = t.recordAttributes()
	t.groupsLeft += t.groupCost(t.profileAttributes)
	t.description = notDescribed
	if t.record.described {
		t.description = unique.Make(t.record.description)
	}
	t.bodyID = t.origin.id
	t.bodyID.AddString(t.record.log.Body().AsString())
	t.bodyID.AddNumber(uint64(t.record.time))
	t.bodyID.AddNumber(uint64(t.record.period))
	t.bodyID.AddNumber(uint64(t.record.allocated))
	t.bodyID.AddString(string(t.record.link.SpanID[:]))
}

// groupCost is the memory of a group with these attributes, in attributes.
func (t *translator) groupCost(attributes dictionary.AttributeSetIndex) int {
	const profile = 128 // what a profile takes in addition
	return profile + len(t.dict.AttributeSets.At(attributes))
}

// group returns the group of a key. ok is false if it would be a new one, and groupsLeft does not suffice for it.
func (t *translator) group(key groupKey) (g int32, ok bool) {
	if g, ok := t.groups.indexOf[key]; ok {
		return g, true
	}
	cost := t.groupCost(key.attributes)
	if cost > t.groupsLeft {
		return 0, false
	}
	t.groupsLeft -= cost
	t.groupMembers += cost
	g = int32(len(t.groups.list))
	t.groups.indexOf[key] = g
	next := group{groupKey: key, record: -1}
	next.profile = t.assembler.Profile(key.scope, key.shape, compact.Header{Attributes: key.attributes})
	next.id.AddNumber(uint64(g))
	next.id.AddNumber(uint64(key.period))
	if key.description != notDescribed {
		key.description.Value().addTo(&next.id)
	}
	t.groups.list = append(t.groups.list, next)
	return g, true
}

func (t *translator) build() {
	for i := range t.groups.list[1:] {
		g := &t.groups.list[1+i]
		d := t.describe(g)
		header := t.assembler.Header(g.profile)
		header.ID = g.id.ProfileID()
		header.Time, header.DurationNanos, header.Period = pcommon.Timestamp(d.time), d.duration, d.period
		header.SampleType, header.PeriodType = t.internType(d.sample), t.internType(d.periodType)
	}
	// The dictionary's strings are parts of bodies, which can be many times larger.
	const small = 32 << 10
	if t.result.UnpackedBytes > small {
		t.dict.DetachStrings()
	}
	t.result.Profiles = t.assembler.Build()
	t.result.addAttributes(t.assembler.Repairs())
}

func (t *translator) internType(from valueType) compact.ValueType {
	return compact.ValueType{Type: t.dict.Strings.Intern(from.typ), Unit: t.dict.Strings.Intern(from.unit)}
}

func (t *translator) describe(g *group) description {
	d := description{sample: cpuSamples, period: g.period, spans: true}
	switch {
	case g.description != notDescribed:
		d = g.description.Value()
	case g.typ == TypeAllocation: // which has no period
		d.sample, d.periodType, d.period = allocatedSpace, allocatedPeriod, 1
	case g.period != 0:
		d.periodType = cpuPeriod
	}
	switch {
	case !g.shape.Timestamps:
	case d.spans:
		d.time = g.first
		d.duration = uint64(g.last-g.first) + uint64(max(d.periodNanos(), 1))
	default:
		// Every time is before time + duration (profiles.proto, Sample.timestamps_unix_nano).
		end := max(uint64(d.time)+d.duration, uint64(g.last)+1)
		d.time = min(d.time, g.first)
		d.duration = end - uint64(d.time)
	}
	return d
}
