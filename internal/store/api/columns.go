// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// Answers with many nodes, frames or events are written by hand, in columns: json.Marshal would need a copy of each
// column, and has no bound.

// columnsAnswer returns an answer of JSON, or an error if it is too large.
func columnsAnswer(body []byte) (*answer, error) {
	if len(body) > maxAnswerBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, maxAnswerBytes)
	}
	return &answer{body: body, contentType: "application/json"}, nil
}

// appendList writes n values as a list; write appends one of them. Above maxAnswerBytes it stops: columnsAnswer returns
// the error.
func appendList(b []byte, n int, write func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if len(b) > maxAnswerBytes {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, i)
	}
	return append(b, ']')
}

func appendInts[T int32 | int64](b []byte, list []T) []byte {
	return appendList(b, len(list), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(list[i]), 10) })
}

func appendTexts(b []byte, list []string) []byte {
	return appendList(b, len(list), func(b []byte, i int) []byte { return append(b, quote(list[i])...) })
}

// maxNameBytes is the longest text of a frame in JSON. pprof has all of it.
const maxNameBytes = 1 << 10

func quote(s string) []byte {
	if len(s) > maxNameBytes {
		s = s[:maxNameBytes] + "…"
	}
	b, _ := json.Marshal(s) // strings can be marshalled; < > & and invalid UTF-8 are escaped
	return b
}

// head begins an object with the fields that all trees and tables have.
func head(s store.Summary, total int64) []byte {
	return fmt.Appendf(nil, `{"type":%s,"unit":%s,"kind":%q,"total":%d,"from":%d,"until":%d,`,
		quote(s.Type.String()), quote(s.Type.Unit), s.Values, total, millis(s.From), millis(s.Until))
}

func appendFrames(b []byte, frames []store.Frame) []byte {
	for i, column := range []struct {
		name string
		text func(*store.Frame) string
	}{
		{"name", func(f *store.Frame) string { return f.Name }},
		{"file", func(f *store.Frame) string { return f.File }},
		{"mapping", func(f *store.Frame) string { return f.Mapping }},
		{"build_id", func(f *store.Frame) string { return f.BuildID }},
		{"kind", func(f *store.Frame) string { return f.Kind }},
	} {
		b = fmt.Appendf(b, `%c%q:`, "{,"[min(i, 1)], column.name)
		b = appendList(b, len(frames), func(b []byte, i int) []byte { return append(b, quote(column.text(&frames[i]))...) })
	}
	b = appendList(append(b, `,"line":`...), len(frames), func(b []byte, i int) []byte {
		return strconv.AppendInt(b, frames[i].Line, 10)
	})
	return append(b, '}')
}

// appendNodes writes the columns of nodes.
func appendNodes(b []byte, t *store.Tree) []byte {
	b = appendInts(append(b, `{"frame":`...), t.Frame)
	b = appendInts(append(b, `,"parent":`...), t.Parent)
	for _, column := range []struct {
		name   string
		values []int64
	}{{"self", t.Self}, {"total", t.Total}, {"base_self", t.BaseSelf}, {"base_total", t.BaseTotal}} {
		if column.values != nil {
			b = appendInts(fmt.Appendf(b, `,%q:`, column.name), column.values)
		}
	}
	return append(b, '}')
}
