// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestReader(t *testing.T) {
	message := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	message = protowire.AppendBytes(protowire.AppendTag(message, 2, protowire.BytesType), []byte("text"))
	message = protowire.AppendFixed64(protowire.AppendTag(message, 3, protowire.Fixed64Type), 9)
	message = protowire.AppendFixed32(protowire.AppendTag(message, 4, protowire.Fixed32Type), 9)
	read := func(message []byte) (fields []Reader, isMalformed bool) {
		r := New(message)
		for r.Next() {
			fields = append(fields, Reader{Number: r.Number, Wire: r.Wire, Content: r.Content, Value: r.Value})
		}
		return fields, r.IsMalformed()
	}
	fields, isMalformed := read(message)
	assert.False(t, isMalformed)
	assert.Equal(t, []Reader{
		{Number: 1, Wire: protowire.VarintType, Value: 7},
		{Number: 2, Wire: protowire.BytesType, Content: []byte("text")},
		{Number: 3, Wire: protowire.Fixed64Type, Value: 9},
		{Number: 4, Wire: protowire.Fixed32Type},
	}, fields)
	assert.Equal(t, [][]byte{[]byte("text")}, slices.Collect(Messages(message, 2)))
	for n := range message {
		cut, isMalformed := read(message[:n])
		assert.Equal(t, fields[:len(cut)], append([]Reader{}, cut...), n)
		assert.Equal(t, isMalformed, !slices.Contains([]int{0, 2, 8, 17}, n), n)
	}
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 300), 5)
	assert.Equal(t, []uint64{300, 5}, slices.Collect(Varints(packed)))
	assert.Equal(t, []uint64{300}, slices.Collect(Varints(append(packed[:2:2], 0x80))))
	_, isMalformed = read(protowire.AppendTag(nil, 5, protowire.StartGroupType))
	assert.True(t, isMalformed, "a group")
}

// Appending to a field's content must not overwrite the field after it.
func TestContentIsClipped(t *testing.T) {
	for _, size := range []int{1, 127, 128, 70_000} {
		content := make([]byte, size)
		message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), content)
		r := New(protowire.AppendVarint(protowire.AppendTag(message, 2, protowire.VarintType), 7))
		require.True(t, r.Next())
		require.Equal(t, size, cap(r.Content))
	}
}
