// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// unlisted are the profiler's keys that have no effect in this receiver, or whose defaults a table cannot show.
var unlisted = []string{",squash", "-", "interpreters", "max_grpc_retries", "max_rpc_msg_size", "error_mode"}

// TestReadmeDefaults compares the README's table with all keys and their defaults.
func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | meaning |")
	delete(rows, "key")
	cfg := reflect.ValueOf(createDefaultConfig().(*Config)).Elem()
	for _, section := range []reflect.Value{cfg.FieldByName("Profiler"), cfg} {
		for field, value := range section.Fields() {
			key := field.Tag.Get("mapstructure")
			if slices.Contains(unlisted, key) {
				continue
			}
			want := fmt.Sprint(value.Interface())
			if value.IsZero() && (value.Kind() == reflect.String || value.Kind() == reflect.Slice) {
				want = "none"
			}
			require.Contains(t, rows, key)
			assert.Equal(t, want, durationAsPrinted(rows[key][2]), key)
			delete(rows, key)
		}
	}
	assert.Empty(t, rows)
}

// durationAsPrinted returns a duration as Go prints it: 1m0s for 1m.
func durationAsPrinted(text string) string {
	switch text {
	case "1m", "3m", "5m":
		return text + "0s"
	}
	return text
}

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	var names []string
	for _, r := range reasons {
		names = append(names, string(r))
	}
	assert.Equal(t, names, profiletest.LoadMetadata(t).Attributes["reason"].Enum)
}
