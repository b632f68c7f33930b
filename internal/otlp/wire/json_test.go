// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJSON(t *testing.T) {
	read := func(text string) (found []string, err error) {
		j := JSON{Decoder: json.NewDecoder(strings.NewReader(text))}
		return found, j.Object(func(key string) error {
			if key != "list" {
				return j.Skip()
			}
			return j.Array(func() error {
				var element string
				err := j.Decode(&element)
				found = append(found, element)
				return err
			})
		})
	}
	found, err := read(`{"a": [{"list": [1]}, null], "b": null, "c": "x", "list": ["d", "e"], "f": 1}`)
	require.NoError(t, err)
	assert.Equal(t, []string{"d", "e"}, found)
	_, err = read(`{"list": null}`)
	require.ErrorIs(t, err, ErrNull)
	require.NoError(t, NewJSON([]byte(`{"a": null}`)).Fields(map[string]any{"a": Each(func() error { return ErrNull })}))
	for text, want := range map[string]string{`[]`: "must be an object, found [",
		`{"list": "d"}`: "must be a list, found d", `{"list": ["d"`: "EOF", `{"a": {`: "EOF"} {
		_, err = read(text)
		assert.ErrorContains(t, err, want, text)
	}
}
