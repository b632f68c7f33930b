// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

// Answers with many nodes, frames or events are written by hand, in columns: json.Marshal would need a copy of each
// column, and ends neither with the memory nor with the context.

// raw appends a string as it is.
func (b *body) raw(s string) { b.last = append(b.last, s...) }

func (b *body) format(format string, args ...any) { b.last = fmt.Appendf(b.last, format, args...) }

// list appends a list of n values; write appends one of them. After an error it writes nothing more.
func (b *body) list(n int, write func(i int)) {
	b.raw("[")
	for i := 0; i < n && b.grow(); i++ {
		if i > 0 {
			b.raw(",")
		}
		write(i)
	}
	b.raw("]")
}

func (b *body) int(n int64) { b.last = strconv.AppendInt(b.last, n, 10) }

func (b *body) float(v float64) { b.last = strconv.AppendFloat(b.last, v, 'f', -1, 64) }

// values appends the values of a time line, null where nothing is known.
func (b *body) values(list []float64) {
	b.list(len(list), func(i int) {
		if v := list[i]; math.IsNaN(v) || math.IsInf(v, 0) {
			b.raw("null")
		} else {
			b.float(math.Round(v*1000) / 1000)
		}
	})
}

// quote appends a string in JSON.
func (b *body) quote(s string) { b.last = append(b.last, quote(s)...) }

func (b *body) quotedList(list []string) { b.list(len(list), func(i int) { b.quote(list[i]) }) }

func writeInts[T int32 | int64](b *body, list []T) {
	b.list(len(list), func(i int) { b.int(int64(list[i])) })
}

// maxNameBytes is the longest string of a frame in JSON. pprof has all of it.
const maxNameBytes = 1 << 10

func shorten(s string) string { return dictionary.Shorten(s, maxNameBytes) }

func quote(s string) []byte {
	b, _ := json.Marshal(shorten(s)) // strings can be marshalled; < > & and invalid UTF-8 are escaped
	return b
}

// head begins an object with the fields that all trees and tables have.
func (b *body) head(s answers.Summary, total int64) {
	b.format(`{"type":%s,"unit":%s,"kind":%q,"total":%d,"from":%d,"until":%d,`,
		quote(s.Type.String()), quote(s.Type.Unit), s.Values, total, millis(s.From), millis(s.Until))
}

func (b *body) frames(frames []answers.Frame) {
	for i, column := range []struct {
		name  string
		value func(*answers.Frame) string
	}{
		{"name", func(f *answers.Frame) string { return f.Name }},
		{"file", func(f *answers.Frame) string { return f.File }},
		{"mapping", func(f *answers.Frame) string { return f.Mapping }},
		{"build_id", func(f *answers.Frame) string { return f.BuildID }},
		{"kind", func(f *answers.Frame) string { return f.Kind }},
	} {
		b.format(`%c%q:`, "{,"[min(i, 1)], column.name)
		b.list(len(frames), func(i int) { b.quote(column.value(&frames[i])) })
	}
	b.raw(`,"line":`)
	b.list(len(frames), func(i int) { b.int(frames[i].Line) })
	b.raw("}")
}

func (b *body) nodes(t *answers.Tree) {
	b.raw(`{"frame":`)
	writeInts(b, t.Frame)
	b.raw(`,"parent":`)
	writeInts(b, t.Parent)
	for _, column := range []struct {
		name   string
		values []int64
	}{{"self", t.Self}, {"total", t.Total}, {"base_self", t.BaseSelf}, {"base_total", t.BaseTotal}} {
		if column.values != nil {
			b.format(`,%q:`, column.name)
			writeInts(b, column.values)
		}
	}
	b.raw("}")
}
