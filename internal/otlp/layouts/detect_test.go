// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetect(t *testing.T) {
	attributes := []any{2, fieldsOf{6, fieldsOf{}, 6, fieldsOf{1, 1}, 6, fieldsOf{1, 2}}}
	for name, tt := range map[string]struct {
		data    []byte
		want    Layout
		certain bool
	}{
		"nothing":               {nil, V1_10, true},
		"values in field 4":     {request(fieldsOf{2, fieldsOf{1, 1, 4, []int{5}}}), V1_10, true},
		"attributes and values": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{1}, 4, []int{5}}}), V1_10, true},
		"a link in field 3": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{1}, 3, 1, 5, []uint64{9}}}), V1_10,
			true},
		"values in field 2":     {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}}}), V1_9, true},
		"values and attributes": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}, 3, []int{1}}}), V1_9, true},
		"a link in field 4":     {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}, 4, 1}}), V1_9, true},
		"a profile id in field 8": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}}, 8, "0123456789abcdef"}), V1_8,
			true},
		"an empty profile id": {request(fieldsOf{7, "", 2, fieldsOf{1, 1, 4, []int{5}}}), V1_10, true},
		"comments":            {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}}, 7, []int{1}}), V1_8, true},
		"a temporality": {
			request(fieldsOf{1, fieldsOf{1, 1, 3, 1}, 2, fieldsOf{1, 1, 2, []int{5}}, 3, uint64(9)}), V1_8, true},
		"values outside of attributes": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{5}, 5, []uint64{9}}}, attributes...),
			V1_9, true},
		"fewer than timestamps": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{1}, 5, []uint64{9, 10}}},
			attributes...), V1_10, true},
		"values or attributes": {request(fieldsOf{2, fieldsOf{1, 1, 2, []int{1}, 5, []uint64{9}}}, attributes...),
			V1_10, false},
		"timestamps alone": {request(fieldsOf{2, fieldsOf{1, 1, 5, []uint64{9}}}, attributes...), V1_10, true},
		"a range of locations": {
			request(fieldsOf{2, fieldsOf{1, 0, 2, 1, 3, []int{5}}, 4, fieldsOf{2, 16}, 11, 1000}), V1_4, true},
		"a range and a dictionary": {request(fieldsOf{2, fieldsOf{1, 0, 2, 1, 3, []int{5}}, 4, 1000}, 2,
			fieldsOf{5, ""}), V1_7, true},
		"a range, and no stack table": {request(fieldsOf{2, fieldsOf{1, 0, 2, 1, 3, 5}, 4, 1000, 10, "0123456789abcdef"}, 2,
			fieldsOf{2, fieldsOf{2, 16}}), V1_7, true},
		"a range and tables": {request(fieldsOf{2, fieldsOf{1, 0, 2, 1, 3, []int{5}}, 4, 1000}, 6, "", 6, "main"),
			V1_6, true},
		"a container": {
			request(fieldsOf{2, uint64(1), 3, uint64(2), 8, fieldsOf{2, fieldsOf{2, []int{5}}}}), V1_3, true},
		"a container without its times": {request(fieldsOf{8, fieldsOf{2, fieldsOf{2, []int{5}}, 6, "main"}}), V1_3, true},
		"not protobuf":                  {[]byte("\xff\xff\xff"), V1_10, true},
	} {
		t.Run(name, func(t *testing.T) {
			layout, certain := Detect(tt.data)
			require.Equal(t, tt.want.String(), layout.String())
			require.Equal(t, tt.certain, certain)
		})
	}
}
