// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// The errors are those of the Collector's own decoder.
func TestDurations(t *testing.T) {
	for value, want := range map[string]string{
		"14d":     "`store.storage.retention`: \"14d\" is not a duration: the units are h, m, s and ms, as in 336h",
		"2 weeks": "`store.storage.retention`: \"2 weeks\" is not a duration: the units are h, m, s and ms, as in 336h",
		"300":     "`store.storage.retention`: \"300\" is not a duration: the units are h, m, s and ms, as in 1h30m",
		"soon":    "`store.storage.retention`: \"soon\" is not a duration: the units are h, m, s and ms, as in 1h30m",
	} {
		conf := confmap.NewFromStringMap(map[string]any{"store": map[string]any{"storage": map[string]any{"retention": value},
			"other": "14d"}})
		d := &Durations{}
		require.Empty(t, d.Explain("'storage.retention' time: unknown unit"), "nothing is loaded")
		require.NoError(t, d.Factory().Create(confmap.ConverterSettings{}).Convert(t.Context(), conf))
		var into struct {
			Store struct {
				Storage struct {
					Retention time.Duration `mapstructure:"retention"`
				} `mapstructure:"storage"`
				Other string `mapstructure:"other"`
			} `mapstructure:"store"`
		}
		err := conf.Unmarshal(&into)
		require.Error(t, err)
		assert.Equal(t, []string{want}, d.Explain(err.Error()), err.Error())
	}
}
