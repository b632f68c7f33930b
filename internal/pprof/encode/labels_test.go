// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func parsedNumber(n int64, unit string) map[string]any {
	return map[string]any{"value": n, "unit": unit}
}

// Each row of the table in Encode's documentation.
func TestEncodeAttributeForms(t *testing.T) {
	type labels struct {
		texts   []string
		numbers []int64
		units   []string
	}
	text := func(s ...string) labels { return labels{texts: s} }
	var deep any
	for range 2000 {
		deep = []any{deep}
	}
	for name, test := range map[string]struct {
		value any
		unit  string
		want  labels
	}{
		"string":            {"v", "", text("v")},
		"empty string":      {"", "", text("")},
		"int":               {int64(5), "", labels{numbers: []int64{5}}},
		"int with unit":     {int64(5), "bytes", labels{nil, []int64{5}, []string{"bytes"}}},
		"smallest int":      {int64(math.MinInt64), "", labels{numbers: []int64{math.MinInt64}}},
		"0":                 {int64(0), "", labels{nil, []int64{0}, []string{""}}},
		"0 with unit":       {int64(0), "bytes", labels{nil, []int64{0}, []string{"bytes"}}},
		"true":              {true, "", text("true")},
		"false":             {false, "", text("false")},
		"double":            {1.5, "", text("1.5")},
		"short double":      {0.1, "", text("0.1")},
		"whole double":      {2.0, "", text("2")},
		"large double":      {1e300, "", text("1e+300")},
		"no number":         {math.NaN(), "", text("NaN")},
		"infinity":          {math.Inf(1), "", text("+Inf")},
		"negative infinity": {math.Inf(-1), "", text("-Inf")},
		"bytes":             {[]byte{0xFF, 0}, "", text("/wA=")},
		"no bytes":          {[]byte{}, "", text("")},
		"none":              {nil, "", text("null")},
		"strings":           {[]any{"b", "a", ""}, "", text("b", "a", "")},
		"ints": {[]any{int64(2), int64(0), int64(-1)}, "",
			labels{nil, []int64{2, 0, -1}, []string{"", "", ""}}},
		"ints without 0":   {[]any{int64(2), int64(1)}, "", labels{nil, []int64{2, 1}, nil}},
		"ints with unit":   {[]any{int64(2), int64(0)}, "ms", labels{nil, []int64{2, 0}, []string{"ms", "ms"}}},
		"strings and ints": {[]any{"a", int64(1)}, "ms", labels{[]string{"a"}, []int64{1}, []string{"ms"}}},
		"numbers of many units": {[]any{parsedNumber(1, "s"), "x", parsedNumber(0, "")}, "",
			labels{[]string{"x"}, []int64{1, 0}, []string{"s", ""}}},
		"array with a bool":    {[]any{"a", true}, "", text(`["a",true]`)},
		"array of doubles":     {[]any{1.5, math.NaN()}, "", text(`[1.5,"NaN"]`)},
		"array of arrays":      {[]any{[]any{int64(1)}, []any{}}, "", text(`[[1],[]]`)},
		"array of other maps":  {[]any{map[string]any{"value": int64(1)}}, "", text(`[{"value":1}]`)},
		"array of wrong maps":  {[]any{map[string]any{"value": "1", "unit": "s"}}, "", labels{}},
		"array of larger maps": {[]any{map[string]any{"value": int64(1), "unit": "s", "more": int64(2)}}, "", labels{}},
		"deep array":           {deep, "", text(strings.Repeat("[", 1001) + "null" + strings.Repeat("]", 1001))},
		"array with none":      {[]any{nil, "a"}, "", text(`[null,"a"]`)},
		"array with bytes":     {[]any{[]byte{0xFF}}, "", text(`["/w=="]`)},
		"empty array":          {[]any{}, "", text("[]")},
		"map":                  {map[string]any{"a<b>\"": []any{int64(1), "é"}}, "", text(`{"a<b>\"":[1,"é"]}`)},
		"empty map":            {map[string]any{}, "", text("{}")},
		"map with unit":        {parsedNumber(1, "s"), "", labels{}},
	} {
		t.Run(name, func(t *testing.T) {
			attribute := profiletest.Attribute{Key: "k", Value: test.value, Unit: test.unit}
			p, _ := encodeOne(t, build(profiletest.Value(1, "a").With(attribute), profiletest.Value(2, "b").With(attribute)))
			require.Len(t, p.Sample, 2)
			for _, s := range p.Sample {
				if test.want.texts == nil && test.want.numbers == nil {
					// FromRaw adds a map's keys in any order.
					require.Len(t, s.Label["k"], 1)
					assert.Contains(t, s.Label["k"][0], `"unit":"s"`)
					assert.Empty(t, s.NumLabel)
					continue
				}
				assert.Equal(t, test.want.texts, s.Label["k"])
				assert.Equal(t, test.want.numbers, s.NumLabel["k"])
				if units := s.NumUnit["k"]; len(units) > 0 {
					assert.Equal(t, test.want.units, units)
				} else {
					assert.Empty(t, test.want.units)
				}
			}
		})
	}
}

func TestEncodeMapKeepsTheOrderOfItsKeys(t *testing.T) {
	v := pcommon.NewValueMap()
	v.Map().PutStr("z", "1")
	v.Map().PutBool("a", true)
	v.Map().PutEmpty("n")
	assert.Equal(t, `{"z":"1","a":true,"n":null}`, valueString(v))
}

func TestEncodeSeveralAttributes(t *testing.T) {
	a, b, none := profiletest.Attr("a", "1"), profiletest.Attr("", int64(2)), profiletest.Attribute{}
	p, _ := encodeOne(t, build(profiletest.Value(1, "x").With(a, b, none), profiletest.Value(1, "y").With(b)))
	assert.Equal(t, map[string][]string{"a": {"1"}}, p.Sample[0].Label)
	assert.Equal(t, map[string][]int64{"": {2}}, p.Sample[0].NumLabel)
	assert.Empty(t, p.Sample[1].Label)
	assert.Equal(t, map[string][]int64{"": {2}}, p.Sample[1].NumLabel)
}
