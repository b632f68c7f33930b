// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// field returns a message's field with content.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// nest repeats a message, within the messages of these numbers, outermost first.
func nest(piece []byte, within ...protowire.Number) func(int) []byte {
	return func(size int) []byte {
		data := bytes.Repeat(piece, max(1, size/len(piece)))
		for i := len(within) - 1; i >= 0; i-- {
			data = field(within[i], data)
		}
		return data
	}
}

// PushV1 are requests push.v1 of Pyroscope's clients, as protobuf.
var PushV1 = Inputs{
	"series":             nest(field(1, nil)),
	"samples of series":  nest(field(1, field(2, nil))),
	"labels of series":   nest(field(1, bytes.Repeat(field(1, nil), 512))),
	"samples":            nest(field(2, nil), 1),
	"pprofs of a sample": nest(field(1, nil), 1, 2),
}

// PushV1JSON are requests push.v1 as JSON.
var PushV1JSON = Inputs{
	"series":  same(`{"series":[`, "{},", "{}]}"),
	"nesting": same("", "[", ""),
}

// PushV1Of returns a request push.v1 of one pprof.
func PushV1Of(pprof []byte) []byte {
	label := join(field(1, []byte("service_name")), field(2, []byte("worst")))
	name := join(field(1, []byte("__name__")), field(2, []byte("process_cpu")))
	return field(1, join(field(1, label), field(1, name), field(2, field(1, pprof))))
}
