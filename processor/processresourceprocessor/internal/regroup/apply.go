// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"encoding/binary"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// apply carries out the decision. Resources that stay keep their position; new ones follow in the order of their first
// sample.
func (r *Regrouper) apply(pd pprofile.Profiles) {
	r.changeIndices(pd)
	m := mover{
		Regrouper: r, resources: pd.ResourceProfiles(), targets: make([]target, len(r.groups)),
		scopeContents: map[string]int32{}, scopeOf: map[scopeKey]pprofile.ScopeProfiles{}, unread: none,
	}
	emptied := make([]bool, m.resources.Len())
	for i := range emptied {
		emptied[i] = m.moveResource(int32(i))
	}
	at := -1
	m.resources.RemoveIf(func(pprofile.ResourceProfiles) bool {
		at++
		return at < len(emptied) && emptied[at]
	})
	r.addAttributes(pd)
}

// changeIndices removes the attributes that move from the samples, and adds those that samples get.
func (r *Regrouper) changeIndices(pd pprofile.Profiles) {
	n := 0
	for p := range otlp.Profiles(pd) {
		samples := p.Samples()
		for i := range samples.Len() {
			t := r.tupleOf[n]
			n++
			if r.strips[t] != 0 || len(r.lowered) > 0 {
				r.changeSample(samples.At(i), t)
			}
		}
	}
}

func (r *Regrouper) changeSample(s pprofile.Sample, t int32) {
	strip, tuple := r.strips[t], r.tupleAt(t)
	indices := s.AttributeIndices()
	list := r.scratch[:0]
	for k := range indices.Len() {
		a := indices.At(k)
		if uint(a) < uint(len(r.roleOf)) {
			if role := r.roleOf[a]; role != none && strip&(1<<role) != 0 && tuple[role] == r.canonicalOf[a] {
				continue
			}
		} else {
			a = outOfRange
		}
		list = append(list, a)
	}
	gained := r.gained(t)
	for i := range gained {
		l := &gained[i]
		if tuple[l.role] == none && !r.hasKey(indices, int(l.role)) {
			list = append(list, r.newIndex(l))
		}
	}
	indices.FromRaw(list)
	r.scratch = list
}

// hasKey reports whether a sample has an attribute of a role's key that cannot have the role.
func (r *Regrouper) hasKey(indices pcommon.Int32Slice, role int) bool {
	for k := range indices.Len() {
		if a := indices.At(k); uint(a) < uint(len(r.keyRoleOf)) && int(r.keyRoleOf[a]) == role {
			return true
		}
	}
	return false
}

// mover moves samples to their groups.
type mover struct {
	*Regrouper
	resources pprofile.ResourceProfilesSlice
	targets   []target
	// next is the number of the next sample of the message, profiles that of the current profile.
	next     int
	profiles int32
	// scopeContents numbers scopes by their content. scopeContent is the number of the current scope, or none until it is
	// needed.
	scopeContents map[string]int32
	scopeContent  int32
	// resource is the current resource. If it was not measured, its scopes are not read; unread is the last number that
	// such a scope got.
	resource, unread int32
	scopeOf          map[scopeKey]pprofile.ScopeProfiles
}

type scopeKey struct{ group, content int32 }

// target is the profile for the samples of a group.
type target struct {
	isMade   bool
	resource pprofile.ResourceProfiles
	// profile is a copy of the message's profile with number profileOf.
	profileOf int32
	profile   pprofile.Profile
	// samples is the number of samples of the current profile.
	samples int
}

// moveResource moves the samples that leave a resource, and reports whether the resource is empty then.
func (m *mover) moveResource(i int32) (isEmptied bool) {
	rp := m.resources.At(int(i))
	m.resource = i
	if group, samples, ok := m.onlyGroup(rp); ok && (group == 0 || !m.targets[group].isMade) {
		m.next += samples
		if group != 0 {
			m.claim(group, rp)
		}
		return false
	}
	hadScopes := rp.ScopeProfiles().Len() > 0
	rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
		m.scopeContent = none
		hadProfiles := sp.Profiles().Len() > 0
		sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
			m.profiles++
			return m.moveProfile(rp, sp, p)
		})
		return hadProfiles && sp.Profiles().Len() == 0
	})
	return hadScopes && rp.ScopeProfiles().Len() == 0
}

// claim makes a resource whose samples are all of one group the resource of that group.
func (m *mover) claim(group int32, rp pprofile.ResourceProfiles) {
	m.targets[group].isMade, m.targets[group].resource = true, rp
	m.groups[group].writeTo(rp.Resource().Attributes())
	for _, sp := range rp.ScopeProfiles().All() {
		m.scopeContent = none
		key := scopeKey{group, m.contentOf(sp)}
		if _, ok := m.scopeOf[key]; !ok {
			m.scopeOf[key] = sp
		}
	}
}

// contentOf returns the number of the current scope's content.
func (m *mover) contentOf(sp pprofile.ScopeProfiles) int32 {
	if m.scopeContent == none && !m.isMeasured[m.resource] {
		m.unread--
		m.scopeContent = m.unread
	}
	if m.scopeContent == none {
		key := dictionary.AppendMap(m.key[:0], sp.Scope().Attributes())
		for _, s := range [...]string{sp.Scope().Name(), sp.Scope().Version(), sp.SchemaUrl()} {
			key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
		}
		m.key = binary.AppendUvarint(key, uint64(sp.Scope().DroppedAttributesCount()))
		number, ok := m.scopeContents[string(m.key)]
		if !ok {
			number = int32(len(m.scopeContents))
			m.scopeContents[string(m.key)] = number
		}
		m.scopeContent = number
	}
	return m.scopeContent
}

// onlyGroup returns the group of all samples of a resource, and their number, if all have the same group.
func (m *mover) onlyGroup(rp pprofile.ResourceProfiles) (group int32, samples int, ok bool) {
	for _, sp := range rp.ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			samples += p.Samples().Len()
		}
	}
	for k, t := range m.tupleOf[m.next : m.next+samples] {
		if k == 0 {
			group = m.groupOf[t]
		} else if m.groupOf[t] != group {
			return 0, 0, false
		}
	}
	return group, samples, true
}

// moveProfile moves the samples that leave a profile, and reports whether none is left.
func (m *mover) moveProfile(rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles,
	p pprofile.Profile) (isEmptied bool) {
	samples := p.Samples()
	if samples.Len() == 0 {
		return false
	}
	tuples := m.tupleOf[m.next : m.next+samples.Len()]
	m.next += samples.Len()
	stay, groups := 0, 0
	first := m.groupOf[tuples[0]]
	for _, t := range tuples {
		group := m.groupOf[t]
		if group == 0 {
			stay++
			continue
		}
		to := &m.targets[group]
		if to.profileOf != m.profiles {
			to.profileOf, to.samples = m.profiles, 0
			groups++
		}
		to.samples++
	}
	if stay == len(tuples) {
		return false
	}
	if groups == 1 && stay == 0 {
		p.MoveTo(m.scope(first, rp, sp).Profiles().AppendEmpty())
		return true
	}
	whole := p.OriginalPayload().Len() > 0 && stay == 0
	for k, t := range tuples {
		group := m.groupOf[t]
		if group == 0 {
			continue
		}
		to := &m.targets[group]
		if to.samples > 0 {
			m.newProfile(group, rp, sp, p, whole)
			whole = false
		}
		samples.At(k).MoveTo(to.profile.Samples().AppendEmpty())
	}
	k := -1
	samples.RemoveIf(func(pprofile.Sample) bool {
		k++
		return m.groupOf[tuples[k]] != 0
	})
	return stay == 0
}

// newProfile begins a profile of a group with the header of p. Its id depends only on the content. Only one of the
// profiles gets the original payload.
func (m *mover) newProfile(group int32, rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles, p pprofile.Profile,
	withPayload bool) {
	to := &m.targets[group]
	dst := m.scope(group, rp, sp).Profiles().AppendEmpty()
	dst.SetTime(p.Time())
	dst.SetDurationNano(p.DurationNano())
	dst.SetPeriod(p.Period())
	p.SampleType().CopyTo(dst.SampleType())
	p.PeriodType().CopyTo(dst.PeriodType())
	p.AttributeIndices().CopyTo(dst.AttributeIndices())
	dst.SetDroppedAttributesCount(p.DroppedAttributesCount())
	if id := p.ProfileID(); !id.IsEmpty() {
		var content otlp.ContentID
		content.AddString(string(id[:]))
		content.AddString(strconv.Itoa(int(group)))
		dst.SetProfileID(content.ProfileID())
	}
	if withPayload {
		dst.SetOriginalPayloadFormat(p.OriginalPayloadFormat())
		p.OriginalPayload().MoveTo(dst.OriginalPayload())
	}
	dst.Samples().EnsureCapacity(to.samples)
	to.profile, to.samples = dst, 0
}

func (m *mover) scope(group int32, rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles) pprofile.ScopeProfiles {
	to := &m.targets[group]
	if !to.isMade {
		to.isMade = true
		to.resource = m.resources.AppendEmpty()
		rp.Resource().CopyTo(to.resource.Resource())
		to.resource.SetSchemaUrl(rp.SchemaUrl())
		m.groups[group].writeTo(to.resource.Resource().Attributes())
	}
	key := scopeKey{group, m.contentOf(sp)}
	scope, ok := m.scopeOf[key]
	if !ok {
		scope = to.resource.ScopeProfiles().AppendEmpty()
		sp.Scope().CopyTo(scope.Scope())
		scope.SetSchemaUrl(sp.SchemaUrl())
		m.scopeOf[key] = scope
	}
	return scope
}
