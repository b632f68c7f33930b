// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The variables of a made-up program: at each address a word.
const (
	rateAt, listAt, otherAt, mutexRateAt = 8, 16, 24, 32
	firstBucket                          = 64
)

var madeUp = &Program{lists: []uint64{listAt, otherAt}, memoryRate: rateAt, mutexRate: mutexRateAt}

// bucketBytes returns a bucket of the runtime.
func bucketBytes(kind Kind, next, size uint64, stack []uint64, record ...uint64) []byte {
	words := append([]uint64{0, next, uint64(kind), hashOf(stack, size), size, uint64(len(stack))},
		append(stack, record...)...)
	var b []byte
	for _, word := range words {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func objects(size, allocs, frees uint64) []uint64 {
	return append([]uint64{allocs, frees, allocs * size, frees * size}, make([]uint64, 12)...)
}

// image returns the memory of a program: its variables, and then the buckets of the list.
func image(rate uint64, buckets ...[]byte) []byte {
	memory := binary.LittleEndian.AppendUint64(make([]byte, rateAt), rate)
	memory = binary.LittleEndian.AppendUint64(memory, firstBucket)
	memory = append(memory, make([]byte, firstBucket-len(memory))...)
	return append(memory, bytes.Join(buckets, nil)...)
}

func read(memory []byte) ([]Profile, error) {
	r := Reader{Program: madeUp, MaxBuckets: 1000}
	profiles, off, err := r.Read(bytes.NewReader(memory))
	if err == nil {
		err = off
	}
	return profiles, err
}

func TestMadeUpMemory(t *testing.T) {
	first := bucketBytes(Memory, firstBucket+6*8+2*8+16*8, 100, []uint64{1, 2}, objects(100, 7, 3)...)
	second := bucketBytes(Memory, 0, 64, []uint64{3}, objects(64, 1, 1)...)
	profiles, err := read(image(512, first, second))
	require.NoError(t, err)
	require.Len(t, profiles, 1)
	require.Len(t, profiles[0].Buckets, 2)
	assert.Equal(t, []uint64{1, 2}, profiles[0].Buckets[0].Stack)
	got := profiles[0].Buckets[0]
	assert.Equal(t, []int64{100, 7, 3}, []int64{int64(got.Size), got.Allocs, got.Frees})
	assert.Equal(t, []uint64{3}, profiles[0].Buckets[1].Stack)

	wait := bucketBytes(Mutex, 0, 0, []uint64{1}, math.Float64bits(2.5), 1e9)
	memory := image(512, wait)
	binary.LittleEndian.PutUint64(memory[mutexRateAt:], 10)
	profiles, err = read(memory)
	require.NoError(t, err)
	require.Len(t, profiles, 1)
	assert.Equal(t, []any{Mutex, int64(512), int64(10)}, []any{profiles[0].Kind, profiles[0].Rate, profiles[0].Scale})
	assert.Equal(t, []int64{20, 5e9}, profiles[0].values(profiles[0].Buckets[0], 2e9))

	_, err = read(image(0, first, second))
	var off *OffError
	require.ErrorAs(t, err, &off)
}

// TestMalformedMemory: nothing is made of a list that is not as the runtime writes it.
func TestMalformedMemory(t *testing.T) {
	next := uint64(firstBucket + 6*8 + 8 + 16*8)
	good := bucketBytes(Memory, next, 100, []uint64{1}, objects(100, 7, 3)...)
	for name, test := range map[string]struct {
		second []byte
		want   error
	}{
		"another kind":    {bucketBytes(Block, 0, 0, []uint64{1}, 0, 0), ErrMalformed},
		"no memory":       {nil, ErrUnreadable},
		"a long stack":    {bucketBytes(Memory, 0, 100, make([]uint64, maxStack+1)), ErrMalformed},
		"an unknown kind": {bucketBytes(4, 0, 0, []uint64{1}), ErrMalformed},
		"no size":         {bucketBytes(Memory, 0, 0, []uint64{1}, objects(0, 7, 3)...), ErrMalformed},
		"another hash":    {append(append(bytes.Clone(good[:24]), 1), good[25:]...), ErrMalformed},
		"half a change": {bucketBytes(Memory, 0, 100, []uint64{1},
			append([]uint64{8, 3, 700, 300}, make([]uint64, 12)...)...), ErrChanging},
		"more freed":        {bucketBytes(Memory, 0, 100, []uint64{1}, objects(100, 3, 7)...), ErrChanging},
		"an overflow":       {bucketBytes(Memory, 0, 1<<40, []uint64{1}, objects(1<<40, 1<<40, 0)...), ErrChanging},
		"a ring":            {bucketBytes(Memory, next, 100, []uint64{1}, objects(100, 7, 3)...), ErrMalformed},
		"an odd address":    {bucketBytes(Memory, next+1, 100, []uint64{1}, objects(100, 7, 3)...), ErrMalformed},
		"an address beyond": {bucketBytes(Memory, math.MaxUint64-7, 100, []uint64{1}, objects(100, 7, 3)...), ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			profiles, err := read(image(512, good, test.second))
			require.ErrorIs(t, err, test.want)
			assert.Empty(t, profiles)
		})
	}
	profiles, err := read(image(512, bucketBytes(Mutex, 0, 0, nil, math.Float64bits(math.NaN()), 0)))
	require.ErrorIs(t, err, ErrChanging)
	assert.Empty(t, profiles)
}

// write writes profiles with names of no program.
func write(t testing.TB, profiles []Profile) {
	empty, err := symbols.Open(bytes.NewReader(elfHeader()), int64(len(elfHeader())), symbols.DefaultLimits)
	require.NoError(t, err)
	for i := range profiles {
		data, err := Write(&profiles[i], &Source{Names: NewNames(empty), TicksPerSecond: 1})
		require.NoError(t, err)
		_, err = profile.ParseData(data)
		require.NoError(t, err)
	}
}

// elfHeader is a program without anything.
func elfHeader() []byte {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[54:], 56)
	return b
}

func requireBounded(t testing.TB, memory []byte) {
	profiletest.RequireCost(t, profiletest.BoundOf(len(memory), 8<<20, 48), func() {
		profiles, _ := read(memory)
		write(t, profiles)
	})
}

// TestReadIsBounded reads lists that are as long as they may be: with short and with long stacks, and one that is a
// ring.
func TestReadIsBounded(t *testing.T) {
	for _, depth := range []int{0, 32, maxStack} {
		var buckets [][]byte
		at := uint64(firstBucket)
		for i := range 1000 {
			stack := make([]uint64, depth)
			for k := range stack {
				stack[k] = uint64(i*depth + k)
			}
			at += uint64(6*8 + 8*depth + 16*8)
			next := at
			if i == 999 {
				next = 0
			}
			buckets = append(buckets, bucketBytes(Memory, next, 1, stack, objects(1, 1, 0)...))
		}
		requireBounded(t, image(512, buckets...))
	}
	stack := make([]uint64, maxStack)
	requireBounded(t, image(512, bucketBytes(Memory, firstBucket, 1, stack, objects(1, 1, 0)...)))
}

func FuzzRead(f *testing.F) {
	f.Add(image(512, bucketBytes(Memory, 0, 100, []uint64{1, 2}, objects(100, 7, 3)...)))
	f.Add(image(512, bucketBytes(Mutex, 0, 0, []uint64{1}, math.Float64bits(2.5), 1e9)))
	f.Fuzz(func(t *testing.T, memory []byte) { requireBounded(t, memory) })
}

// FuzzCode decodes hostile code of both architectures.
func FuzzCode(f *testing.F) {
	f.Add([]byte{0x48, 0x8b, 0x35, 0x79, 0, 0x20, 0}) // MOVQ 0x200079(IP), SI
	f.Add([]byte{0x1b, 0x10, 0, 0xb0, 0x7b, 0x83, 0x40, 0xf9})
	f.Fuzz(func(t *testing.T, code []byte) {
		var found int
		function := symbols.GoFunction{Address: 0x400000, Code: code}
		profiletest.RequireCost(t, profiletest.BoundOf(len(code), 1<<20, 512), func() {
			found = 0
			referencesAMD64(function, func(uint64) { found++ })
			referencesARM64(function, func(uint64) { found++ })
		})
		require.LessOrEqual(t, found, len(code))
	})
}
