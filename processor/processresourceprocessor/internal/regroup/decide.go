// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

type decision struct {
	// groups are the resources of the result. Group 0 means that samples stay in their resource.
	groups  []resourceGroup
	byKey   map[string]int32
	groupOf []int32 // by tuple
	// strips[t] has a bit for each role whose attribute moves from the samples of tuple t to their resource.
	strips []uint64
	others map[int32]int32 // by resource
	// contents numbers resources by their content.
	contents map[[32]byte]int32
	// isMeasured reports, by resource, whether the budget was enough to read all of it.
	isMeasured []bool
	key        []byte
	content    []byte
	// budget is how many more bytes of resources and scopes may be copied.
	budget int
}

type resourceGroup struct {
	// set are the attributes that it gets, lowered the keys of those that it loses. The resource `other` keeps only a few
	// attributes.
	set     pcommon.Map
	lowered []string
	isOther bool
}

// A message may become larger by a constant, and for each sample by a little: its resources are written for each
// service. With resources that take 2 kB of memory the constant is enough for 4000 services.
const (
	copiedConstant = 8 << 20
	copiedFactor   = 64 // bytes for each sample
)

func (d *decision) forget() {
	clear(d.groups)
	clear(d.byKey)
	clear(d.others)
	clear(d.contents)
}

func (r *Regrouper) hasChanges() bool { return len(r.groups) > 1 }

// decide finds a group for each tuple, in the order in which they occur.
func (r *Regrouper) decide(pd pprofile.Profiles, resources []Resource, group Group) {
	if r.byKey == nil {
		r.byKey, r.others, r.contents = map[string]int32{}, map[int32]int32{}, map[[32]byte]int32{}
	}
	r.groups = append(r.groups[:0], resourceGroup{})
	r.groupOf = dictionary.Zeroed(r.groupOf, len(r.resourceOfTuple))
	r.strips = append(r.strips[:0], make([]uint64, len(r.resourceOfTuple))...)
	r.isMeasured = append(r.isMeasured[:0], make([]bool, len(resources))...)
	r.budget = copiedConstant + copiedFactor*len(r.tupleOf)
	for i := range resources {
		base := base{resource: int32(i), rp: pd.ResourceProfiles().At(i), isProcess: resources[i].IsProcess}
		if name, ok := resources[i].Attributes.Get(serviceNameKey); ok {
			base.serviceName = name.Str()
		}
		for k := range resources[i].Processes {
			p := &resources[i].Processes[k]
			r.groupOf[p.tuple] = r.groupFor(pd.Dictionary().AttributeTable(), &base, p, group)
		}
	}
}

// base is a resource of the message from which groups are made.
type base struct {
	resource    int32
	rp          pprofile.ResourceProfiles
	serviceName string
	isProcess   bool
	// Set with the first group.
	isKnown bool
	bytes   int
	lowered []string // keys of attributes that leave it
	hash    [32]byte
	content int32 // number of the hash
}

func (r *Regrouper) groupFor(attributes pprofile.KeyValueAndUnitSlice, base *base, p *Process, group Group) int32 {
	tuple := r.tupleAt(p.tuple)
	strip := r.stripOf(tuple, p)
	id := &p.Identity
	if id.ServiceName == "" || strip == 0 && id.ServiceName == base.serviceName && len(id.Attributes) == 0 &&
		!base.isProcess {
		return 0
	}
	if !base.measure(r) {
		r.stats.OverCopies += p.Samples
		return r.other(base)
	}
	// Samples of one group lose and gain the same attributes, so that those that differ still differ.
	r.key = binary.LittleEndian.AppendUint32(r.key[:0], uint32(base.content))
	for role, a := range tuple {
		if strip&(1<<role) == 0 {
			a = none
		}
		r.key = binary.LittleEndian.AppendUint32(r.key, uint32(a))
	}
	for _, l := range r.lowered[base.resource] {
		if tuple[l.role] == l.attribute {
			r.key = append(r.key, 1) // it has the attribute that others gain
		} else {
			r.key = append(r.key, 0)
		}
	}
	if id.ServiceName != base.serviceName { // which can be of any length
		r.key = append(binary.AppendUvarint(r.key, uint64(len(id.ServiceName))), id.ServiceName...)
	}
	r.key = append(append(r.key, 0), id.Key...)
	at, ok := r.byKey[string(r.key)]
	if !ok {
		at = r.newGroup(attributes, base, tuple, strip, id, group)
		r.byKey[string(r.key)] = at
	}
	switch {
	case at == overResources:
		r.stats.OverResources += p.Samples
	case at == overCopies:
		r.stats.OverCopies += p.Samples
	default:
		r.strips[p.tuple] = strip
		return at
	}
	return r.other(base)
}

// Keys without a group of their own.
const (
	overResources = -1
	overCopies    = -2
)

// stripOf returns which attributes of a process move.
func (r *Regrouper) stripOf(tuple []int32, p *Process) (strip uint64) {
	for role, a := range tuple {
		if a != none && (r.moves[role] || role == roleServiceName && p.Identity.FromSample) {
			strip |= 1 << role
		}
	}
	return strip
}

func (r *Regrouper) newGroup(attributes pprofile.KeyValueAndUnitSlice, base *base, tuple []int32, strip uint64,
	id *Identity, group Group) int32 {
	bytes := base.bytes + len(id.Key)
	if id.ServiceName != base.serviceName {
		bytes += len(id.ServiceName)
	}
	for role, a := range tuple {
		if strip&(1<<role) != 0 {
			bytes += size.OfValue(attributes.At(int(a)).Value()) + len(r.keys[role])
		}
	}
	if bytes > r.budget {
		return overCopies
	}
	set := pcommon.NewMap()
	set.EnsureCapacity(len(r.keys) + len(id.Attributes))
	if id.ServiceName != base.serviceName {
		set.PutStr(serviceNameKey, id.ServiceName)
	}
	for role, a := range tuple {
		if strip&(1<<role) != 0 && role != roleServiceName {
			attributes.At(int(a)).Value().CopyTo(set.PutEmpty(r.keys[role]))
		}
	}
	for _, a := range id.Attributes {
		if _, ok := set.Get(a.Key); ok {
			continue
		}
		if old, ok := base.rp.Resource().Attributes().Get(a.Key); ok && !isEmpty(old) {
			continue
		}
		set.PutStr(a.Key, a.Value)
	}
	r.content = dictionary.AppendMap(append(r.content[:0], base.hash[:]...), set)
	r.budget -= bytes // even if Admit refuses it, since it was read
	if !group.Admit(sha256.Sum256(r.content)) {
		return overResources
	}
	r.groups = append(r.groups, resourceGroup{set: set, lowered: base.lowered})
	return int32(len(r.groups)) - 1
}

// measure determines the size of a group of a resource, and the hash of the resource's content. It reports whether
// there is room for one.
func (b *base) measure(r *Regrouper) bool {
	if b.isKnown {
		return b.content != none
	}
	b.isKnown, b.content = true, none
	attributes := b.rp.Resource().Attributes()
	b.bytes = size.OfMap(attributes) + len(b.rp.SchemaUrl())
	for _, sp := range b.rp.ScopeProfiles().All() {
		b.bytes += size.OfMap(sp.Scope().Attributes()) + len(sp.Scope().Name()) + len(sp.Scope().Version()) +
			len(sp.SchemaUrl())
		for _, p := range sp.Profiles().All() {
			b.bytes += 4 * p.AttributeIndices().Len()
		}
	}
	if b.bytes > r.budget {
		return false
	}
	r.budget -= b.bytes
	r.isMeasured[b.resource] = true
	if b.isProcess {
		r.lowerFrom(b)
	}
	if len(b.lowered) > 0 {
		rest := pcommon.NewMap()
		attributes.CopyTo(rest)
		rest.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(b.lowered, key) })
		attributes = rest
	}
	r.content = append(dictionary.AppendMap(r.content[:0], attributes), b.rp.SchemaUrl()...)
	b.hash = sha256.Sum256(r.content)
	content, ok := r.contents[b.hash]
	if !ok {
		content = int32(len(r.contents))
		r.contents[b.hash] = content
	}
	b.content = content
	return true
}

// other returns the group of the processes of a resource that have no group of their own.
func (r *Regrouper) other(base *base) int32 {
	at, ok := r.others[base.resource]
	if !ok {
		at = int32(len(r.groups))
		r.groups = append(r.groups, resourceGroup{set: pcommon.NewMap(), isOther: true})
		r.groups[at].set.PutStr(serviceNameKey, Other)
		r.others[base.resource] = at
	}
	return at
}

// sharedKeys are prefixes of the attributes that all processes of a machine share. The resource `other` keeps only
// these, so that a machine has one.
var sharedKeys = []string{"host.", "os.", "cloud.", "k8s.cluster.", "k8s.node.", "deployment.environment"}

func isShared(key string) bool {
	return slices.ContainsFunc(sharedKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// writeTo writes the attributes of a group to its resource, which is a copy of the resource that it comes from.
func (g *resourceGroup) writeTo(to pcommon.Map) {
	if g.isOther {
		to.RemoveIf(func(key string, _ pcommon.Value) bool { return !isShared(key) })
	}
	if len(g.lowered) > 0 {
		to.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(g.lowered, key) })
	}
	// The eBPF profiler has an empty id if there is no container.
	if id, ok := to.Get(roleKeys[roleContainer]); ok && isEmpty(id) {
		to.Remove(roleKeys[roleContainer])
	}
	for key, value := range g.set.All() {
		value.CopyTo(to.PutEmpty(key))
	}
}

func isEmpty(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeEmpty || v.Type() == pcommon.ValueTypeStr && v.Str() == ""
}
