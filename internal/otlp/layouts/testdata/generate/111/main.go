// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command fixtures writes a message of opentelemetry-proto 1.3 (v1experimental).
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
	container := sp.Profiles().AppendEmpty()
	container.SetProfileID(pprofile.ProfileID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	container.SetStartTime(start)
	container.SetEndTime(start + 10_000000000)
	container.Attributes().PutStr("note", "kept")
	p := container.Profile()
	strings := map[string]int64{}
	str := func(s string) int64 {
		if i, ok := strings[s]; ok {
			return i
		}
		i := int64(p.StringTable().Len())
		p.StringTable().Append(s)
		strings[s] = i
		return i
	}
	str("")
	st := p.SampleType().AppendEmpty()
	st.SetType(str("samples"))
	st.SetUnit(str("count"))
	p.PeriodType().SetType(str("cpu"))
	p.PeriodType().SetUnit(str("nanoseconds"))
	p.SetPeriod(10_000000)
	p.Comment().Append(str("a comment"))
	m := p.Mapping().AppendEmpty() // entry 0 is a real one
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x9000)
	m.SetFilename(str("/bin/shop"))
	m.SetBuildID(str("abcdef0123456789abcdef0123456789abcdef01"))
	function := func(name string) uint64 {
		f := p.Function().AppendEmpty()
		f.SetName(str(name))
		f.SetFilename(str("/src/main.go"))
		return uint64(p.Function().Len() - 1)
	}
	inner, work, main := function("main.inner"), function("main.work"), function("main.main")
	location := func(address uint64, functions ...uint64) {
		l := p.Location().AppendEmpty()
		l.SetAddress(address)
		l.SetTypeIndex(uint32(str("native")))
		for i, f := range functions {
			line := l.Line().AppendEmpty()
			line.SetFunctionIndex(f)
			line.SetLine(int64(10 + i))
		}
	}
	location(0x1100, inner, work)
	location(0x1200, main)
	p.LocationIndices().Append(0, 1, 1)
	p.AttributeTable().PutStr("thread.name", "worker") // entry 0 is a real one
	p.AttributeTable().PutInt("request.size", 512)
	unit := p.AttributeUnits().AppendEmpty()
	unit.SetAttributeKey(str("request.size"))
	unit.SetUnit(str("By"))
	p.LinkTable().AppendEmpty()
	link := p.LinkTable().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	link.SetSpanID(pcommon.SpanID{2, 2, 2, 2, 2, 2, 2, 2})
	s1 := p.Sample().AppendEmpty()
	s1.SetLocationsStartIndex(0)
	s1.SetLocationsLength(2)
	s1.Value().Append(3)
	s1.Attributes().Append(0)
	s1.SetLink(1)
	s2 := p.Sample().AppendEmpty()
	s2.SetLocationsStartIndex(2)
	s2.SetLocationsLength(1)
	s2.Value().Append(4)
	s2.Attributes().Append(1)

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
