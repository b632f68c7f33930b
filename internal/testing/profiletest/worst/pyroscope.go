// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field returns a message's field with content.
func Field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// Nest repeats a message, within the messages of these numbers, outermost first.
func Nest(piece []byte, within ...protowire.Number) func(int) []byte {
	return func(size int) []byte {
		data := bytes.Repeat(piece, max(1, size/len(piece)))
		for i := len(within) - 1; i >= 0; i-- {
			data = Field(within[i], data)
		}
		return data
	}
}

// PushV1 are requests push.v1 of Pyroscope's clients, as protobuf.
var PushV1 = Inputs{
	"series":             Nest(Field(1, nil)),
	"samples of series":  Nest(Field(1, Field(2, nil))),
	"labels of series":   Nest(Field(1, bytes.Repeat(Field(1, nil), 512))),
	"samples":            Nest(Field(2, nil), 1),
	"pprofs of a sample": Nest(Field(1, nil), 1, 2),
}

// PushV1JSON are requests push.v1 as JSON.
var PushV1JSON = Inputs{
	"series":  same(`{"series":[`, "{},", "{}]}"),
	"nesting": same("", "[", ""),
}

// PushV1Of returns a request push.v1 of one pprof.
func PushV1Of(pprof []byte) []byte {
	label := join(Field(1, []byte("service_name")), Field(2, []byte("worst")))
	name := join(Field(1, []byte("__name__")), Field(2, []byte("process_cpu")))
	return Field(1, join(Field(1, label), Field(1, name), Field(2, Field(1, pprof))))
}
