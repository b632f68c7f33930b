// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// scope is a scope with its schema URL, of one resource, as a template without profiles.
type scope struct {
	resource int32
	template pprofile.ScopeProfiles
}

// interned is a list of items without duplicates. An item's key holds all of its content.
type interned[T any] struct {
	items   []T
	index   map[string]int32 // by key
	scratch []byte
}

// maxKeptKeyBytes and maxKeptItems bound the memory that is kept for the next batch.
const (
	maxKeptKeyBytes = 64 << 10
	maxKeptItems    = 1 << 10
)

func (t *interned[T]) reset() {
	if cap(t.scratch) > maxKeptKeyBytes {
		t.scratch = nil
	}
	if t.index == nil || len(t.index) > maxKeptItems {
		t.index = map[string]int32{}
	}
	clear(t.index)
	clear(t.items)
	t.items = t.items[:0]
}

// find returns the item whose key is in scratch. The caller must fill in a new one.
func (t *interned[T]) find() (at int32, isNew bool) {
	if at, known := t.index[string(t.scratch)]; known {
		return at, false
	}
	var item T
	at = int32(len(t.items))
	t.index[string(t.scratch)] = at
	t.items = append(t.items, item)
	return at, true
}

// resource returns the index of a resource. Equal resources have one index. attributes are the resource's own, with
// their references resolved.
func (b *Batch) resource(src pcommon.Resource, attributes pcommon.Map, schemaURL string) int32 {
	clean := pcommon.NewMap()
	b.importer.CleanMap(attributes, clean)
	schema := b.importer.CleanString(schemaURL)
	key := dictionary.AppendString(b.resources.scratch[:0], schema)
	key = binary.AppendUvarint(key, uint64(src.DroppedAttributesCount()))
	entities := entity.ResourceEntityRefs(src)
	key = binary.AppendUvarint(key, uint64(entities.Len()))
	for _, e := range entities.All() {
		key = dictionary.AppendString(dictionary.AppendString(key, e.SchemaUrl()), e.Type())
		key = appendStrings(appendStrings(key, e.IdKeys()), e.DescriptionKeys())
	}
	b.resources.scratch = dictionary.AppendMap(key, clean)
	at, isNew := b.resources.find()
	if isNew {
		template := pprofile.NewResourceProfiles()
		template.SetSchemaUrl(schema)
		template.Resource().SetDroppedAttributesCount(src.DroppedAttributesCount())
		to := entity.ResourceEntityRefs(template.Resource())
		for _, e := range entities.All() {
			b.copyEntity(e, to.AppendEmpty())
		}
		clean.MoveTo(template.Resource().Attributes())
		b.ownBytes += sizer.ResourceProfilesSize(template)
		b.resources.items[at] = template
	}
	return at
}

func (b *Batch) copyEntity(src, dst entity.EntityRef) {
	dst.SetSchemaUrl(b.importer.CleanString(src.SchemaUrl()))
	dst.SetType(b.importer.CleanString(src.Type()))
	for _, key := range src.IdKeys().All() {
		dst.IdKeys().Append(b.importer.CleanString(key))
	}
	for _, key := range src.DescriptionKeys().All() {
		dst.DescriptionKeys().Append(b.importer.CleanString(key))
	}
}

// scope returns the index of a scope of a resource, in the same way as resource.
func (b *Batch) scope(resource int32, src pcommon.InstrumentationScope, attributes pcommon.Map,
	schemaURL string) int32 {
	clean := pcommon.NewMap()
	b.importer.CleanMap(attributes, clean)
	template := pprofile.NewScopeProfiles()
	template.SetSchemaUrl(b.importer.CleanString(schemaURL))
	template.Scope().SetName(b.importer.CleanString(src.Name()))
	template.Scope().SetVersion(b.importer.CleanString(src.Version()))
	template.Scope().SetDroppedAttributesCount(src.DroppedAttributesCount())

	key := binary.AppendUvarint(b.scopes.scratch[:0], uint64(resource))
	key = dictionary.AppendString(key, template.SchemaUrl())
	key = dictionary.AppendString(dictionary.AppendString(key, template.Scope().Name()), template.Scope().Version())
	key = binary.AppendUvarint(key, uint64(src.DroppedAttributesCount()))
	b.scopes.scratch = dictionary.AppendMap(key, clean)
	at, isNew := b.scopes.find()
	if isNew {
		clean.MoveTo(template.Scope().Attributes())
		b.ownBytes += sizer.ScopeProfilesSize(template)
		b.scopes.items[at] = scope{resource: resource, template: template}
	}
	return at
}

func appendStrings(b []byte, list pcommon.StringSlice) []byte {
	b = binary.AppendUvarint(b, uint64(list.Len()))
	for _, s := range list.All() {
		b = dictionary.AppendString(b, s)
	}
	return b
}
