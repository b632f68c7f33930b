// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// valueText writes a value so that its type is visible: texts are quoted, a double has a point or an exponent, bytes
// are hex after 0x.
func valueText(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return strconv.Quote(v.Str())
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	case pcommon.ValueTypeDouble:
		s := strconv.FormatFloat(v.Double(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool())
	case pcommon.ValueTypeBytes:
		return "0x" + hex.EncodeToString(v.Bytes().AsRaw())
	case pcommon.ValueTypeSlice:
		texts := make([]string, 0, v.Slice().Len())
		for _, e := range v.Slice().All() {
			texts = append(texts, valueText(e))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case pcommon.ValueTypeMap:
		return mapText(v.Map())
	case pcommon.ValueTypeEmpty:
	}
	return "null"
}

func mapText(m pcommon.Map) string {
	texts := make([]string, 0, m.Len())
	for name, v := range m.All() {
		texts = append(texts, Word(name)+"="+valueText(v))
	}
	slices.Sort(texts)
	return "{" + strings.Join(texts, ", ") + "}"
}
