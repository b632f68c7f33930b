// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package messages describes the messages of OTLP: the numbers, names and types of their fields, and what they take in
// memory as pdata. Profiles are there in every layout (old.go), logs only as far as their memory needs it.
package messages

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Kind is the type of a field, as far as reading it needs.
type Kind uint8

// The types of fields.
const (
	Varint   Kind = iota // integers, bools and enums
	Fixed64              // fixed64
	Double               // double
	String               // string
	Strings              // repeated string
	Bytes                // bytes: base64 in JSON
	ID                   // bytes that JSON writes in hexadecimal
	Nested               // a message, repeated or not
	Varints              // repeated integers, packed or not
	Fixed64s             // repeated fixed64, packed or not
	Strindex             // the index of a string, in place of that in field 1
)

// Allows reports whether a field of this kind can have a wire type: lists of numbers can be packed or not.
func (k Kind) Allows(t protowire.Type) bool {
	return t == k.Usual() || t == protowire.VarintType && k == Varints || t == protowire.Fixed64Type && k == Fixed64s
}

// Usual returns the wire type that encoders use for a field of this kind: lists of numbers are packed.
func (k Kind) Usual() protowire.Type {
	switch k {
	case Varint, Strindex:
		return protowire.VarintType
	case Fixed64, Double:
		return protowire.Fixed64Type
	default:
		return protowire.BytesType
	}
}

// Field is one field of a message: its name in the .proto file, its type, and its message if it has one.
type Field struct {
	Name    string
	Kind    Kind
	Message *Message
}

// MaxFields is larger than any field's number.
const MaxFields = 24

// Message lists a message's fields by number.
type Message struct {
	Fields [MaxFields]Field
	// Numbers has the number of each field by its name, as in the .proto file and as in JSON.
	Numbers map[string]protowire.Number
	// StructBytes is the memory of the struct and a pointer to it, as pdata. PerByte bounds that of the content for each
	// of its bytes; it is negative if that is no useful bound.
	StructBytes, PerByte int
}

// Field returns the field with this number, or nil if it is unknown or has another wire type.
func (m *Message) Field(number protowire.Number, t protowire.Type) *Field {
	if number <= 0 || int(number) >= len(m.Fields) || m.Fields[number].Name == "" || !m.Fields[number].Kind.Allows(t) {
		return nil
	}
	return &m.Fields[number]
}

// Each calls visit for each known field of a message. It reports whether the message was read to its end.
func (m *Message) Each(data []byte, visit func(known *Field, r *wire.Reader)) bool {
	r := wire.New(data)
	for r.Next() {
		if known := m.Field(r.Number, r.Wire); known != nil {
			visit(known, &r)
		}
	}
	return !r.IsMalformed()
}

type fields map[protowire.Number]Field

func newMessage(fields fields) *Message { return new(Message).set(fields) }

func (m *Message) set(fields fields) *Message {
	m.Numbers = make(map[string]protowire.Number, 2*len(fields))
	for number, f := range fields {
		m.Fields[number], m.Numbers[f.Name], m.Numbers[camelCase(f.Name)] = f, number, number
	}
	return m
}

func (m *Message) takes(structBytes, perByte int) *Message {
	m.StructBytes, m.PerByte = structBytes, perByte
	return m
}

// camelCase returns the name of a field in JSON.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

func varint(name string) Field                   { return Field{name, Varint, nil} }
func varints(name string) Field                  { return Field{name, Varints, nil} }
func fixed64(name string) Field                  { return Field{name, Fixed64, nil} }
func fixed64s(name string) Field                 { return Field{name, Fixed64s, nil} }
func str(name string) Field                      { return Field{name, String, nil} }
func strs(name string) Field                     { return Field{name, Strings, nil} }
func rawBytes(name string) Field                 { return Field{name, Bytes, nil} }
func hexID(name string) Field                    { return Field{name, ID, nil} }
func nested(name string, message *Message) Field { return Field{name, Nested, message} }
