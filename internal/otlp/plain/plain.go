// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package plain writes messages of profiles for readers that do not know references to strings.
//
// pdata writes strings in attributes of resources and scopes as indices into the string table (key_strindex,
// string_value_strindex), and has no option to leave that. Rewrite copies a marshalled message with the strings in
// their place.
package plain

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// A string in the table can be referred to any number of times. The strings that a message gets are at most as large as
// maxGrowth times the message, plus minRoom.
const (
	maxGrowth = 32
	minRoom   = 4 << 20
)

// maxDepth bounds how deep values are nested; no reader of protobuf accepts as much.
const maxDepth = 100

// rewriter copies messages, with references resolved.
type rewriter struct {
	strings []string
	// room is how many bytes of strings may still be added.
	room int
}

// Rewrite returns the message without references in attributes of resources and scopes. Its string table stays as it
// is. An error means that the message is malformed, or that its strings are too large.
func Rewrite(data []byte) ([]byte, error) {
	r := rewriter{room: maxGrowth*len(data) + minRoom}
	for tables := range wire.Messages(data, messages.Profiles.Numbers["dictionary"]) {
		for s := range wire.Messages(tables, messages.Dictionary.Numbers["string_table"]) {
			r.strings = append(r.strings, string(s))
		}
	}
	return r.append(make([]byte, 0, len(data)), data, messages.Profiles, maxDepth)
}

// mayRefer reports whether a message can have references to strings: pdata writes none in profiles and their tables.
func mayRefer(m *messages.Message) bool {
	return m != nil && m != messages.Profile && m != messages.Dictionary
}

func (r *rewriter) append(out, data []byte, m *messages.Message, depth int) (_ []byte, err error) {
	if depth == 0 {
		return nil, fmt.Errorf("messages are nested more than %d deep", maxDepth)
	}
	fields := wire.New(data)
	for begin := 0; fields.Next(); begin = len(data) - len(fields.Rest()) {
		known := m.Field(fields.Number, fields.Wire)
		switch {
		case known != nil && mayRefer(known.Message):
			const lengthBytes = 5 // enough for any message in memory; the bytes that are not needed are cut out below
			out = protowire.AppendTag(out, fields.Number, protowire.BytesType)
			at := len(out)
			out = append(out, make([]byte, lengthBytes)...)
			if out, err = r.append(out, fields.Content, known.Message, depth-1); err != nil {
				return nil, err
			}
			length := protowire.AppendVarint(nil, uint64(len(out)-at-lengthBytes))
			out = slices.Replace(out, at, at+lengthBytes, length...)
		case known != nil && known.Kind == messages.Strindex && (fields.Value != 0 || m == messages.AnyValue):
			if fields.Value >= uint64(len(r.strings)) {
				return nil, fmt.Errorf("string reference %d is out of range [0..%d)", fields.Value, len(r.strings))
			}
			value := r.strings[fields.Value]
			if r.room -= len(value); r.room < 0 {
				return nil, fmt.Errorf("the strings of attributes are more than %d times as large as the message", maxGrowth)
			}
			out = protowire.AppendString(protowire.AppendTag(out, 1, protowire.BytesType), value)
		default:
			out = append(out, data[begin:len(data)-len(fields.Rest())]...)
		}
	}
	if fields.IsMalformed() {
		return nil, fmt.Errorf("malformed message: the last %d of %d bytes cannot be read", len(fields.Rest()), len(data))
	}
	return out, nil
}
