// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// places finds the scope of the output that a record's samples go to. Resources and scopes of equal content become
// one, and only those that have samples come to be.
type places struct {
	resourceLogs plog.ResourceLogs
	scopeLogs    plog.ScopeLogs
	// currentResource and currentScope are 0 while nothing of the current ResourceLogs or ScopeLogs was needed.
	currentResource, currentScope int32
	currentID                     compact.ContentID
	// alone says that the request has one resource with one scope, as agents send it: then there is nothing that
	// could be equal.
	alone bool

	resources  []resourcePlace
	scopes     []pprofile.ScopeProfiles
	resourceOf map[resourceKey]int32
	scopeOf    map[scopeKey]int32
}

type resourcePlace struct {
	out pprofile.ResourceProfiles
	id  compact.ContentID
}

type resourceKey struct {
	attributes profiledict.Value
	dropped    uint32
	schema     string
}

type scopeKey struct {
	resource              int32
	name, version, schema string
	attributes            profiledict.Value
	dropped               uint32
}

// reset empties the lists. Their entry 0 is unused.
func (p *places) reset() {
	clear(p.resources)
	clear(p.scopes)
	*p = places{
		resources:  append(p.resources[:0], resourcePlace{}),
		scopes:     append(p.scopes[:0], pprofile.ScopeProfiles{}),
		resourceOf: p.resourceOf, scopeOf: p.scopeOf,
	}
	clear(p.resourceOf)
	clear(p.scopeOf)
}

func (p *places) request(ld plog.Logs) {
	p.alone = ld.ResourceLogs().Len() == 1 && ld.ResourceLogs().At(0).ScopeLogs().Len() == 1
}

func (p *places) resource(rl plog.ResourceLogs) {
	p.resourceLogs, p.currentResource = rl, 0
}

func (p *places) scope(sl plog.ScopeLogs) {
	p.scopeLogs, p.currentScope = sl, 0
}

// begin makes sure that the current scope is part of out.
func (p *places) begin(out pprofile.Profiles) {
	if p.currentScope != 0 {
		return
	}
	if p.resourceOf == nil {
		p.resourceOf, p.scopeOf = make(map[resourceKey]int32), make(map[scopeKey]int32)
	}
	if p.currentResource == 0 {
		p.currentResource = p.beginResource(out)
	}
	p.currentScope = p.beginScope()
	p.currentID = p.resources[p.currentResource].id
}

func (p *places) beginResource(out pprofile.Profiles) int32 {
	in := p.resourceLogs.Resource()
	key := resourceKey{dropped: in.DroppedAttributesCount(), schema: p.resourceLogs.SchemaUrl()}
	i := int32(len(p.resources))
	if !p.alone {
		key.attributes = valueOfMap(in.Attributes())
		if known, ok := p.resourceOf[key]; ok {
			return known
		}
		p.resourceOf[key] = i
	}
	entry := resourcePlace{out: out.ResourceProfiles().AppendEmpty()}
	copyMap(in.Attributes(), entry.out.Resource().Attributes())
	entry.out.Resource().SetDroppedAttributesCount(key.dropped)
	entry.out.SetSchemaUrl(validText(key.schema))
	for name, value := range in.Attributes().All() {
		entry.id.AddText(name)
		if value.Type() == pcommon.ValueTypeStr {
			entry.id.AddText(value.Str())
		}
	}
	p.resources = append(p.resources, entry)
	return i
}

func (p *places) beginScope() int32 {
	in := p.scopeLogs.Scope()
	key := scopeKey{
		resource: p.currentResource, name: in.Name(), version: in.Version(), schema: p.scopeLogs.SchemaUrl(),
		dropped: in.DroppedAttributesCount(),
	}
	i := int32(len(p.scopes))
	if !p.alone {
		key.attributes = valueOfMap(in.Attributes())
		if known, ok := p.scopeOf[key]; ok {
			return known
		}
		p.scopeOf[key] = i
	}
	entry := p.resources[p.currentResource].out.ScopeProfiles().AppendEmpty()
	entry.SetSchemaUrl(validText(key.schema))
	entry.Scope().SetName(validText(key.name))
	entry.Scope().SetVersion(validText(key.version))
	entry.Scope().SetDroppedAttributesCount(key.dropped)
	copyMap(in.Attributes(), entry.Scope().Attributes())
	p.scopes = append(p.scopes, entry)
	return i
}

func (p *places) newProfile() pprofile.Profile {
	return p.scopes[p.currentScope].Profiles().AppendEmpty()
}

// valueOfMap gives a map in a comparable form.
func valueOfMap(m pcommon.Map) profiledict.Value {
	if m.Len() == 0 {
		return profiledict.Value{}
	}
	v := pcommon.NewValueMap()
	m.CopyTo(v.Map())
	return profiledict.ValueOf(v)
}

// copyMap copies a map, with its text made valid UTF-8, as OTLP wants it.
func copyMap(from, to pcommon.Map) {
	from.CopyTo(to)
	if !mapIsValid(to) {
		made := pcommon.NewMap()
		for key, value := range to.All() {
			makeValid(value)
			value.CopyTo(made.PutEmpty(validText(key)))
		}
		made.CopyTo(to)
	}
}

func mapIsValid(m pcommon.Map) bool {
	for key, value := range m.All() {
		if !utf8.ValidString(key) || !valueIsValid(value) {
			return false
		}
	}
	return true
}

func valueIsValid(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return utf8.ValidString(v.Str())
	case pcommon.ValueTypeMap:
		return mapIsValid(v.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			if !valueIsValid(element) {
				return false
			}
		}
	}
	return true
}

// makeValid makes all text in v valid UTF-8.
func makeValid(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		v.SetStr(validText(v.Str()))
	case pcommon.ValueTypeMap:
		made := pcommon.NewMap()
		copyMap(v.Map(), made)
		made.CopyTo(v.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			makeValid(element)
		}
	}
}

func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
