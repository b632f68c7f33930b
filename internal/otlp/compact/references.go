// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// resolved returns the values of the message's attribute table in which string references (key_strindex,
// string_value_strindex) have been resolved, at the same indices; those without references are empty. pdata resolves
// references of resources and scopes when it unmarshals a message, but not those in the attribute table, and it gives no access to
// them: a key reads as empty, a value as absent. Only its marshaler and unmarshaler know them.
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

// roundTrip marshals and unmarshals a message that has a string table and what fill adds.
func roundTrip(strings pcommon.StringSlice, fill func(pprofile.Profiles)) (pprofile.Profiles, bool) {
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
