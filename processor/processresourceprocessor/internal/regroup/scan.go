// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// scan finds the processes of a message. A tuple has, for each role, the attribute of a sample. Samples of one tuple
// and resource are treated as one process.
type scan struct {
	roleOfKey map[string]int8 // by key
	// roleOfString[i] is the role of string i as a key, plus two; 0 means that it is not known yet.
	roleOfString []int8
	// roleOf[a] is the role of attribute a; none for most. keyRoleOf[a] is that of its key, also if its value is unusable.
	roleOf, keyRoleOf []int8
	// canonicalOf[a] is the first attribute with the same key and value as attribute a, which has a role. In a conformant
	// dictionary that is a.
	canonicalOf []int32
	canonical   map[content]int32

	// tupleOf[n] is the tuple of sample n, counted through the message.
	tupleOf []int32
	// tuples has a tuple for each process, one after another. The first is not used, since index 0 ends a search.
	tuples          []int32
	resourceOfTuple []int32
	samplesOfTuple  []int32
	tupleIndex      dictionary.HashIndex
	scratch         []int32

	processes []Process
	resources []Resource
}

// content identifies attributes that have a role.
type content struct {
	role  int8
	unit  int32
	value dictionary.Value
}

// read returns the resources of a message with the processes of each.
func (r *Regrouper) read(pd pprofile.Profiles) []Resource {
	r.readAttributes(pd.Dictionary())
	width := len(r.keys)
	r.scratch = slices.Grow(r.scratch[:0], width)[:width]
	r.tupleOf = r.tupleOf[:0]
	r.tuples = append(r.tuples[:0], r.scratch...)
	r.resourceOfTuple = append(r.resourceOfTuple[:0], none)
	r.samplesOfTuple = append(r.samplesOfTuple[:0], 0)
	r.tupleIndex.Reset(64)
	r.processes = r.processes[:0]
	all := pd.ResourceProfiles()
	for i := range all.Len() {
		scopes := all.At(i).ScopeProfiles()
		for j := range scopes.Len() {
			profiles := scopes.At(j).Profiles()
			for k := range profiles.Len() {
				r.readSamples(int32(i), profiles.At(k).Samples())
			}
		}
	}
	return r.describe(pd)
}

// readAttributes finds the attributes that have a role, by key and type of value.
func (r *Regrouper) readAttributes(d pprofile.ProfilesDictionary) {
	table := d.AttributeTable()
	n := table.Len()
	r.roleOfString = dictionary.Zeroed(r.roleOfString, d.StringTable().Len())
	r.roleOf, r.keyRoleOf = dictionary.Zeroed(r.roleOf, n), dictionary.Zeroed(r.keyRoleOf, n)
	r.canonicalOf = dictionary.Zeroed(r.canonicalOf, n)
	if r.canonical == nil {
		r.canonical = map[content]int32{}
	}
	for a := range n {
		entry := table.At(a)
		role := r.roleOfStringIndex(entry.KeyStrindex(), d.StringTable())
		r.keyRoleOf[a] = role
		if role != none && !isUsable(int(role), entry.Value()) {
			role = none
		}
		r.roleOf[a] = role
		if role == none {
			continue
		}
		key := content{role, entry.UnitStrindex(), dictionary.ValueOf(entry.Value())}
		first, ok := r.canonical[key]
		if !ok {
			first = int32(a)
			r.canonical[key] = first
		}
		r.canonicalOf[a] = first
	}
}

func (r *Regrouper) roleOfStringIndex(i int32, strings pcommon.StringSlice) int8 {
	if uint(i) >= uint(len(r.roleOfString)) { // a negative index is a huge one
		return none
	}
	if known := r.roleOfString[i]; known != 0 {
		return known - 2
	}
	role, ok := r.roleOfKey[strings.At(int(i))]
	if !ok {
		role = none
	}
	r.roleOfString[i] = role + 2
	return role
}

// isUsable reports whether a value can have a role: a process id is a number, other known ones are strings, and further
// ones are single values.
func isUsable(role int, value pcommon.Value) bool {
	switch kind := value.Type(); {
	case role == rolePID:
		return kind == pcommon.ValueTypeInt && value.Int() >= 0
	case kind == pcommon.ValueTypeStr:
		return value.Str() != ""
	case role < numRoles:
		return false
	default:
		return kind == pcommon.ValueTypeInt || kind == pcommon.ValueTypeBool || kind == pcommon.ValueTypeDouble
	}
}

func (r *Regrouper) readSamples(resource int32, samples pprofile.SampleSlice) {
	for i := range samples.Len() {
		for role := range r.scratch {
			r.scratch[role] = none
		}
		indices := samples.At(i).AttributeIndices()
		for k := range indices.Len() {
			a := indices.At(k)
			if uint(a) >= uint(len(r.roleOf)) || r.roleOf[a] == none {
				continue
			}
			if role := r.roleOf[a]; r.scratch[role] == none { // the first with a key is used
				r.scratch[role] = r.canonicalOf[a]
			}
		}
		t := r.tuple(resource)
		r.tupleOf = append(r.tupleOf, t)
		r.samplesOfTuple[t]++
	}
}

func (r *Regrouper) tuple(resource int32) int32 {
	if n := len(r.tupleOf); n > 0 { // Fast path: the last sample was of the same process.
		if last := r.tupleOf[n-1]; r.isTuple(last, resource) {
			return last
		}
	}
	h := dictionary.Mix(0, uint64(resource))
	for _, a := range r.scratch {
		h = dictionary.Mix(h, uint64(uint32(a)))
	}
	probe := r.tupleIndex.Start(h)
	for t := r.tupleIndex.Next(&probe); t != 0; t = r.tupleIndex.Next(&probe) {
		if r.isTuple(t, resource) {
			return t
		}
	}
	t := int32(len(r.resourceOfTuple))
	r.tuples = append(r.tuples, r.scratch...)
	r.resourceOfTuple = append(r.resourceOfTuple, resource)
	r.samplesOfTuple = append(r.samplesOfTuple, 0)
	r.tupleIndex.Insert(probe, t)
	return t
}

func (r *Regrouper) isTuple(t, resource int32) bool {
	return r.resourceOfTuple[t] == resource && slices.Equal(r.tupleAt(t), r.scratch)
}

func (r *Regrouper) tupleAt(t int32) []int32 {
	width := int32(len(r.keys))
	return r.tuples[t*width : (t+1)*width]
}

// describe returns the processes of each resource. Tuples are in the order of resources.
func (r *Regrouper) describe(pd pprofile.Profiles) []Resource {
	attributes := pd.Dictionary().AttributeTable()
	r.processes = slices.Grow(r.processes, len(r.resourceOfTuple))
	r.resources = r.resources[:0]
	t := int32(1)
	for i, rp := range pd.ResourceProfiles().All() {
		from := len(r.processes)
		for ; int(t) < len(r.resourceOfTuple) && r.resourceOfTuple[t] == int32(i); t++ {
			tuple := r.tupleAt(t)
			p := Process{
				ExecutableName:         r.stringValue(attributes, tuple, roleExecutableName),
				ExecutablePath:         r.stringValue(attributes, tuple, roleExecutablePath),
				ServiceName:            r.stringValue(attributes, tuple, roleServiceName),
				Container:              r.stringValue(attributes, tuple, roleContainer),
				OTelServiceName:        r.stringValue(attributes, tuple, roleOTelServiceName),
				OTelResourceAttributes: r.stringValue(attributes, tuple, roleOTelResourceAttributes),
				Samples:                int(r.samplesOfTuple[t]),
				PID:                    NoPID,
				tuple:                  t,
			}
			if a := tuple[rolePID]; a != none {
				p.PID = attributes.At(int(a)).Value().Int()
			}
			r.processes = append(r.processes, p)
		}
		r.resources = append(r.resources, Resource{Attributes: rp.Resource().Attributes(), Processes: r.processes[from:]})
	}
	return r.resources
}
