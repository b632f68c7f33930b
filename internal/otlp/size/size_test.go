// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package size

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// fill repeats a message until it is about size bytes long, within the messages of these numbers, outermost first.
func fill(size int, what []byte, within ...protowire.Number) []byte {
	data := bytes.Repeat(what, size/len(what))
	for i := len(within) - 1; i >= 0; i-- {
		data = field(within[i], data)
	}
	return data
}

func nested(depth int) []byte {
	value := []byte(nil)
	for range depth {
		value = field(5, field(1, value))
	}
	return value
}

// worstLogs and worstProfiles are messages that take the most memory for their size.
func worstLogs() map[string][]byte {
	const size = 1 << 20
	return map[string][]byte{
		"records":      fill(size, field(2, nil), 1, 2),
		"scopes":       fill(size, field(2, nil), 1),
		"resources":    fill(size, field(1, nil)),
		"attributes":   fill(size, field(6, nil), 1, 2, 2),
		"values":       fill(size, field(1, nil), 1, 2, 2, 5, 5),
		"small values": fill(size, field(1, field(1, []byte("a"))), 1, 2, 2, 5, 5),
		"real records": fill(size,
			field(2, bytes.Join([][]byte{field(5, field(1, []byte("x"))),
				field(6, append(field(1, []byte("k")), field(2, field(1, []byte("v")))...))}, nil)), 1, 2),
		"entities":       fill(size, field(3, nil), 1, 1),
		"nested":         field(1, field(2, field(2, field(5, nested(90))))),
		"nested, deeper": field(1, field(2, field(2, field(5, nested(10_000))))),
	}
}

func worstProfiles() map[string][]byte {
	const size = 1 << 20
	return map[string][]byte{
		"profiles":  fill(size, field(2, nil), 1, 2),
		"samples":   fill(size, field(2, nil), 1, 2, 2),
		"indices":   fill(size, []byte{1}, 1, 2, 2, 2),
		"stacks":    fill(size, field(7, nil), 2),
		"stack":     fill(size, []byte{1}, 2, 7, 1),
		"lines":     fill(size, field(3, nil), 2, 2),
		"strings":   fill(size, field(5, nil), 2),
		"functions": fill(size, field(3, nil), 2),
		"nested":    field(2, field(6, field(2, nested(10_000)))),
	}
}

// requireBounded expects that messages that pass the check take no more memory than the package promises.
func requireBounded(t *testing.T, data []byte, check func([]byte) (int, error), unmarshal func([]byte) any) {
	t.Helper()
	var keep any
	profiletest.RequireCost(t, profiletest.BoundOf(len(data), 4<<20, factor), func() {
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
	for _, data := range worstLogs() {
		requireBounded(t, data, Logs, unmarshalLogs)
	}
	for _, data := range worstProfiles() {
		requireBounded(t, data, Profiles, unmarshalProfiles)
	}
	for _, text := range map[string]string{
		"objects": `{"resourceLogs":[` + strings.Repeat("{},", 1<<18) + `{}]}`,
		"values": `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"arrayValue":{"values":[` + strings.Repeat("{},",
			1<<18) + `{}]}}}]}]}]}`,
		"nested": strings.Repeat("[", 1<<20),
	} {
		requireBounded(t, []byte(text), JSON, unmarshalJSON)
	}
	_, err := Logs(worstLogs()["nested, deeper"])
	assert.ErrorIs(t, err, ErrTooNested)
	_, err = Logs(worstLogs()["records"])
	assert.ErrorIs(t, err, ErrExpands)
	_, err = Logs([]byte{0x0b})
	assert.ErrorIs(t, err, ErrMalformed)
	_, err = JSON([]byte(strings.Repeat("[", maxNesting+1)))
	assert.ErrorIs(t, err, ErrTooNested)
	_, err = JSON([]byte(`"` + strings.Repeat(`[\"`, 1000) + `"`))
	assert.NoError(t, err)
}

// What OfProfiles returns is about what the heap holds, whatever a message is made of.
func TestOfProfiles(t *testing.T) {
	const size = 1 << 20
	text := field(2, field(1, []byte("some text")))
	for name, data := range map[string][]byte{
		"samples":             fill(size, field(2, []byte{8, 1, 0x22, 1, 1}), 1, 2, 2),
		"values":              fill(size, []byte{1}, 1, 2, 2, 2, 4),
		"attribute indices":   fill(size, []byte{1}, 1, 2, 2, 2, 2),
		"stacks":              fill(size, field(7, field(1, []byte{1})), 2),
		"stack":               fill(size, []byte{1}, 2, 7, 1),
		"locations":           fill(size, field(2, field(3, []byte{8, 1})), 2),
		"lines":               fill(size, field(3, []byte{8, 1}), 2, 2),
		"mappings":            fill(size, field(1, []byte{8, 1}), 2),
		"functions":           fill(size, field(3, []byte{8, 1}), 2),
		"strings":             fill(size, field(5, []byte("text")), 2),
		"long strings":        fill(size, field(5, bytes.Repeat([]byte("x"), 1000)), 2),
		"attributes":          fill(size, field(6, append([]byte{8, 1}, text...)), 2),
		"long attributes":     fill(size, field(6, field(2, field(1, bytes.Repeat([]byte("x"), 1000)))), 2),
		"values of attribute": fill(size, field(1, field(1, []byte("text"))), 2, 6, 2, 5),
		"map of attribute":    fill(size, field(1, append(field(1, []byte("key")), text...)), 2, 6, 2, 6),
		"of resources":        fill(size, field(1, append(field(1, []byte("key")), text...)), 1, 1),
		"of scopes":           fill(size, field(3, append(field(1, []byte("key")), text...)), 1, 2, 1),
		"resources":           fill(size, field(1, field(1, field(1, field(1, []byte("key")))))),
	} {
		before := profiletest.HeapBytes()
		pd := profiletest.Unmarshal(t, data)
		ratio := float64(OfProfiles(pd)) / float64(profiletest.HeapBytes()-before)
		t.Logf("%s: %.1f times the message, %.2f times the heap", name, float64(OfProfiles(pd))/float64(len(data)), ratio)
		assert.Greater(t, ratio, 0.7, name)
		assert.Less(t, ratio, 2.5, name)
	}
}

// Real requests and the smallest useful records pass.
func TestRealMessagesPass(t *testing.T) {
	for _, name := range []string{"real records", "small values", "nested"} {
		_, err := Logs(worstLogs()[name])
		assert.NoError(t, err, name)
	}
	files := profiletest.Glob(t, filepath.Join("..", "..", "..", "testdata", "splunk", "*.otlp-logs.pb"))
	for _, file := range files {
		body := profiletest.FileBytes(t, file)
		memory, err := Logs(body)
		require.NoError(t, err, file)
		assert.GreaterOrEqual(t, memory, len(body))
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		text, err := request.MarshalJSON()
		require.NoError(t, err)
		_, err = JSON(text)
		assert.NoError(t, err, file)
	}
}

func FuzzMessages(f *testing.F) {
	for _, data := range worstLogs() {
		f.Add(data[:min(len(data), 4<<10)], false)
	}
	for _, data := range worstProfiles() {
		f.Add(data[:min(len(data), 4<<10)], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, profiles bool) {
		if profiles {
			requireBounded(t, data, Profiles, unmarshalProfiles)
		} else {
			requireBounded(t, data, Logs, unmarshalLogs)
			requireBounded(t, data, JSON, unmarshalJSON)
		}
	})
}
