// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Noon is the time of all messages.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Message is profiles under construction. Unlike profiletest.Builder, it refers to entries by their indices, and adds
// an entry although it has an equal one, except for strings.
type Message struct {
	pprofile.Profiles
	Dict     pprofile.ProfilesDictionary
	Resource pprofile.ResourceProfiles
	Scope    pprofile.ScopeProfiles

	texts map[string]int32
}

// NewMessage returns a message of a resource and a scope without attributes.
func NewMessage() *Message {
	pd := pprofile.NewProfiles()
	dictionary.New().CopyTo(pd.Dictionary())
	m := &Message{Profiles: pd, Dict: pd.Dictionary(), texts: map[string]int32{"": 0}}
	m.NextResource()
	return m
}

// NextResource begins a resource with a scope, and returns its attributes.
func (m *Message) NextResource() pcommon.Map {
	m.Resource = m.ResourceProfiles().AppendEmpty()
	m.Scope = m.Resource.ScopeProfiles().AppendEmpty()
	return m.Resource.Resource().Attributes()
}

// Text returns the index of a string.
func (m *Message) Text(s string) int32 {
	i, ok := m.texts[s]
	if !ok {
		i = int32(m.Dict.StringTable().Len())
		m.Dict.StringTable().Append(s)
		m.texts[s] = i
	}
	return i
}

// Attribute adds an attribute.
func (m *Message) Attribute(key string, value any) int32 {
	a := m.Dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(m.Text(key))
	if err := a.Value().FromRaw(value); err != nil {
		panic(err)
	}
	return int32(m.Dict.AttributeTable().Len() - 1)
}

// Attributes adds n attributes, each of a key of its own.
func (m *Message) Attributes(n int) (list []int32) {
	for i := range n {
		list = append(list, m.Attribute(fmt.Sprint("key", i), 1))
	}
	return list
}

// Function adds a function. Its start line distinguishes it from others of its name.
func (m *Message) Function(name int32) int32 {
	i := m.Dict.FunctionTable().Len()
	f := m.Dict.FunctionTable().AppendEmpty()
	f.SetNameStrindex(name)
	f.SetStartLine(int64(i))
	return int32(i)
}

// Location adds a location at an address of its own, with lines of functions.
func (m *Message) Location(functions ...int32) int32 {
	i := m.Dict.LocationTable().Len()
	l := m.Dict.LocationTable().AppendEmpty()
	l.SetAddress(uint64(i))
	for _, function := range functions {
		l.Lines().AppendEmpty().SetFunctionIndex(function)
	}
	return int32(i)
}

// Locations adds n locations without lines.
func (m *Message) Locations(n int) (list []int32) {
	for range n {
		list = append(list, m.Location())
	}
	return list
}

// Stack adds a stack.
func (m *Message) Stack(locations ...int32) int32 {
	m.Dict.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	return int32(m.Dict.StackTable().Len() - 1)
}

// Profile adds a profile of processor time, with a time of its own.
func (m *Message) Profile() pprofile.Profile {
	p := m.Type("cpu")
	p.SetTime(pcommon.Timestamp(uint64(Noon.UnixNano()) + uint64(m.Scope.Profiles().Len())))
	p.SampleType().SetUnitStrindex(m.Text("nanoseconds"))
	return p
}

// Type adds a profile of a sample type. All of them have the same time.
func (m *Message) Type(name string) pprofile.Profile {
	p := m.Scope.Profiles().AppendEmpty()
	p.SetTime(pcommon.NewTimestampFromTime(Noon))
	p.SetDurationNano(1e9)
	p.SampleType().SetTypeStrindex(m.Text(name))
	return p
}

// Sample adds a sample with the value 1.
func (m *Message) Sample(p pprofile.Profile, stack int32, attributes ...int32) pprofile.Sample {
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(stack)
	s.AttributeIndices().FromRaw(attributes)
	s.Values().Append(1)
	return s
}

// Observe replaces the value of a sample by n timestamps.
func Observe(s pprofile.Sample, n int) {
	s.Values().FromRaw(nil)
	for i := range uint64(n) {
		s.TimestampsUnixNano().Append(uint64(Noon.UnixNano()) + i)
	}
}

// Messages are functions that fill a message of about size bytes, by their names.
type Messages map[string]func(m *Message, size int)

// All returns all messages of a size, encoded, in the order of their names. Strings that attributes share are in the
// dictionary, once.
func (in Messages) All(size int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			m := NewMessage()
			in[name](m, size)
			wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(m.Profiles)
			if err != nil {
				panic(err)
			}
			if !yield(name, wire) {
				return
			}
		}
	}
}
