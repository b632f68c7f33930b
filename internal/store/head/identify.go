// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file finds the series of the profiles of a message.

// seriesOf finds the block's series of a profile with a set of attributes, or adds one.
func (a *message) seriesOf(p pprofile.Profile, set dictionary.AttributeSetIndex) int32 {
	typ, unit := a.stringAt(p.SampleType().TypeStrindex()), kind.UnitName(a.stringAt(p.SampleType().UnitStrindex()))
	name := a.namer.Name(p, a.statedName())
	if !a.hasResource {
		a.cleanResource()
	}
	e := a.block
	strs := &e.Dict.Strings
	attributes := e.SeriesAttributes(set)
	key := Key{Resource: a.resourceHash, Attributes: attributes.Hash}
	var ok1, ok2, ok3 bool
	key.Profile, ok1 = strs.Lookup(name)
	key.Type, ok2 = strs.Lookup(typ)
	key.Unit, ok3 = strs.Lookup(unit)
	if i, ok := e.ByKey[key]; ok && ok1 && ok2 && ok3 {
		e.Series[i].Use.Last = a.now
		return i
	}
	id := a.seriesID(attributes.Hash, name, typ, unit)
	key.Profile, key.Type, key.Unit = strs.Intern(name), strs.Intern(typ), strs.Intern(unit)
	if i, ok := e.byID[id]; ok {
		e.Series[i].Use.Last, e.ByKey[key] = a.now, i
		return i
	}
	use := a.known.Series[id]
	if use == nil {
		use = &Use{}
		a.known.Series[id] = use
	}
	use.Blocks, use.Last = use.Blocks+1, a.now
	if !a.hasResourceSet {
		a.resourceSet, a.hasResourceSet = a.intern(a.resource, nil), true
	}
	i := e.AddSeries(model.BlockSeries{
		ID: id, Service: strs.At(strs.Intern(a.service)), Profile: strs.At(key.Profile),
		Type:     model.SampleType{Type: strs.At(key.Type), Unit: strs.At(key.Unit)},
		Resource: a.resourceSet, Attributes: attributes.Set,
		Instance: binary.BigEndian.Uint64(a.resourceHash[:]),
	}, use)
	e.ByKey[key] = i
	return i
}

// seriesID returns the identity of a series of the current resource, with a hash of the attributes of its profiles.
func (a *message) seriesID(attributes [sha256.Size]byte, names ...string) model.SeriesID {
	key := append(append(a.key[:0], a.resourceHash[:]...), attributes[:]...)
	for _, name := range names {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	a.key = key
	return sha256.Sum256(key)
}

func (a *message) scopeAttributeSet() dictionary.AttributeSetIndex {
	if !a.hasScopeSet {
		a.scopeSet, a.hasScopeSet = a.intern(a.clean(a.scope), scopeAttributes), true
	}
	return a.scopeSet
}

// clean returns a clean copy of a resource's or a scope's attributes, which is valid until the next one.
func (a *message) clean(m pcommon.Map) pcommon.Map {
	if a.cleaned == (pcommon.Map{}) {
		a.cleaned = pcommon.NewMap()
	}
	a.importer.CleanMap(m, a.cleaned)
	return a.cleaned
}

// intern interns the attributes of the given keys, or all of them if keys is nil. They must be clean.
func (a *message) intern(clean pcommon.Map, keys []string) dictionary.AttributeSetIndex {
	var set []int32
	for key, v := range clean.All() {
		if keys == nil || slices.Contains(keys, key) {
			set = append(set, int32(a.block.Dict.Attributes.Intern(dictionary.Attribute{
				Key: a.block.Dict.Strings.Intern(key), Value: dictionary.ValueOf(v),
			})))
		}
	}
	return a.block.Dict.AttributeSets.Intern(set)
}
