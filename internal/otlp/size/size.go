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
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
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

// stringBytes is the memory of a string in a list, without its bytes.
const stringBytes = 16

// Logs checks an ExportLogsServiceRequest or a LogsData.
func Logs(data []byte) (memoryBytes int, err error) { return check(data, messages.Logs, false) }

// Profiles checks an ExportProfilesServiceRequest or a ProfilesData. Its estimate is rough, which takes less time: only
// a message that may take too much is looked at closely.
func Profiles(data []byte) (memoryBytes int, err error) {
	memoryBytes, err = check(data, messages.Profiles, true)
	if errors.Is(err, ErrExpands) {
		return check(data, messages.Profiles, false)
	}
	return memoryBytes, err
}

func check(data []byte, is *messages.Message, isRough bool) (memoryBytes int, err error) {
	c := checker{memory: len(data), limit: constantBytes + factor*len(data), isRough: isRough}
	err = c.message(data, is, 0)
	return c.memory, err
}

// OfProfiles estimates the memory of profiles that were unmarshalled.
func OfProfiles(pd pprofile.Profiles) (memoryBytes int) {
	const indexBytes = 4
	d := pd.Dictionary()
	n := messages.Mapping.StructBytes*d.MappingTable().Len() + messages.Function.StructBytes*d.FunctionTable().Len() +
		messages.Link.StructBytes*d.LinkTable().Len() + messages.Stack.StructBytes*d.StackTable().Len()
	for _, a := range d.AttributeTable().All() {
		n += messages.Attribute.StructBytes + OfValue(a.Value())
	}
	for _, s := range d.StringTable().All() {
		n += stringBytes + len(s)
	}
	for _, l := range d.LocationTable().All() {
		n += messages.Location.StructBytes + messages.Line.StructBytes*l.Lines().Len() + indexBytes*l.AttributeIndices().Len()
	}
	for _, s := range d.StackTable().All() {
		n += indexBytes * s.LocationIndices().Len()
	}
	for _, rp := range pd.ResourceProfiles().All() {
		n += messages.ResourceBytes + OfMap(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			n += messages.ScopeBytes + OfMap(sp.Scope().Attributes())
		}
	}
	for p := range otlp.Profiles(pd) {
		n += messages.Profile.StructBytes + indexBytes*p.AttributeIndices().Len() + p.OriginalPayload().Len()
		for _, s := range p.Samples().All() {
			n += SampleBytes + indexBytes*s.AttributeIndices().Len() +
				NumberBytes*(s.Values().Len()+s.TimestampsUnixNano().Len())
		}
	}
	return n
}

// OfMap estimates the memory of attributes.
func OfMap(m pcommon.Map) (memoryBytes int) {
	for key, value := range m.All() {
		memoryBytes += messages.KeyValue.StructBytes + len(key) + OfValue(value)
	}
	return memoryBytes
}

// OfValue estimates the memory of a value. A string that several values share counts for each.
func OfValue(v pcommon.Value) (memoryBytes int) {
	memoryBytes = messages.AnyValue.StructBytes
	switch v.Type() {
	case pcommon.ValueTypeStr:
		memoryBytes += len(v.Str())
	case pcommon.ValueTypeBytes:
		memoryBytes += v.Bytes().Len()
	case pcommon.ValueTypeMap:
		memoryBytes += OfMap(v.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			memoryBytes += OfValue(element)
		}
	default:
	}
	return memoryBytes
}

type checker struct {
	memory, limit int
	// isRough estimates locations by Message.PerByte, too, which is far above what most of them take.
	isRough bool
}

func (c *checker) add(n int) error {
	if c.memory += n; c.memory > c.limit {
		return ErrExpands
	}
	return nil
}

func (c *checker) message(data []byte, is *messages.Message, depth int) error {
	if depth == maxNesting {
		return ErrTooNested
	}
	if err := c.add(is.StructBytes); err != nil {
		return err
	}
	r := wire.New(data)
	for r.Next() {
		if r.Wire != protowire.BytesType || int(r.Number) >= len(is.Fields) {
			continue
		}
		var err error
		switch field := &is.Fields[r.Number]; {
		case field.Kind == messages.Strings:
			err = c.add(stringBytes)
		case field.Message == nil:
		case field.Message.PerByte >= 0 && (c.isRough || field.Message != messages.Location):
			// Unmarshalling sees whether it is well formed.
			err = c.add(field.Message.StructBytes + field.Message.PerByte*len(r.Content))
		default:
			err = c.message(r.Content, field.Message, depth+1)
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
