// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// source is the tables of a message, each with an entry at least.
type source struct {
	strings    pcommon.StringSlice
	attributes pprofile.KeyValueAndUnitSlice
	links      pprofile.LinkSlice
	functions  pprofile.FunctionSlice
	mappings   pprofile.MappingSlice
	locations  pprofile.LocationSlice
	stacks     pprofile.StackSlice
}

// zeroValues stands in for the tables that a message lacks. It is read only.
var zeroValues = newZeroValues()

func newZeroValues() pprofile.ProfilesDictionary {
	d := pprofile.NewProfilesDictionary()
	d.StringTable().Append("")
	d.AttributeTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	return d
}

func sourceOf(d pprofile.ProfilesDictionary) source {
	return source{
		strings:    orZero(d.StringTable(), zeroValues.StringTable()),
		attributes: orZero(d.AttributeTable(), zeroValues.AttributeTable()),
		links:      orZero(d.LinkTable(), zeroValues.LinkTable()),
		functions:  orZero(d.FunctionTable(), zeroValues.FunctionTable()),
		mappings:   orZero(d.MappingTable(), zeroValues.MappingTable()),
		locations:  orZero(d.LocationTable(), zeroValues.LocationTable()),
		stacks:     orZero(d.StackTable(), zeroValues.StackTable()),
	}
}

func orZero[T interface{ Len() int }](table, zero T) T {
	if table.Len() == 0 {
		return zero
	}
	return table
}
