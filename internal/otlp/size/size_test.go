// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package size_test

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// requireBounded expects that messages that pass the check take no more memory than the package promises.
func requireBounded(t *testing.T, data []byte, check func([]byte) (int, error), unmarshal func([]byte) any) {
	t.Helper()
	var keep any
	profiletest.RequireCost(t, profiletest.BoundOf(len(data), 4<<20, size.Factor), func() {
		if _, err := check(data); err == nil {
			keep = unmarshal(data)
		}
	})
	_ = keep
}

func unmarshalLogs(data []byte) any {
	ld, _ := new(plog.ProtoUnmarshaler).UnmarshalLogs(data)
	return ld
}

func unmarshalProfiles(data []byte) any {
	pd, _ := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(data)
	return pd
}

func unmarshalJSON(data []byte) any {
	ld, _ := new(plog.JSONUnmarshaler).UnmarshalLogs(data)
	return ld
}

func TestMessagesAreBounded(t *testing.T) {
	const bytes = 1 << 20
	for _, data := range worst.Logs.All(bytes) {
		requireBounded(t, data, size.Logs, unmarshalLogs)
	}
	for _, data := range worst.OTLP.All(bytes) {
		requireBounded(t, data, size.Profiles, unmarshalProfiles)
	}
	for _, text := range worst.LogsJSON.All(bytes) {
		requireBounded(t, text, size.JSON, unmarshalJSON)
	}
	_, err := size.Logs(worst.Logs["nested, deeper"](bytes))
	assert.ErrorIs(t, err, size.ErrTooNested)
	_, err = size.Logs(worst.Logs["records"](bytes))
	assert.ErrorIs(t, err, size.ErrExpands)
	_, err = size.Logs([]byte{0x0b})
	assert.ErrorIs(t, err, size.ErrMalformed)
	_, err = size.JSON([]byte(strings.Repeat("[", size.MaxNesting+1)))
	assert.ErrorIs(t, err, size.ErrTooNested)
	_, err = size.JSON([]byte(`"` + strings.Repeat(`[\"`, 1000) + `"`))
	assert.NoError(t, err)
}

// What OfProfiles returns is about what the heap holds, whatever a message is made of.
func TestOfProfiles(t *testing.T) {
	text := worst.Field(2, worst.Field(1, []byte("some text")))
	for name, message := range map[string]func(int) []byte{
		"samples":             worst.Nest(worst.Field(2, []byte{8, 1, 0x22, 1, 1}), 1, 2, 2),
		"values":              worst.Nest([]byte{1}, 1, 2, 2, 2, 4),
		"attribute indices":   worst.Nest([]byte{1}, 1, 2, 2, 2, 2),
		"stacks":              worst.Nest(worst.Field(7, worst.Field(1, []byte{1})), 2),
		"stack":               worst.Nest([]byte{1}, 2, 7, 1),
		"locations":           worst.Nest(worst.Field(2, worst.Field(3, []byte{8, 1})), 2),
		"lines":               worst.Nest(worst.Field(3, []byte{8, 1}), 2, 2),
		"mappings":            worst.Nest(worst.Field(1, []byte{8, 1}), 2),
		"functions":           worst.Nest(worst.Field(3, []byte{8, 1}), 2),
		"strings":             worst.Nest(worst.Field(5, []byte("text")), 2),
		"long strings":        worst.Nest(worst.Field(5, bytes.Repeat([]byte("x"), 1000)), 2),
		"attributes":          worst.Nest(worst.Field(6, append([]byte{8, 1}, text...)), 2),
		"long attributes":     worst.Nest(worst.Field(6, worst.Field(2, worst.Field(1, bytes.Repeat([]byte("x"), 1000)))), 2),
		"values of attribute": worst.Nest(worst.Field(1, worst.Field(1, []byte("text"))), 2, 6, 2, 5),
		"map of attribute":    worst.Nest(worst.Field(1, append(worst.Field(1, []byte("key")), text...)), 2, 6, 2, 6),
		"of resources":        worst.Nest(worst.Field(1, append(worst.Field(1, []byte("key")), text...)), 1, 1),
		"of scopes":           worst.Nest(worst.Field(3, append(worst.Field(1, []byte("key")), text...)), 1, 2, 1),
		"resources":           worst.Nest(worst.Field(1, worst.Field(1, worst.Field(1, worst.Field(1, []byte("key")))))),
	} {
		data := message(1 << 20)
		before := profiletest.HeapBytes()
		pd := profiletest.Unmarshal(t, data)
		ratio := float64(size.OfProfiles(pd)) / float64(profiletest.HeapBytes()-before)
		runtime.KeepAlive(data)
		t.Logf("%s: %.1f times the message, %.2f times the heap", name, float64(size.OfProfiles(pd))/float64(len(data)), ratio)
		assert.Greater(t, ratio, 0.7, name)
		assert.Less(t, ratio, 2.5, name)
	}
}

// Real requests and the smallest useful records pass.
func TestRealMessagesPass(t *testing.T) {
	for _, name := range []string{"small records", "small values", "nested"} {
		_, err := size.Logs(worst.Logs[name](1 << 20))
		assert.NoError(t, err, name)
	}
	files := profiletest.Glob(t, filepath.Join("..", "..", "..", "testdata", "splunk", "*.otlp-logs.pb"))
	for _, file := range files {
		body := profiletest.FileBytes(t, file)
		memory, err := size.Logs(body)
		require.NoError(t, err, file)
		assert.GreaterOrEqual(t, memory, len(body))
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		text, err := request.MarshalJSON()
		require.NoError(t, err)
		_, err = size.JSON(text)
		assert.NoError(t, err, file)
	}
}

func FuzzMessages(f *testing.F) {
	for _, data := range worst.Logs.All(4 << 10) {
		f.Add(data, false)
	}
	for _, data := range worst.OTLP.All(4 << 10) {
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, profiles bool) {
		if profiles {
			requireBounded(t, data, size.Profiles, unmarshalProfiles)
		} else {
			requireBounded(t, data, size.Logs, unmarshalLogs)
			requireBounded(t, data, size.JSON, unmarshalJSON)
		}
	})
}
