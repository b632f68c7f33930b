// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// tableID is one of the seven tables of the dictionary.
type tableID int

const (
	mappingTable tableID = iota
	locationTable
	functionTable
	linkTable
	stringTable
	attributeTable
	stackTable
	numTables
)

var tableNames = [numTables]string{
	"mapping_table", "location_table", "function_table", "link_table", "string_table", "attribute_table", "stack_table",
}

// visitor gets the indices in a profile, a sample or an entry of a table, which is at p, and their field.
type visitor interface {
	index(p path, field string, to tableID, i int32)
	indices(p path, field string, to tableID, indices pcommon.Int32Slice)
}

func visitProfile(v visitor, p path, profile pprofile.Profile) {
	visitValueType(v, p.child("sample_type"), profile.SampleType())
	visitValueType(v, p.child("period_type"), profile.PeriodType())
	v.indices(p, "attribute_indices", attributeTable, profile.AttributeIndices())
}

func visitValueType(v visitor, p path, t pprofile.ValueType) {
	v.index(p, "type_strindex", stringTable, t.TypeStrindex())
	v.index(p, "unit_strindex", stringTable, t.UnitStrindex())
}

func visitSample(v visitor, p path, s pprofile.Sample) {
	v.index(p, "stack_index", stackTable, s.StackIndex())
	v.index(p, "link_index", linkTable, s.LinkIndex())
	v.indices(p, "attribute_indices", attributeTable, s.AttributeIndices())
}

func visitMapping(v visitor, p path, m pprofile.Mapping) {
	v.index(p, "filename_strindex", stringTable, m.FilenameStrindex())
	v.indices(p, "attribute_indices", attributeTable, m.AttributeIndices())
}

func visitLocation(v visitor, p path, l pprofile.Location) {
	v.index(p, "mapping_index", mappingTable, l.MappingIndex())
	v.indices(p, "attribute_indices", attributeTable, l.AttributeIndices())
	for i, line := range l.Lines().All() {
		v.index(p.item("lines", i), "function_index", functionTable, line.FunctionIndex())
	}
}

func visitFunction(v visitor, p path, f pprofile.Function) {
	v.index(p, "name_strindex", stringTable, f.NameStrindex())
	v.index(p, "system_name_strindex", stringTable, f.SystemNameStrindex())
	v.index(p, "filename_strindex", stringTable, f.FilenameStrindex())
}

func visitAttribute(v visitor, p path, a pprofile.KeyValueAndUnit) {
	v.index(p, "key_strindex", stringTable, a.KeyStrindex())
	v.index(p, "unit_strindex", stringTable, a.UnitStrindex())
}

func visitStack(v visitor, p path, s pprofile.Stack) {
	v.indices(p, "location_indices", locationTable, s.LocationIndices())
}
