// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// resolved returns the values of the message's attribute table in which string references (key_strindex,
// string_value_strindex) have been resolved, at the same indices; those without references are empty. pdata resolves
// references of resources and scopes when it unmarshals a message, but neither those in the attribute table nor those
// that its marshaler leaves in a message that is written: an exporter may split that message, and send it again. pdata
// gives no access to references: a key reads as empty, a value as absent. Only its marshaler and unmarshaler know them.
func (im *Importer) resolved() pcommon.Slice {
	if im.referenced != (pcommon.Slice{}) {
		return im.referenced
	}
	holder := pcommon.NewValueSlice()
	im.referenced = holder.Slice()
	im.referenced.EnsureCapacity(im.src.attributes.Len())
	for _, attribute := range im.src.attributes.All() {
		value := im.referenced.AppendEmpty()
		if mayReference(attribute.Value(), maxValueDepth) {
			attribute.Value().CopyTo(value)
		}
	}
	message, ok := roundTrip(im.src.strings, func(message pprofile.Profiles) {
		attributes := message.ResourceProfiles().AppendEmpty().Resource().Attributes()
		holder.CopyTo(attributes.PutEmpty("values"))
	})
	if ok {
		values, _ := message.ResourceProfiles().At(0).Resource().Attributes().Get("values")
		im.referenced = values.Slice()
	}
	return im.referenced
}

// ResolveReferences returns resources and scopes, at the same indices as in src, whose attributes have their references
// resolved. It returns src itself if it has no references.
func ResolveReferences(src pprofile.Profiles) pprofile.Profiles {
	if !mayHaveReferences(src) {
		return src
	}
	resolved, ok := roundTrip(src.Dictionary().StringTable(), func(skeleton pprofile.Profiles) {
		for _, rp := range src.ResourceProfiles().All() {
			to := skeleton.ResourceProfiles().AppendEmpty()
			rp.Resource().Attributes().CopyTo(to.Resource().Attributes())
			for _, sp := range rp.ScopeProfiles().All() {
				sp.Scope().Attributes().CopyTo(to.ScopeProfiles().AppendEmpty().Scope().Attributes())
			}
		}
	})
	if !ok {
		return src
	}
	return resolved
}

// ResolveInPlace replaces references in attributes of resources and scopes by their strings.
func ResolveInPlace(pd pprofile.Profiles) {
	resolved := ResolveReferences(pd)
	if resolved == pd {
		return
	}
	for i, rp := range pd.ResourceProfiles().All() {
		from := resolved.ResourceProfiles().At(i)
		from.Resource().Attributes().MoveTo(rp.Resource().Attributes())
		for j, sp := range rp.ScopeProfiles().All() {
			from.ScopeProfiles().At(j).Scope().Attributes().MoveTo(sp.Scope().Attributes())
		}
	}
}

// mayHaveReferences reports whether an attribute of a resource or scope reads as empty and may be a reference.
func mayHaveReferences(src pprofile.Profiles) bool {
	for _, rp := range src.ResourceProfiles().All() {
		if hasReferences(rp.Resource().Attributes(), maxValueDepth) {
			return true
		}
		for _, sp := range rp.ScopeProfiles().All() {
			if hasReferences(sp.Scope().Attributes(), maxValueDepth) {
				return true
			}
		}
	}
	return false
}

// roundTrip marshals and unmarshals a message that has a string table and what fill adds.
func roundTrip(strings pcommon.StringSlice, fill func(pprofile.Profiles)) (pprofile.Profiles, bool) {
	message := pprofile.NewProfiles()
	table := message.Dictionary().StringTable()
	strings.CopyTo(table)
	// A reference of 0 means no reference. If a string were there, the marshaller would refer to it and lose it.
	if table.Len() > 0 {
		table.SetAt(0, "")
	} else {
		table.Append("")
	}
	fill(message)
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(message)
	if err != nil {
		return message, false
	}
	message, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	return message, err == nil
}

// hasReferences reports whether something in m reads as empty and may be a reference.
func hasReferences(m pcommon.Map, depth int) bool {
	for key, value := range m.All() {
		if key == "" || mayReference(value, depth) {
			return true
		}
	}
	return false
}

func mayReference(v pcommon.Value, depth int) bool {
	if depth < 0 {
		return false
	}
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return true
	case pcommon.ValueTypeSlice:
		for _, value := range v.Slice().All() {
			if mayReference(value, depth-1) {
				return true
			}
		}
	case pcommon.ValueTypeMap:
		return hasReferences(v.Map(), depth-1)
	default:
	}
	return false
}
