// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// OfProfiles adds up the samples of profiles of one sample type by stack, in the order in which stacks first occur. A
// sample without values counts one for each timestamp. The profiles and their dictionary must keep the rules of OTLP.
func OfProfiles(dict pprofile.ProfilesDictionary, profiles []pprofile.Profile) Stacks {
	b := builder{
		dict: dict, frames: map[Frame]int32{}, sums: map[string]int{},
		locations: make([][]int32, dict.LocationTable().Len()), stacks: map[int32]int{},
	}
	for _, p := range profiles {
		for _, s := range p.Samples().All() {
			sum := b.sum(s.StackIndex())
			if s.Values().Len() == 0 {
				sum.value += int64(s.TimestampsUnixNano().Len())
			}
			for _, v := range s.Values().All() {
				sum.value += v
			}
		}
	}
	out := Stacks{Frames: b.list, Each: func(yield func([]int32, int64) bool) {
		for _, s := range b.order {
			if s.value != 0 && !yield(s.stack, s.value) {
				return
			}
		}
	}}
	if len(profiles) > 0 {
		t := profiles[0].SampleType()
		out.Name = dict.StringTable().At(int(t.TypeStrindex()))
		out.Unit = dict.StringTable().At(int(t.UnitStrindex()))
	}
	return out
}

type builder struct {
	dict   pprofile.ProfilesDictionary
	list   []Frame
	frames map[Frame]int32 // indices of list
	// locations[i] are location i's frames, root first.
	locations [][]int32
	// stacks and sums map a stack to its position in order, by index and by frames: stacks that differ only in
	// addresses are one.
	stacks map[int32]int
	sums   map[string]int
	order  []stackSum
}

type stackSum struct {
	stack []int32
	value int64
}

func (b *builder) sum(index int32) *stackSum {
	if i, ok := b.stacks[index]; ok {
		return &b.order[i]
	}
	indices := b.dict.StackTable().At(int(index)).LocationIndices()
	var stack []int32
	for i := indices.Len() - 1; i >= 0; i-- {
		stack = append(stack, b.location(indices.At(i))...)
	}
	var key []byte
	for _, frame := range stack {
		key = binary.AppendUvarint(key, uint64(frame))
	}
	i, ok := b.sums[string(key)]
	if !ok {
		i = len(b.order)
		b.order = append(b.order, stackSum{stack: stack})
		b.sums[string(key)] = i
	}
	b.stacks[index] = i
	return &b.order[i]
}

func (b *builder) location(index int32) []int32 {
	if known := b.locations[index]; known != nil {
		return known
	}
	l := b.dict.LocationTable().At(int(index))
	texts, functions := b.dict.StringTable(), b.dict.FunctionTable()
	var frames []int32
	for i := l.Lines().Len() - 1; i >= 0; i-- {
		line := l.Lines().At(i)
		f := functions.At(int(line.FunctionIndex()))
		name := f.NameStrindex()
		if name == 0 {
			name = f.SystemNameStrindex()
		}
		frame := Frame{Name: texts.At(int(name)), File: texts.At(int(f.FilenameStrindex())), Line: f.StartLine()}
		if name == 0 {
			frame.Name = "(unknown)"
		}
		frames = append(frames, b.frame(frame))
	}
	if len(frames) == 0 {
		m := b.dict.MappingTable().At(int(l.MappingIndex()))
		frames = append(frames, b.frame(Frame{Name: store.AddressName(l.Address(), texts.At(int(m.FilenameStrindex())))}))
	}
	b.locations[index] = frames
	return frames
}

func (b *builder) frame(f Frame) int32 {
	i, ok := b.frames[f]
	if !ok {
		i = int32(len(b.list))
		b.list = append(b.list, f)
		b.frames[f] = i
	}
	return i
}
