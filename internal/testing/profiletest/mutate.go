// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mutation decodes damaged copies of a payload, to find those that a decoder does not come to an end with, or panics
// on.
type Mutation struct {
	// Payload is a captured payload without compression: behind compression, damage does not reach the decoder.
	Payload []byte
	// IsProtobuf edits Payload as fields of protobuf. Otherwise it is text or bytes, by its content.
	IsProtobuf bool
	// Mutants is how many there are; 0 means mutantBytes of them, but leastMutants at least.
	Mutants int
	// Decode decodes a mutant. Its context ends when the time is up.
	Decode func(ctx context.Context, mutant []byte) error
}

const (
	mutantBytes, leastMutants, mostMutants = 512 << 10, 10, 500
	// maxEdits is the largest number of edits of a mutant.
	maxEdits = 8
	// A mutant may take a thousand times what a decoder needs for one on an idle machine: what takes longer does not end.
	mutantConstant, mutantPerByte = 10 * time.Second, 50 * time.Microsecond
)

// Run fails the test at the first mutant that takes too long or panics, and writes it to a file. The mutants follow
// from the test's name.
func (m Mutation) Run(t *testing.T) {
	t.Helper()
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(t.Name()))
	mutants := m.Mutants
	if mutants == 0 {
		mutants = min(max(mutantBytes/max(len(m.Payload), 1), leastMutants), mostMutants)
	}
	var mutant []byte
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("the decoder panicked on the %d bytes in %s: %v\n%s", len(mutant), saved(mutant), fault, debug.Stack())
		}
	}()
	for i := range mutants {
		mutator := mutator{rand.New(rand.NewPCG(seed.Sum64(), uint64(i)))}
		mutant = mutator.mutate(m.Payload, m.IsProtobuf)
		limit := mutantConstant + time.Duration(len(mutant))*mutantPerByte
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		endless := time.AfterFunc(2*limit, func() {
			panic(fmt.Sprintf("decoding the %d bytes in %s did not end %v after its context", len(mutant), saved(mutant), limit))
		})
		err := m.Decode(ctx, slices.Clone(mutant))
		endless.Stop()
		if err != nil && ctx.Err() != nil {
			t.Errorf("decoding the %d bytes in %s took longer than %v: %v", len(mutant), saved(mutant), limit, err)
		}
		cancel()
	}
}

func saved(mutant []byte) string {
	file, err := os.CreateTemp("", "mutant-")
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if _, err := file.Write(mutant); err != nil {
		return err.Error()
	}
	return file.Name()
}

type mutator struct{ *rand.Rand }

// mutate returns a damaged copy.
func (m *mutator) mutate(payload []byte, isProtobuf bool) []byte {
	edit := m.editBytes
	switch {
	case isProtobuf:
		edit = m.editMessage
	case utf8.Valid(payload):
		edit = m.editText
	}
	for range 1 + m.IntN(maxEdits) {
		payload = edit(payload)
	}
	if m.IntN(8) == 0 {
		payload = m.editBytes(payload) // seldom, since most of what it damages is refused at once
	}
	return payload
}

// span returns a random part of n bytes, up to longest of them.
func (m *mutator) span(n, longest int) (start, end int) {
	start = m.IntN(n + 1)
	return start, start + m.IntN(min(longest, n-start)+1)
}

// editBytes changes bits, or repeats, moves or removes a part. Most edits keep the length, which many formats state.
func (m *mutator) editBytes(data []byte) []byte {
	const longest = 64
	if len(data) == 0 {
		return data
	}
	start, end := m.span(len(data), longest)
	part := slices.Clone(data[start:end])
	at := m.IntN(len(data))
	data = slices.Clone(data)
	switch m.IntN(8) {
	case 0:
		return slices.Delete(data, start, end)
	case 1:
		return slices.Insert(data, at, part...)
	case 2, 3:
		data[at] ^= 1 << m.IntN(8)
	case 4:
		data[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[m.IntN(5)]
	default: // what stands elsewhere: often a number of the same kind
		copy(data[at:], part[:min(len(part), 1+m.IntN(8))])
	}
	return data
}

var numbers, texts = regexp.MustCompile(`-?\d+(\.\d+)?`), regexp.MustCompile(`"[^"]*"`)

// editText replaces a number or a text in quotes by another one, or repeats or removes a line.
func (m *mutator) editText(text []byte) []byte {
	what := numbers
	switch m.IntN(8) {
	case 0:
		what = texts
	case 1, 2:
		start := bytes.LastIndexByte(text[:m.IntN(len(text)+1)], '\n') + 1
		line, rest, _ := bytes.Cut(text[start:], []byte("\n"))
		if m.IntN(2) == 0 {
			return slices.Concat(text[:start], rest)
		}
		return slices.Concat(text[:start], line, []byte("\n"), text[start:])
	}
	next := func() (start, end int) {
		at := m.IntN(len(text) + 1)
		if found := what.FindIndex(text[at:]); found != nil {
			return at + found[0], at + found[1]
		}
		return at, at
	}
	start, end := next()
	from, to := next()
	return slices.Concat(text[:start], text[from:to], text[end:])
}

// editMessage changes a field of a message, or of the messages in it.
func (m *mutator) editMessage(data []byte) []byte {
	fields := fieldsOf(data)
	if len(fields) == 0 {
		return m.editBytes(data)
	}
	i, j := m.IntN(len(fields)), m.IntN(len(fields))
	f, other := &fields[i], fields[j]
	switch m.IntN(16) {
	case 0:
		fields = slices.Insert(fields, j, *f)
	case 1:
		fields = slices.Delete(fields, i, i+1)
	case 2: // what another field of the same type has
		if other.wire == f.wire {
			f.value = other.value
		}
	case 3:
		f.number = other.number
	default:
		f.value = m.editValue(*f, other)
	}
	var b []byte
	for _, f := range fields {
		b = append(protowire.AppendTag(b, f.number, f.wire), f.value...)
	}
	return b
}

// wireField is a field of protobuf, with its value as it stands there.
type wireField struct {
	number protowire.Number
	wire   protowire.Type
	value  []byte
}

// editValue changes a value. Most numbers of profiles are references: they become other small numbers.
func (m *mutator) editValue(f, other wireField) []byte {
	number, _ := protowire.ConsumeVarint(f.value)
	content, _ := protowire.ConsumeBytes(f.value)
	switch {
	case f.wire == protowire.VarintType && other.wire == protowire.VarintType && m.IntN(2) == 0:
		return other.value
	case f.wire == protowire.VarintType && m.IntN(8) == 0:
		return protowire.AppendVarint(nil, m.Uint64())
	case f.wire == protowire.VarintType:
		return protowire.AppendVarint(nil, number+uint64(m.IntN(9))-4)
	case f.wire != protowire.BytesType:
		return m.editBytes(f.value)
	case utf8.Valid(content) && m.IntN(4) == 0:
		return protowire.AppendBytes(nil, m.editText(content))
	}
	return protowire.AppendBytes(nil, m.editMessage(content))
}

// fieldsOf returns the fields of a message, or none of what is no message.
func fieldsOf(data []byte) (fields []wireField) {
	for len(data) > 0 {
		number, wire, start := protowire.ConsumeTag(data)
		if start < 0 {
			return nil
		}
		length := protowire.ConsumeFieldValue(number, wire, data[start:])
		if length < 0 {
			return nil
		}
		fields = append(fields, wireField{number, wire, data[start : start+length]})
		data = data[start+length:]
	}
	return fields
}
