// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package size checks messages before they are unmarshalled to pdata: how much memory they would take, since a
// message of two bytes becomes more than a hundred, and how deep they are nested, since unmarshalling recurses as deep.
//
// OfProfiles estimates the memory of profiles that are pdata already.
//
// Logs and Profiles read protobuf, JSON any JSON text. Each returns an estimate of the memory, and an error if it is
// above constantBytes + factor × the message's length, which messages that carry data do not reach.
package size

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

const (
	constantBytes = 1 << 20
	factor        = 32
	// maxNesting bounds how deep messages may be nested.
	maxNesting = 200
)

// Kinds of faults, for errors.Is.
var (
	ErrTooNested = fmt.Errorf("the message is nested more than %d deep", maxNesting)
	ErrExpands   = errors.New("the message is mostly empty messages")
	ErrMalformed = errors.New("not a message of protobuf")
)

// message describes a message of opentelemetry-proto.
type message struct {
	// size is the memory of the struct and a pointer to it.
	size int
	// perByte bounds the memory of the message's content for each of its bytes, if that is a useful bound.
	perByte int
	// fields are those that are messages, or strings of a list, by their numbers.
	fields [8]*message
}

// The messages of opentelemetry-proto that logs and profiles are made of.
var (
	listString = &message{size: 16}
	leaf       = &message{size: 48}
	anyValue   = &message{size: 40}
	keyValue   = &message{size: 64, fields: [8]*message{2: anyValue}}
	resource   = &message{size: 64, fields: [8]*message{
		1: keyValue, 3: {size: 80, fields: [8]*message{3: listString, 4: listString}},
	}}
	scope = &message{size: 64, fields: [8]*message{3: keyValue}}

	sample     = &message{size: SampleBytes}
	profile    = &message{size: 320, fields: [8]*message{1: leaf, 2: sample, 5: leaf}}
	location   = &message{size: 96, perByte: 24, fields: [8]*message{3: leaf}}
	mapping    = &message{size: 96}
	stack      = &message{size: 40}
	attribute  = &message{size: 48, fields: [8]*message{2: anyValue}}
	dictionary = &message{fields: [8]*message{1: mapping, 2: location, 3: leaf, 4: leaf, 5: listString, 6: attribute,
		7: stack}}
	profilesData = &message{fields: [8]*message{1: inResource(inScope(profile)), 2: dictionary}}

	logRecord = &message{size: 208, fields: [8]*message{5: anyValue, 6: keyValue}}
	logsData  = &message{fields: [8]*message{1: inResource(inScope(logRecord))}}
)

// The memory of a resource and a scope, with what is in them once.
const (
	resourceBytes = 192
	scopeBytes    = 160
)

func inResource(content *message) *message {
	return &message{size: resourceBytes, fields: [8]*message{1: resource, 2: content}}
}

func inScope(content *message) *message {
	return &message{size: scopeBytes, fields: [8]*message{1: scope, 2: content}}
}

func init() {
	anyValue.fields = [8]*message{5: {size: 24, fields: [8]*message{1: anyValue}},
		6: {size: 24, fields: [8]*message{1: keyValue}}}
}

// Logs checks an ExportLogsServiceRequest or a LogsData.
func Logs(data []byte) (memoryBytes int, err error) { return check(data, logsData, false) }

// Profiles checks an ExportProfilesServiceRequest or a ProfilesData.
func Profiles(data []byte) (memoryBytes int, err error) { return check(data, profilesData, false) }

// CheckProfiles is Profiles in less time: its estimate is rougher, and only a message that may take too much is looked
// at closely.
func CheckProfiles(data []byte) (memoryBytes int, err error) {
	memoryBytes, err = check(data, profilesData, true)
	if errors.Is(err, ErrExpands) {
		return Profiles(data)
	}
	return memoryBytes, err
}

func check(data []byte, is *message, isRough bool) (memoryBytes int, err error) {
	c := checker{memory: len(data), limit: constantBytes + factor*len(data), isRough: isRough}
	err = c.message(data, is, 0)
	return c.memory, err
}

// OfProfiles estimates the memory of profiles that were unmarshalled.
func OfProfiles(pd pprofile.Profiles) (memoryBytes int) {
	const indexBytes = 4
	d := pd.Dictionary()
	n := mapping.size*d.MappingTable().Len() + leaf.size*(d.FunctionTable().Len()+d.LinkTable().Len()) +
		stack.size*d.StackTable().Len()
	for _, a := range d.AttributeTable().All() {
		n += attribute.size + ofValue(a.Value())
	}
	for _, s := range d.StringTable().All() {
		n += listString.size + len(s)
	}
	for _, l := range d.LocationTable().All() {
		n += location.size + leaf.size*l.Lines().Len() + indexBytes*l.AttributeIndices().Len()
	}
	for _, s := range d.StackTable().All() {
		n += indexBytes * s.LocationIndices().Len()
	}
	for _, rp := range pd.ResourceProfiles().All() {
		n += resourceBytes + ofMap(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			n += scopeBytes + ofMap(sp.Scope().Attributes())
		}
	}
	for p := range otlp.Profiles(pd) {
		n += profile.size + indexBytes*p.AttributeIndices().Len() + p.OriginalPayload().Len()
		for _, s := range p.Samples().All() {
			n += SampleBytes + indexBytes*s.AttributeIndices().Len() +
				NumberBytes*(s.Values().Len()+s.TimestampsUnixNano().Len())
		}
	}
	return n
}

func ofMap(m pcommon.Map) (memoryBytes int) {
	for key, value := range m.All() {
		memoryBytes += keyValue.size + len(key) + ofValue(value)
	}
	return memoryBytes
}

func ofValue(v pcommon.Value) (memoryBytes int) {
	memoryBytes = anyValue.size
	switch v.Type() {
	case pcommon.ValueTypeStr:
		memoryBytes += len(v.Str())
	case pcommon.ValueTypeBytes:
		memoryBytes += v.Bytes().Len()
	case pcommon.ValueTypeMap:
		memoryBytes += ofMap(v.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			memoryBytes += ofValue(element)
		}
	default:
	}
	return memoryBytes
}

type checker struct {
	memory, limit int
	// isRough estimates the content of a message by message.perByte.
	isRough bool
}

func (c *checker) add(n int) error {
	if c.memory += n; c.memory > c.limit {
		return ErrExpands
	}
	return nil
}

func (c *checker) message(data []byte, is *message, depth int) error {
	if depth == maxNesting {
		return ErrTooNested
	}
	if err := c.add(is.size); err != nil {
		return err
	}
	r := wire.New(data)
	for r.Next() {
		if r.Wire != protowire.BytesType || int(r.Number) >= len(is.fields) || is.fields[r.Number] == nil {
			continue
		}
		var err error
		switch field := is.fields[r.Number]; {
		case field == listString || field == leaf:
			err = c.add(field.size)
		case c.isRough && field.perByte > 0:
			err = c.add(field.size + field.perByte*len(r.Content))
		case field == sample || field == stack || field == mapping:
			// These are mostly lists of numbers, where a byte becomes eight. Unmarshalling sees whether they are well
			// formed.
			err = c.add(field.size + 8*len(r.Content))
		default:
			err = c.message(r.Content, field, depth+1)
		}
		if err != nil {
			return err
		}
	}
	if r.IsMalformed() {
		return ErrMalformed
	}
	return nil
}

// JSONCosts are the bytes of memory that a reader of JSON takes for each byte of the text, for each object or array,
// for each field of an object inside of another object, and for each further member of an object or array.
type JSONCosts struct{ Byte, Container, Field, Element int }

// otlpJSON is for pdata, which reads messages without anything in between.
var otlpJSON = JSONCosts{Byte: 1, Container: 224, Element: 40}

// JSON checks a message of OTLP as JSON. It does not check whether the text is valid.
func JSON(text []byte) (memoryBytes int, err error) { return otlpJSON.Of(text) }

// Of checks a JSON text, and returns the memory that a reader with these costs takes. It does not check whether the
// text is valid.
func (costs JSONCosts) Of(text []byte) (memoryBytes int, err error) {
	c := checker{memory: costs.Byte * len(text), limit: constantBytes + factor*len(text)}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxNesting {
				return c.memory, ErrTooNested
			}
			err = c.add(costs.Container)
		case '}', ']':
			depth--
		case ':':
			if depth > 1 {
				err = c.add(costs.Field)
			}
		case ',':
			err = c.add(costs.Element)
		}
		if err != nil {
			return c.memory, err
		}
	}
	return c.memory, nil
}
