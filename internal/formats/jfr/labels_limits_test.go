// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// Values are cut between characters, and what is cut or left out is counted.
func TestLabelsBeyondLimits(t *testing.T) {
	entry := func(field protowire.Number, key uint64, value []byte) []byte {
		content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
		content = protowire.AppendBytes(protowire.AppendTag(content, 2, protowire.BytesType), value)
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
	}
	label := func(key uint64) []byte {
		content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
		content = protowire.AppendVarint(protowire.AppendTag(content, 2, protowire.VarintType), 1)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), content)
	}
	var context []byte
	for i := range uint64(maxLabels + 3) {
		context = append(context, label(i)...)
	}
	data := append(entry(1, 9, context), entry(2, 1, []byte("x"+strings.Repeat("ü", maxLabelBytes)))...)
	l, err := parseLabels(data)
	require.NoError(t, err)
	require.Len(t, l.contexts[9], maxLabels)
	require.Equal(t, 3, l.leftOut)
	require.Equal(t, 1, l.truncated)
	require.True(t, utf8.ValidString(l.strings[1]))
	require.Len(t, l.strings[1], maxLabelBytes-1)
}
