// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResourceAttributes(t *testing.T) {
	for s, want := range map[string][]Attribute{
		"":                        nil,
		" ":                       nil,
		"a=b":                     {{"a", "b"}},
		" a = b%20c , d=e,":       {{"a", "b c"}, {"d", "e"}},
		"service.version=1.2.0+5": {{"service.version", "1.2.0+5"}},
		"a=%2B%2C%3D,a%2Cb=c=d":   {{"a", "+,="}, {"a,b", "c=d"}},
		"a=":                      {{"a", ""}},
	} {
		var got []Attribute
		for a, err := range ResourceAttributes(s) {
			assert.NoError(t, err, s)
			got = append(got, a)
		}
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"a", "=b", " =b", "a=%", "a=%zz", "%=b", ",a"} {
		for _, err := range ResourceAttributes(s) {
			assert.Error(t, err, s)
			break
		}
	}
	assert.Equal(t, []Attribute{{"c", "d"}}, Wellformed("broken,a=%,c=d"), "a malformed pair does not end the list")
}
