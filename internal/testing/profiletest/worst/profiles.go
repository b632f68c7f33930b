// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// each adds a sample to one profile for each so many bytes.
func each(bytes int, sample func(m *Message, p pprofile.Profile, i int)) func(m *Message, size int) {
	return func(m *Message, size int) {
		p := m.Profile()
		for i := range size / bytes {
			sample(m, p, i)
		}
	}
}

// valued has samples that share the value of an attribute, and have another one of their own.
func valued(value func(size int) any) func(m *Message, size int) {
	return func(m *Message, size int) {
		p, shared := m.Profile(), m.Attribute("shared", value(size))
		for i := range size / 64 {
			m.Sample(p, 0, shared, m.Attribute("key", i))
		}
	}
}

// lists has the elements in a list, as many as take half the size.
func lists(bytes int, element any) func(m *Message, size int) {
	return valued(func(size int) any { return slices.Repeat([]any{element}, size/2/bytes) })
}

func nested(depth int) (value any) {
	for range depth {
		value = []any{value}
	}
	return value
}

// putMany sets n attributes. Map.Put would look through all attributes before each.
func putMany(to pcommon.Map, n int) {
	var attributes xpdata.MapBuilder
	attributes.EnsureCapacity(n)
	for i := range n {
		attributes.AppendEmpty(fmt.Sprint("key", i)).SetInt(1)
	}
	attributes.UnsafeIntoMap(to)
}

// deep adds a stack of one function of a long name, many times.
func deep(m *Message, size int) int32 {
	return m.Stack(slices.Repeat([]int32{m.Location(m.Function(m.Text(long(size))))}, size/4)...)
}

// Profiles are OTLP profiles of the latest layout, with very many small entries, or with very many references to a
// large one.
var Profiles = Messages{
	"samples":     each(12, func(m *Message, p pprofile.Profile, _ int) { m.Sample(p, 0) }),
	"many stacks": each(40, func(m *Message, p pprofile.Profile, _ int) { m.Sample(p, m.Stack(m.Location())) }),
	"many links and attributes": each(80, func(m *Message, p pprofile.Profile, i int) {
		l := m.Dict.LinkTable().AppendEmpty()
		l.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
		l.SetSpanID([8]byte{1})
		m.Sample(p, 0, m.Attribute("key", i)).SetLinkIndex(int32(m.Dict.LinkTable().Len() - 1))
	}),
	"empty profiles": func(m *Message, size int) {
		for range size / 8 {
			m.Scope.Profiles().AppendEmpty()
		}
	},
	"services": func(m *Message, size int) {
		for i := range size / 80 {
			m.NextResource().PutStr("service.name", fmt.Sprint("service-", i))
			m.Sample(m.Profile(), 0)
		}
	},
	"observations": func(m *Message, size int) {
		s := m.Sample(m.Profile(), 0)
		Observe(s, size/9)
		s.Values().FromRaw(slices.Repeat([]int64{1}, size/9))
	},
	"huge times and values": func(m *Message, size int) {
		for i := range size / 80 {
			p := m.Profile()
			p.SetTime(math.MaxUint64)
			p.SetDurationNano(math.MaxUint64)
			s := m.Sample(p, 0)
			s.Values().SetAt(0, math.MinInt64)
			s.TimestampsUnixNano().Append(uint64(i) << 54)
		}
	},

	"functions of a long name": func(m *Message, size int) {
		p, name := m.Profile(), m.Text(long(size))
		for range size / 80 {
			m.Sample(p, m.Stack(m.Location(m.Function(name))))
		}
	},
	"profiles of a long name": func(m *Message, size int) {
		stack := m.Stack(m.Location(m.Function(m.Text(long(size)))))
		for range size / 80 {
			m.Sample(m.Profile(), stack)
		}
	},
	"locations of a long mapping": func(m *Message, size int) {
		p, mapping := m.Profile(), int32(m.Dict.MappingTable().Len())
		m.Dict.MappingTable().AppendEmpty().SetFilenameStrindex(m.Text(long(size)))
		for range size / 80 {
			at := m.Location()
			m.Dict.LocationTable().At(int(at)).SetMappingIndex(mapping)
			m.Sample(p, m.Stack(at))
		}
	},
	"mappings of a long build id": func(m *Message, size int) {
		id, locations := m.Attribute("process.executable.build_id.gnu", long(size)), m.Locations(size/64)
		for i, at := range locations {
			mapping := m.Dict.MappingTable().AppendEmpty()
			mapping.SetFileOffset(uint64(i))
			mapping.AttributeIndices().Append(id)
			m.Dict.LocationTable().At(int(at)).SetMappingIndex(int32(m.Dict.MappingTable().Len() - 1))
		}
		m.Sample(m.Profile(), m.Stack(locations...))
	},
	"locations of a mapping with many attributes": func(m *Message, size int) {
		p, mapping := m.Profile(), int32(m.Dict.MappingTable().Len())
		m.Dict.MappingTable().AppendEmpty().AttributeIndices().FromRaw(m.Attributes(size / 50))
		frame := m.Attribute("profile.frame.type", slices.Repeat([]any{"native"}, size/50))
		for range size / 80 {
			at := m.Location()
			m.Dict.LocationTable().At(int(at)).SetMappingIndex(mapping)
			m.Dict.LocationTable().At(int(at)).AttributeIndices().Append(frame)
			m.Sample(p, m.Stack(at))
		}
	},

	"stacks with most in common": func(m *Message, size int) {
		p, n := m.Profile(), int(math.Sqrt(float64(size)))
		var locations []int32
		for i := range n {
			locations = append(locations, m.Location(m.Function(m.Text(fmt.Sprint("f", i)))))
		}
		for i := range locations {
			m.Sample(p, m.Stack(locations[i:]...))
		}
	},
	"profiles of a deep stack": func(m *Message, size int) {
		stack := m.Stack(m.Locations(size / 200)...)
		for range size / 80 {
			m.Sample(m.Profile(), stack)
		}
	},
	"samples of a deep stack": func(m *Message, size int) {
		p, stack := m.Profile(), m.Stack(m.Locations(size/200)...)
		for i := range size / 60 {
			Observe(m.Sample(p, stack, m.Attribute("key", i)), 2)
		}
	},
	"samples of a stack of many frames": func(m *Message, size int) {
		p, stack := m.Profile(), deep(m, size)
		for range size / 32 {
			m.Sample(p, stack)
		}
	},
	"timestamps of a stack of many frames": func(m *Message, size int) {
		Observe(m.Sample(m.Profile(), deep(m, size)), size/32)
	},
	"two types of a stack of many frames": func(m *Message, size int) {
		stack := deep(m, size)
		for i, p := range []pprofile.Profile{m.Type("a"), m.Type("b")} {
			for k := range size/64 + i {
				m.Sample(p, stack).Values().SetAt(0, int64(k))
			}
		}
	},
	"a location of many lines in many stacks": func(m *Message, size int) {
		p, many := m.Profile(), m.Location(slices.Repeat([]int32{m.Function(m.Text("f"))}, size/16)...)
		for i := range size / 80 {
			locations := []int32{many, m.Location()}
			if i%2 > 0 {
				slices.Reverse(locations)
			}
			m.Sample(p, m.Stack(locations...))
		}
	},
	"a location of many lines, many times in a stack": func(m *Message, size int) {
		p, many := m.Profile(), m.Location(slices.Repeat([]int32{m.Function(m.Text("f"))}, size/16)...)
		stack := m.Stack(slices.Repeat([]int32{many}, size/8)...)
		for i := range size / 80 {
			m.Sample(p, stack, m.Attribute("key", i))
		}
	},

	"samples of a long attribute":       valued(func(size int) any { return long(size) }),
	"samples of a list of numbers":      lists(6, 1),
	"samples of a list of strings":      lists(5, "x"),
	"samples of a list of booleans":     lists(4, true),
	"samples of a list of empty values": lists(2, nil),
	"samples of a list of control characters": valued(func(size int) any {
		return []any{strings.Repeat("\x01", size/2), true}
	}),
	"samples of nested lists": each(300, func(m *Message, p pprofile.Profile, _ int) {
		m.Sample(p, 0, m.Attribute("key", nested(45))) // pdata reads no deeper ones
	}),
	"attributes of a long key that is not UTF-8": func(m *Message, size int) {
		p, key := m.Profile(), m.Text("\xff"+long(size))
		for i := range size / 40 {
			attribute := m.Attribute("", i)
			m.Dict.AttributeTable().At(int(attribute)).SetKeyStrindex(key)
			m.Sample(p, 0, attribute)
		}
	},
	"attributes of a sample": func(m *Message, size int) { m.Sample(m.Profile(), 0, m.Attributes(size/30)...) },
	"attributes of a profile": func(m *Message, size int) {
		p := m.Profile()
		p.AttributeIndices().FromRaw(m.Attributes(size / 30))
		m.Sample(p, 0)
	},
	"samples of many attributes": func(m *Message, size int) {
		p, list := m.Profile(), m.Attributes(int(math.Sqrt(float64(size)/3)))
		for i := range list {
			m.Sample(p, 0, list...).Values().SetAt(0, int64(i))
		}
	},
	"an attribute, many times in a sample": func(m *Message, size int) {
		m.Sample(m.Profile(), 0, slices.Repeat([]int32{m.Attribute("key", 1)}, size)...)
	},
	"timestamps of a sample of many attributes": func(m *Message, size int) {
		Observe(m.Sample(m.Profile(), 0, m.Attributes(size/50)...), size/16)
	},
	"timestamps of a sample of some attributes": func(m *Message, size int) {
		Observe(m.Sample(m.Profile(), 0, m.Attributes(16)...), size/9)
	},
	"timestamps of a sample with an attribute many times": func(m *Message, size int) {
		Observe(m.Sample(m.Profile(), 0, slices.Repeat([]int32{m.Attribute("key", 1)}, size/4)...), size/16)
	},
	"timestamps of two types with no attribute many times": func(m *Message, size int) {
		for i, p := range []pprofile.Profile{m.Type("a"), m.Type("b")} {
			Observe(m.Sample(p, m.Stack(slices.Repeat([]int32{m.Location()}, i)...), make([]int32, size/8)...), size/32)
		}
	},

	"profiles of a long attribute": func(m *Message, size int) {
		shared := m.Attribute("pprof.profile.comment", long(size))
		for range size / 80 {
			p := m.Profile()
			p.AttributeIndices().Append(shared)
			m.Sample(p, 0)
		}
	},
	"profiles of a long type": func(m *Message, size int) {
		typ := m.Text(long(size))
		for range size / 80 {
			p := m.Profile()
			for _, of := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
				of.SetTypeStrindex(typ)
				of.SetUnitStrindex(typ)
			}
			m.Sample(p, 0)
		}
	},
	"profiles of a long resource and scope": func(m *Message, size int) {
		m.Resource.Resource().Attributes().PutStr("long", long(size))
		m.Scope.Scope().SetName(long(size))
		m.Scope.Scope().Attributes().PutStr("pprof.scope.profile_name", long(size))
		for i := range size / 160 {
			for _, p := range []pprofile.Profile{m.Type("samples"), m.Profile()} {
				p.SetTime(pcommon.Timestamp(Noon.UnixNano()))
				p.SetDurationNano(uint64(i))
				m.Sample(p, 0)
			}
		}
	},
	"profiles of a resource with a list": func(m *Message, size int) {
		list := m.Resource.Resource().Attributes().PutEmptySlice("list")
		for i := range size / 80 {
			list.AppendEmpty().SetStr(fmt.Sprint("item-", i))
			m.Sample(m.Profile(), 0)
		}
	},
	"profiles of a scope with many attributes": func(m *Message, size int) {
		putMany(m.Scope.Scope().Attributes(), size/30)
		for range size / 16 {
			m.Scope.Profiles().AppendEmpty()
		}
	},
	"scopes of a long resource": func(m *Message, size int) {
		m.Resource.Resource().Attributes().PutStr("long", long(size))
		for i := range size / 80 {
			m.Scope = m.Resource.ScopeProfiles().AppendEmpty()
			m.Scope.Scope().SetName(fmt.Sprint(i))
			m.Sample(m.Profile(), 0)
		}
	},
	"resources of a long attribute": func(m *Message, size int) {
		long := long(size)
		for i := range size / 100 {
			m.NextResource().PutStr("long", long)
			m.Resource.Resource().Attributes().PutInt("process.pid", int64(i))
			m.Scope.Scope().Attributes().PutEmptySlice("pprof.scope.profile_name").AppendEmpty().SetStr(long)
			m.Sample(m.Profile(), 0)
		}
	},
	"threads of a resource with many attributes": func(m *Message, size int) {
		putMany(m.Resource.Resource().Attributes(), size/30)
		p := m.Profile()
		for i := range size / 60 {
			Observe(m.Sample(p, 0, m.Attribute("thread.id", i)), 1)
		}
	},

	"types without common samples": func(m *Message, size int) {
		const types = 64
		m.Scope.Scope().Attributes().PutStr("pprof.scope.profile_name", "process_cpu")
		for i := range types {
			p := m.Type(fmt.Sprint("t", i))
			for k := range size / types / 8 {
				m.Sample(p, 0).SetLinkIndex(int32(k & 1))
			}
		}
		m.Dict.LinkTable().AppendEmpty().SetSpanID([8]byte{1})
	},
	"types of many stacks": func(m *Message, size int) {
		const types = 90
		m.Scope.Scope().Attributes().PutStr("pprof.scope.profile_name", "process_cpu")
		for i := range types {
			p := m.Type(fmt.Sprint("t", i))
			for range size / types / 40 {
				m.Sample(p, m.Stack(m.Location()))
			}
		}
	},
	"types in an order": func(m *Message, size int) {
		order := m.Scope.Scope().Attributes().PutEmptySlice(kind.AttributeSampleTypeOrder)
		for i := range size / 64 {
			order.AppendEmpty().SetInt(int64(i))
		}
		var last pprofile.Profile
		for i := range size / 32 {
			last = m.Type(fmt.Sprint("t", i%(size/64)))
		}
		for range size / 16 {
			m.Sample(last, 0)
		}
	},
	"types of a profile with many attributes": func(m *Message, size int) {
		m.Scope.Scope().Attributes().PutStr("pprof.scope.profile_name", "process_cpu")
		for i := range size / 80 {
			m.Type(fmt.Sprint("t", i))
		}
		last := m.Type("last")
		last.AttributeIndices().FromRaw(m.Attributes(size / 60))
		m.Sample(last, 0)
	},
}
