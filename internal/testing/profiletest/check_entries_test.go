// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestCheckFindsFaultsOfEntries(t *testing.T) {
	requireFaultCases(t, map[string]faultCase{
		"link without span": {
			func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(1).SetSpanID([8]byte{}) },
			[]string{"link_table[1].span_id: is zero"},
		},
		"link without trace": {
			func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(1).SetTraceID([16]byte{}) },
			[]string{"link_table[1].trace_id: is zero"},
		},
		"mapping that ends where it starts": {
			func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(1).SetMemoryLimit(0x1000) },
			[]string{"mapping_table[1]: memory_start 0x1000 is not below memory_limit 0x1000"},
		},
		"mapping's file": {
			func(pd pprofile.Profiles) {
				pd.Dictionary().MappingTable().At(1).SetFilenameStrindex(44)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("referred to", "/bin/shop")
			},
			[]string{"mapping_table[1].filename_strindex: index 44 is out of range [0..17)"},
		},
		"mapping's attribute": {
			func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(1).AttributeIndices().Append(77) },
			[]string{"mapping_table[1].attribute_indices[1]: index 77 is out of range [0..6)"},
		},
		"location's mapping": {
			func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(2).SetMappingIndex(2) },
			[]string{"location_table[2].mapping_index: index 2 is out of range [0..2)"},
		},
		"location's attribute": {
			func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(2).AttributeIndices().Append(-1) },
			[]string{"location_table[2].attribute_indices[0]: index -1 is out of range [0..6)"},
		},
		"location's function": {
			func(pd pprofile.Profiles) {
				pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty().SetFunctionIndex(5)
			},
			[]string{"location_table[1].lines[2].function_index: index 5 is out of range [0..5)"},
		},
		"negative line and column": {
			func(pd pprofile.Profiles) {
				line := pd.Dictionary().LocationTable().At(1).Lines().At(1)
				line.SetLine(-1)
				line.SetColumn(-2)
			},
			[]string{
				"location_table[1].lines[1].line: is -1, below 0",
				"location_table[1].lines[1].column: is -2, below 0",
			},
		},
		"negative start line": {
			func(pd pprofile.Profiles) { pd.Dictionary().FunctionTable().At(1).SetStartLine(-3) },
			[]string{"function_table[1].start_line: is -3, below 0"},
		},
		"function's strings": {
			func(pd pprofile.Profiles) {
				f := pd.Dictionary().FunctionTable().At(3)
				f.SetSystemNameStrindex(17)
				f.SetFilenameStrindex(18)
			},
			[]string{
				"function_table[3].system_name_strindex: index 17 is out of range [0..17)",
				"function_table[3].filename_strindex: index 18 is out of range [0..17)",
			},
		},
		"function's name": {
			func(pd pprofile.Profiles) {
				pd.Dictionary().FunctionTable().At(3).SetNameStrindex(-2)
			},
			[]string{"function_table[3].name_strindex: index -2 is out of range [0..17)"},
		},
		"attribute's strings": {
			func(pd pprofile.Profiles) {
				a := pd.Dictionary().AttributeTable().At(1)
				a.SetKeyStrindex(33)
				a.SetUnitStrindex(34)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("referred to", "process.executable.build_id.gnu")
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("and", "pprof.profile.comment")
			},
			[]string{
				"attribute_table[1].key_strindex: index 33 is out of range [0..17)",
				"attribute_table[1].unit_strindex: index 34 is out of range [0..17)",
			},
		},
		"stack's location": {
			func(pd pprofile.Profiles) { pd.Dictionary().StackTable().At(2).LocationIndices().Append(4) },
			[]string{"stack_table[2].location_indices[2]: index 4 is out of range [0..4)"},
		},
		"orphaned stack": {
			func(pd pprofile.Profiles) {
				pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(1, 1)
			},
			[]string{"stack_table[4]: is not reached from any profile"},
		},
		"orphan of an orphan": {
			func(pd pprofile.Profiles) {
				pd.Dictionary().LocationTable().AppendEmpty().SetAddress(5)
				pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(4)
			},
			[]string{
				"location_table[4]: is not reached from any profile",
				"stack_table[4]: is not reached from any profile",
			},
		},
		"orphans of the other tables": {
			func(pd pprofile.Profiles) {
				d := pd.Dictionary()
				d.StringTable().Append("orphan")
				d.MappingTable().AppendEmpty().SetFileOffset(1)
				d.FunctionTable().AppendEmpty().SetStartLine(1)
				link := d.LinkTable().AppendEmpty()
				link.SetTraceID(someTrace)
				link.SetSpanID([8]byte{1})
				d.AttributeTable().AppendEmpty().Value().SetInt(5)
			},
			[]string{
				"mapping_table[2]: is not reached from any profile",
				"function_table[5]: is not reached from any profile",
				"link_table[2]: is not reached from any profile",
				"string_table[17]: is not reached from any profile",
				"attribute_table[6]: is not reached from any profile",
			},
		},
	})
}
