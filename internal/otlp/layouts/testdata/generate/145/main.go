// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command fixtures writes a message of opentelemetry-proto 1.9: without comments.
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
	d := pd.Dictionary()
	p := sp.Profiles().AppendEmpty()
	p.SetProfileID(pprofile.ProfileID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	p.SetTime(start)
	p.SetDurationNano(10_000000000)

	strings := map[string]int32{}
	str := func(s string) int32 {
		if i, ok := strings[s]; ok {
			return i
		}
		i := int32(d.StringTable().Len())
		d.StringTable().Append(s)
		strings[s] = i
		return i
	}
	str("")
	st := p.SampleType()
	st.SetTypeStrindex(str("samples"))
	st.SetUnitStrindex(str("count"))
	p.PeriodType().SetTypeStrindex(str("cpu"))
	p.PeriodType().SetUnitStrindex(str("nanoseconds"))
	p.SetPeriod(10_000000)
	d.AttributeTable().AppendEmpty()
	attribute := func(key string, value any, unit string) int32 {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(str(key))
		if err := a.Value().FromRaw(value); err != nil {
			panic(err)
		}
		a.SetUnitStrindex(str(unit))
		return int32(d.AttributeTable().Len() - 1)
	}
	d.MappingTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	m := d.MappingTable().AppendEmpty()
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x9000)
	m.SetFilenameStrindex(str("/bin/shop"))
	m.AttributeIndices().Append(attribute("process.executable.build_id.gnu", "abcdef0123456789abcdef0123456789abcdef01", ""))
	function := func(name string) int32 {
		f := d.FunctionTable().AppendEmpty()
		f.SetNameStrindex(str(name))
		f.SetFilenameStrindex(str("/src/main.go"))
		return int32(d.FunctionTable().Len() - 1)
	}
	inner, work, main := function("main.inner"), function("main.work"), function("main.main")
	native := attribute("profile.frame.type", "native", "")
	location := func(address uint64, functions ...int32) {
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(1)
		l.SetAddress(address)
		l.AttributeIndices().Append(native)
		for i, f := range functions {
			line := l.Lines().AppendEmpty()
			line.SetFunctionIndex(f)
			line.SetLine(int64(10 + i))
		}
	}
	location(0x1100, inner, work)
	location(0x1200, main)
	d.StackTable().AppendEmpty().LocationIndices().Append(1, 2)
	d.StackTable().AppendEmpty().LocationIndices().Append(2)
	link := d.LinkTable().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	link.SetSpanID(pcommon.SpanID{2, 2, 2, 2, 2, 2, 2, 2})
	s1 := p.Samples().AppendEmpty()
	s1.SetStackIndex(1)
	s1.Values().Append(3)
	s1.AttributeIndices().Append(attribute("thread.name", "worker", ""))
	s1.SetLinkIndex(1)
	s2 := p.Samples().AppendEmpty()
	s2.SetStackIndex(2)
	s2.Values().Append(4)
	s2.AttributeIndices().Append(attribute("request.size", 512, "By"))

	p.AttributeIndices().Append(attribute("note", "kept", ""))

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
