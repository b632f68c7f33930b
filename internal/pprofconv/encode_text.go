// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// encText gives the string that stands for a value which pprof has no type for; Encode documents the forms.
// pcommon's own AsString is not used: it writes "" for null and loses arrays and maps that hold a NaN.
func encText(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	default:
		return string(encAppendJSON(nil, v, 0))
	}
}

// encMaxDepth is how deep values of JSON may be nested. Our stack would bear much more, but readers would not.
const encMaxDepth = 1000

func encAppendJSON(b []byte, v pcommon.Value, depth int) []byte {
	if depth > encMaxDepth {
		return append(b, "null"...)
	}
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(b, v.Bool())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		if math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0) {
			return encAppendJSONString(b, encText(v))
		}
		return strconv.AppendFloat(b, v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes:
		return encAppendJSONString(b, encText(v))
	case pcommon.ValueTypeSlice:
		b = append(b, '[')
		for k, element := range v.Slice().All() {
			if k > 0 {
				b = append(b, ',')
			}
			b = encAppendJSON(b, element, depth+1)
		}
		return append(b, ']')
	case pcommon.ValueTypeMap:
		b = append(b, '{')
		first := true
		for key, element := range v.Map().All() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(encAppendJSONString(b, key), ':')
			b = encAppendJSON(b, element, depth+1)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

func encAppendJSONString(b []byte, s string) []byte {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false) // labels are read by people: std::vector<int>, not std::vector\u003cint\u003e
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
