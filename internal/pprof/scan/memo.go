// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Memo caches the result of decoding a byte range of a payload, keyed by its bytes. A Memo must be Reset before its
// first use.
type Memo[T any] struct {
	data []byte
	// spans and values are those of the entries. Entry 0 is unused, since HashIndex has no entry 0.
	spans  []Span
	values []T
	index  dictionary.HashIndex
	probe  dictionary.HashProbe // where the last Find ended
}

// Reset forgets all entries and makes room for about that many. Their spans are those of data, which is borrowed until
// the next Reset.
func (m *Memo[T]) Reset(data []byte, entries int) {
	clear(m.values)
	var unused T
	m.data, m.spans, m.values = data, append(m.spans[:0], Span{}), append(m.values[:0], unused)
	m.index.Reset(entries)
}

// Len returns the number of entries, the unused one included.
func (m *Memo[T]) Len() int { return len(m.values) }

// At returns the value of an entry. It is valid until the next Add.
func (m *Memo[T]) At(entry int) *T { return &m.values[entry] }

// Find returns the entry of the bytes at a span, or 0.
func (m *Memo[T]) Find(at Span) (entry int) {
	key := m.data[at.Start:at.End]
	m.probe = m.index.Start(dictionary.HashBytes(key))
	for e := m.index.Next(&m.probe); e != 0; e = m.index.Next(&m.probe) {
		if known := m.spans[e]; bytes.Equal(m.data[known.Start:known.End], key) {
			return int(e)
		}
	}
	return 0
}

// Add adds an entry for the span that the last Find did not find, and returns it.
func (m *Memo[T]) Add(at Span, value T) (entry int) {
	entry = len(m.values)
	m.index.Insert(m.probe, int32(entry))
	m.spans, m.values = append(m.spans, at), append(m.values, value)
	return entry
}

// Bytes estimates the memory in use, without the index.
func (m *Memo[T]) Bytes() int { return dictionary.BytesOf(m.spans) + dictionary.BytesOf(m.values) }

// MaxKeptBytes bounds the memory that stays in a pool after a payload: one that needs more is rare, and its memory
// goes back.
const MaxKeptBytes = 64 << 20
