// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// Each key that is no longer there is answered with what to write instead.
func TestReplacedKeys(t *testing.T) {
	for _, old := range replaced {
		for _, key := range old.keys {
			conf := confmap.NewFromStringMap(map[string]any{})
			require.NoError(t, conf.Merge(confmap.NewFromStringMap(map[string]any{
				strings.Join([]string{old.kind, old.typ + "/name", key}, confmap.KeyDelimiter): 1,
			})))
			err := renamed{}.Convert(t.Context(), conf)
			assert.ErrorContains(t, err, old.instead, key)
			assert.ErrorContains(t, err, "`"+old.kind+"."+old.typ+"/name."+strings.ReplaceAll(key, "::", ".")+"`")
		}
	}
	for component, instead := range replacedTypes {
		kind, typ, _ := strings.Cut(component, "/")
		for _, section := range []any{nil, map[string]any{}, map[string]any{"a": 1, "b": 2}} {
			err := renamed{}.Convert(t.Context(), confmap.NewFromStringMap(map[string]any{kind: map[string]any{typ + "/name": section}}))
			assert.EqualError(t, err, "`"+kind+"."+typ+"/name`: "+instead, "once")
		}
	}
	require.NoError(t, renamed{}.Convert(t.Context(), confmap.NewFromStringMap(map[string]any{
		"receivers": map[string]any{"pprof": map[string]any{"limits": map[string]any{"max_profile_bytes": 1}}},
	})))
}
