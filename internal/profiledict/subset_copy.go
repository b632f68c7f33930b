// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// CopyTo writes all tables to dst, which must be empty.
func (s *Subset) CopyTo(dst pprofile.ProfilesDictionary) {
	s.copyStrings(dst)
	s.copyFunctions(dst.FunctionTable())
	s.copyMappings(dst.MappingTable())
	s.copyLocations(dst.LocationTable())
	s.copyStacks(dst.StackTable())
	s.copyLinks(dst.LinkTable())
	s.copyAttributes(dst.AttributeTable())
}

func (s *Subset) copyStrings(dst pprofile.ProfilesDictionary) {
	table := dst.StringTable()
	table.EnsureCapacity(len(s.strings.order))
	for _, i := range s.strings.order {
		table.Append(s.dict.Strings.entries[i])
	}
}

func (s *Subset) copyFunctions(dst pprofile.FunctionSlice) {
	dst.EnsureCapacity(len(s.functions.order))
	for _, i := range s.functions.order {
		f, entry := &s.dict.Functions.entries[i], dst.AppendEmpty()
		entry.SetNameStrindex(s.String(f.Name))
		entry.SetSystemNameStrindex(s.String(f.SystemName))
		entry.SetFilenameStrindex(s.String(f.Filename))
		entry.SetStartLine(f.StartLine)
	}
}

func (s *Subset) copyMappings(dst pprofile.MappingSlice) {
	dst.EnsureCapacity(len(s.mappings.order))
	for _, i := range s.mappings.order {
		m, entry := &s.dict.Mappings.entries[i], dst.AppendEmpty()
		entry.SetMemoryStart(m.MemoryStart)
		entry.SetMemoryLimit(m.MemoryLimit)
		entry.SetFileOffset(m.FileOffset)
		entry.SetFilenameStrindex(s.String(m.Filename))
		s.CopyAttributes(m.Attributes, entry.AttributeIndices())
	}
}

func (s *Subset) copyLocations(dst pprofile.LocationSlice) {
	dst.EnsureCapacity(len(s.locations.order))
	for _, i := range s.locations.order {
		l, lines := s.dict.Locations.At(LocationIndex(i))
		entry := dst.AppendEmpty()
		entry.SetMappingIndex(s.mappings.index[l.Mapping])
		entry.SetAddress(l.Address)
		s.CopyAttributes(l.Attributes, entry.AttributeIndices())
		if len(lines) == 0 {
			continue
		}
		to := entry.Lines()
		to.EnsureCapacity(len(lines))
		for k := range lines {
			line := to.AppendEmpty()
			line.SetFunctionIndex(s.functions.index[lines[k].Function])
			line.SetLine(lines[k].Line)
			line.SetColumn(lines[k].Column)
		}
	}
}

func (s *Subset) copyStacks(dst pprofile.StackSlice) {
	dst.EnsureCapacity(len(s.stacks.order))
	for _, i := range s.stacks.order {
		list, entry := s.dict.Stacks.At(StackIndex(i)), dst.AppendEmpty()
		if len(list) == 0 {
			continue
		}
		s.scratch = slices.Grow(s.scratch[:0], len(list))[:len(list)]
		for k, l := range list {
			s.scratch[k] = s.locations.index[l]
		}
		entry.LocationIndices().FromRaw(s.scratch)
	}
}

func (s *Subset) copyLinks(dst pprofile.LinkSlice) {
	dst.EnsureCapacity(len(s.links.order))
	for _, i := range s.links.order {
		l, entry := &s.dict.Links.entries[i], dst.AppendEmpty()
		entry.SetTraceID(l.TraceID)
		entry.SetSpanID(l.SpanID)
	}
}

func (s *Subset) copyAttributes(dst pprofile.KeyValueAndUnitSlice) {
	dst.EnsureCapacity(len(s.attributes.order))
	for _, i := range s.attributes.order {
		a, entry := &s.dict.Attributes.entries[i], dst.AppendEmpty()
		entry.SetKeyStrindex(s.String(a.Key))
		entry.SetUnitStrindex(s.String(a.Unit))
		a.Value.copyTo(entry.Value())
	}
}
