// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package worst makes inputs that cost the most memory and time for their size, for each way by which bytes enter. The
// tests that bound a translator (profiletest.RequireCost) and the test of whole processes (TestLimits in
// internal/testing/chaos) send the same ones.
//
// Inputs are made of many of the smallest possible entries, of entries that share a long string, of deep nesting, or of
// large counts. They are plain: Gzip and Zstd compress them, most of them by a factor of a thousand. The same size
// makes the same bytes.
package worst

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Inputs are functions that return an input of about size bytes, by their names.
type Inputs map[string]func(size int) []byte

// All returns all inputs of a size, in the order of their names.
func (in Inputs) All(size int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if !yield(name, in[name](size)) {
				return
			}
		}
	}
}

// Only returns the inputs of these names.
func (in Inputs) Only(names ...string) Inputs {
	some := Inputs{}
	for _, name := range names {
		if in[name] == nil {
			panic("there is no input " + name)
		}
		some[name] = in[name]
	}
	return some
}

// Zstd compresses an input.
func Zstd(plain []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are valid
	}
	defer w.Close()
	return w.EncodeAll(plain, nil)
}

// repeat returns head, and piece as often as it fits.
func repeat(size int, head, piece []byte) []byte {
	return append(head[:len(head):len(head)], bytes.Repeat(piece, max(1, (size-len(head))/len(piece)))...)
}

// fill returns head, and pieces until there are size bytes.
func fill(size int, head []byte, appendPiece func(b []byte, i int) []byte) []byte {
	b := append(make([]byte, 0, max(0, size+size/8)), head...)
	for i := 0; len(b) < size; i++ {
		b = appendPiece(b, i)
	}
	return b
}

// join returns the parts as one.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
