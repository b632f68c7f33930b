// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// references are attribute values in which string references (key_strindex, string_value_strindex)
// have been resolved. pdata resolves those of resources and scopes when it unmarshals a message,
// but neither those that arrive over gRPC nor those in the attribute table, and it gives no access to
// them: a key reads as empty, a value as absent. Its marshaller and unmarshaller know them.
type references struct{ values pcommon.Slice }

// resolved resolves, once for each message, what looks like a reference in the attribute table.
func (im *Importer) resolved() *references {
	if im.referenced == nil {
		table := im.src.attributes
		holder := pcommon.NewValueSlice()
		holder.Slice().EnsureCapacity(table.Len())
		for i := range table.Len() {
			// All keep their place; those without references are not asked for.
			value := holder.Slice().AppendEmpty()
			if v := table.At(i).Value(); mayReference(v, maxValueDepth) {
				v.CopyTo(value)
			}
		}
		im.referenced = &references{values: holder.Slice()}
		message, ok := throughWire(im.src.strings, func(message pprofile.Profiles) {
			attributes := message.ResourceProfiles().AppendEmpty().Resource().Attributes()
			holder.CopyTo(attributes.PutEmpty("values"))
		})
		if ok {
			values, _ := message.ResourceProfiles().At(0).Resource().Attributes().Get("values")
			im.referenced.values = values.Slice()
		}
	}
	return im.referenced
}

func (r *references) attribute(i int32) pcommon.Value { return r.values.At(int(i)) }

// ResolveReferences returns, by the indices of src, resources and scopes whose attributes have their
// references resolved, or src itself if it has no references.
func ResolveReferences(src pprofile.Profiles) pprofile.Profiles {
	if !HasReferences(src) {
		return src
	}
	resolved, ok := throughWire(src.Dictionary().StringTable(), func(skeleton pprofile.Profiles) {
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

// HasReferences reports whether an attribute of a resource or scope reads as empty and may be a reference.
func HasReferences(src pprofile.Profiles) bool {
	for _, rp := range src.ResourceProfiles().All() {
		if hasReferences(rp.Resource().Attributes()) {
			return true
		}
		for _, sp := range rp.ScopeProfiles().All() {
			if hasReferences(sp.Scope().Attributes()) {
				return true
			}
		}
	}
	return false
}

// throughWire sends what fill makes, beside the strings of its message, through pdata's marshaller.
func throughWire(strings pcommon.StringSlice, fill func(pprofile.Profiles)) (pprofile.Profiles, bool) {
	message := pprofile.NewProfiles()
	table := message.Dictionary().StringTable()
	strings.CopyTo(table)
	// A reference of 0 means no reference. If a text were there, the marshaller would refer to it and lose it.
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

// hasReferences reports whether something reads as empty that may be a reference.
func hasReferences(m pcommon.Map) bool {
	for key, value := range m.All() {
		if key == "" || mayReference(value, maxValueDepth) {
			return true
		}
	}
	return false
}

func mayReference(v pcommon.Value, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return true
	case pcommon.ValueTypeSlice:
		for _, value := range v.Slice().All() {
			if depth > 0 && mayReference(value, depth-1) {
				return true
			}
		}
	case pcommon.ValueTypeMap:
		for key, value := range v.Map().All() {
			if key == "" || depth > 0 && mayReference(value, depth-1) {
				return true
			}
		}
	default:
	}
	return false
}
