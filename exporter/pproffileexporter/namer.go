// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// namer names the files of one message. It keeps what is about the resource and the scope of the last file, since a
// small message can become many files.
type namer struct {
	template *template
	// resolved has the resources and scopes of pd without references to strings.
	pd, resolved pprofile.Profiles
	now          time.Time

	resource, scope int
	// values[i] is the value of key i, or empty if it is not known yet.
	values []string
	// stated is the name of the profile according to the scope.
	stated string
	names  kind.Namer
}

func newNamer(t *template, pd pprofile.Profiles, now time.Time) *namer {
	return &namer{template: t, pd: pd, resolved: compact.ResolveReferences(pd), now: now, resource: -1,
		values: make([]string, len(t.keys))}
}

// path returns the path of the file for a pprof, without the suffix.
func (n *namer) path(e *encode.Payload) string {
	rp := n.resolved.ResourceProfiles().At(e.ResourceIndex)
	isNew := e.ResourceIndex != n.resource
	if isNew {
		clear(n.values)
	}
	if isNew || e.ScopeIndex != n.scope {
		scope := rp.ScopeProfiles().At(e.ScopeIndex).Scope().Attributes()
		n.stated = kind.Stated(scope)
		n.names.Begin(scope, n.pd.ResourceProfiles().At(e.ResourceIndex).ScopeProfiles().At(e.ScopeIndex).Profiles(),
			n.pd.Dictionary())
	}
	n.resource, n.scope = e.ResourceIndex, e.ScopeIndex
	p := n.pd.ResourceProfiles().At(e.ResourceIndex).ScopeProfiles().At(e.ScopeIndex).Profiles().
		At(slices.Min(e.ProfileIndices))
	return n.template.path(func(i int) string {
		switch n.template.keys[i] {
		case "profile":
			return safe(n.names.Name(p, n.stated), n.template.maxBytes[i])
		case "time":
			at := n.now
			if p.Time() != 0 {
				at = p.Time().AsTime()
			}
			return at.UTC().Format("20060102T150405.000Z")
		}
		if n.values[i] == "" {
			n.values[i] = safe(ofResource(rp.Resource().Attributes(), n.template.keys[i]), n.template.maxBytes[i])
		}
		return n.values[i]
	})
}

func ofResource(attributes pcommon.Map, key string) string {
	switch key {
	case "instance":
		if id := stringValue(attributes, "service.instance.id"); id != "" {
			return id
		}
		return fmt.Sprintf("%08x", uint32(hashOfMap(attributes)))
	case "service.name":
		return kind.Service(attributes)
	default:
		return stringValue(attributes, key)
	}
}

// maxStringBytes is how much of a string is read for a name: many resources can share a long one.
const maxStringBytes = 4096

func short(s string) string { return s[:min(len(s), maxStringBytes)] }

// stringValue returns an attribute as a string. A map or an array has none.
func stringValue(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok || v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice {
		return ""
	}
	return short(v.AsString())
}

// hashOfMap returns a hash that does not depend on the order of the entries.
func hashOfMap(m pcommon.Map) (sum uint64) {
	for key, value := range m.All() {
		sum += combined(xxhash.Sum64String(short(key)), hashOf(value))
	}
	return sum
}

func hashOf(v pcommon.Value) uint64 {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		return hashOfMap(v.Map())
	case pcommon.ValueTypeSlice:
		hash := uint64(v.Slice().Len())
		for _, element := range v.Slice().All() {
			hash = combined(hash, hashOf(element))
		}
		return hash
	default:
		return xxhash.Sum64String(short(v.AsString()))
	}
}

func combined(a, b uint64) uint64 {
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], a)
	binary.LittleEndian.PutUint64(pair[8:], b)
	return xxhash.Sum64(pair[:])
}
