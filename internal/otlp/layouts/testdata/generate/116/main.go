// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command fixtures writes a message of opentelemetry-proto 1.4: tables inside the profile.
package main

import (
	"os"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const start = pcommon.Timestamp(1725184800_000000000)

func main() {
	pd := pprofile.NewProfiles()
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", "shop")
	sp := rp.ScopeProfiles().AppendEmpty()
	sp.Scope().SetName("profiler")
	sp.Scope().SetVersion("1.0")
	p := sp.Profiles().AppendEmpty()
	p.SetProfileID(pprofile.ProfileID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	p.SetTime(start)
	p.SetDuration(10_000000000)
	p.Attributes().PutStr("note", "kept")
	strings := map[string]int32{}
	str := func(s string) int32 {
		if i, ok := strings[s]; ok {
			return i
		}
		i := int32(p.StringTable().Len())
		p.StringTable().Append(s)
		strings[s] = i
		return i
	}
	str("")
	st := p.SampleType().AppendEmpty()
	st.SetTypeStrindex(str("samples"))
	st.SetUnitStrindex(str("count"))
	p.PeriodType().SetTypeStrindex(str("cpu"))
	p.PeriodType().SetUnitStrindex(str("nanoseconds"))
	p.SetPeriod(10_000000)
	p.CommentStrindices().Append(str("a comment"))
	attribute := func(key string, value any, unit string) int32 {
		a := p.AttributeTable().AppendEmpty()
		a.SetKey(key)
		if err := a.Value().FromRaw(value); err != nil {
			panic(err)
		}
		if unit != "" {
			u := p.AttributeUnits().AppendEmpty()
			u.SetAttributeKeyStrindex(str(key))
			u.SetUnitStrindex(str(unit))
		}
		return int32(p.AttributeTable().Len() - 1)
	}
	m := p.MappingTable().AppendEmpty()
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x9000)
	m.SetFilenameStrindex(str("/bin/shop"))
	m.AttributeIndices().Append(attribute("process.executable.build_id.gnu", "abcdef0123456789abcdef0123456789abcdef01", ""))
	function := func(name string) int32 {
		f := p.FunctionTable().AppendEmpty()
		f.SetNameStrindex(str(name))
		f.SetFilenameStrindex(str("/src/main.go"))
		return int32(p.FunctionTable().Len() - 1)
	}
	inner, work, main := function("main.inner"), function("main.work"), function("main.main")
	native := attribute("profile.frame.type", "native", "")
	location := func(address uint64, functions ...int32) {
		l := p.LocationTable().AppendEmpty()
		l.SetMappingIndex(0)
		l.SetAddress(address)
		l.AttributeIndices().Append(native)
		for i, f := range functions {
			line := l.Line().AppendEmpty()
			line.SetFunctionIndex(f)
			line.SetLine(int64(10 + i))
		}
	}
	location(0x1100, inner, work)
	location(0x1200, main)
	p.LocationIndices().Append(0, 1, 1)
	link := p.LinkTable().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	link.SetSpanID(pcommon.SpanID{2, 2, 2, 2, 2, 2, 2, 2})
	s1 := p.Sample().AppendEmpty()
	s1.SetLocationsStartIndex(0)
	s1.SetLocationsLength(2)
	s1.Value().Append(3)
	s1.AttributeIndices().Append(attribute("thread.name", "worker", ""))
	s2 := p.Sample().AppendEmpty()
	s2.SetLocationsStartIndex(2)
	s2.SetLocationsLength(1)
	s2.Value().Append(4)
	s2.AttributeIndices().Append(attribute("request.size", 512, "By"))

	write(pd)
}
func write(pd pprofile.Profiles) {
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err == nil {
		err = os.WriteFile(os.Args[1]+".pb", data, 0o644)
	}
	if err == nil {
		data, err = (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
	}
	if err == nil {
		err = os.WriteFile(os.Args[1]+".json", append(data, '\n'), 0o644)
	}
	if err != nil {
		panic(err)
	}
}
