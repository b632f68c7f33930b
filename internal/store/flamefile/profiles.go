// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile

import (
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// OfProfiles returns the Stacks of each group of profiles, which must be of one sample type. It adds up samples by
// stack, in the order in which stacks first occur. A sample without values counts one for each timestamp. The profiles
// and their dictionary must keep the rules of OTLP. The error wraps store.ErrTooLarge.
func OfProfiles(dict pprofile.ProfilesDictionary, groups ...[]pprofile.Profile) ([]Stacks, error) {
	b := newBuilder(dict)
	sums := make([]stackSums, len(groups))
	for i, profiles := range groups {
		sums[i].positions = map[int32]int{}
		for _, p := range profiles {
			if err := b.add(&sums[i], p); err != nil {
				return nil, err
			}
		}
	}
	lists := make([]Stacks, len(groups))
	for i, profiles := range groups {
		lists[i] = Stacks{Frames: b.list, Each: func(yield func([]int32, int64) bool) {
			for _, s := range sums[i].list {
				if s.value != 0 && !yield(b.stacks[s.stack], s.value) {
					return
				}
			}
		}}
		if len(profiles) > 0 {
			t := profiles[0].SampleType()
			lists[i].Name = dict.StringTable().At(int(t.TypeStrindex()))
			lists[i].Unit = dict.StringTable().At(int(t.UnitStrindex()))
		}
	}
	return lists, nil
}

type builder struct {
	dict   pprofile.ProfilesDictionary
	list   []Frame
	frames map[frameKey]int32 // indices of list
	// locations[i] are location i's frames, root first.
	locations [][]int32
	// stacks are the distinct stacks as frames: those that differ only in addresses are one. byIndex maps the dictionary's
	// stacks to them, plus one, byFrames their frames.
	stacks   [][]int32
	byIndex  []int32
	byFrames map[string]int32
	// maxFrames bounds the frames of all stacks, counted in total.
	total, maxFrames int
}

// frameKey identifies a frame. Strings are indices, since many functions can share a long one.
type frameKey struct {
	name, file int32
	line       int64
	address    string // of a frame without a function
}

// Stacks may have maxFramesConstant + maxFramesFactor × the locations of stacks and the lines of locations in frames.
// Few bytes can have many: a location has any number of lines, a stack has it any number of times, and any number of
// stacks have it.
const (
	maxFramesConstant = 4 << 20
	maxFramesFactor   = 8
)

func newBuilder(dict pprofile.ProfilesDictionary) *builder {
	b := &builder{
		dict: dict, frames: map[frameKey]int32{}, locations: make([][]int32, dict.LocationTable().Len()),
		byIndex: make([]int32, dict.StackTable().Len()), byFrames: map[string]int32{}, maxFrames: maxFramesConstant,
	}
	for _, l := range dict.LocationTable().All() {
		b.maxFrames += maxFramesFactor * l.Lines().Len()
	}
	for _, s := range dict.StackTable().All() {
		b.maxFrames += maxFramesFactor * s.LocationIndices().Len()
	}
	return b
}

// stackSums are the sums of a group, in the order in which stacks first occur.
type stackSums struct {
	list      []stackSum
	positions map[int32]int // in list, by stack
}

type stackSum struct {
	stack int32
	value int64
}

func (b *builder) add(sums *stackSums, p pprofile.Profile) error {
	for _, s := range p.Samples().All() {
		stack, err := b.stack(s.StackIndex())
		if err != nil {
			return err
		}
		at, ok := sums.positions[stack]
		if !ok {
			at = len(sums.list)
			sums.positions[stack] = at
			sums.list = append(sums.list, stackSum{stack: stack})
		}
		sum := &sums.list[at]
		if s.Values().Len() == 0 {
			sum.value = otlp.SaturatingAdd(sum.value, int64(s.TimestampsUnixNano().Len()))
		}
		for _, v := range s.Values().All() {
			sum.value = otlp.SaturatingAdd(sum.value, v)
		}
	}
	return nil
}

func (b *builder) stack(index int32) (int32, error) {
	if known := b.byIndex[index]; known != 0 {
		return known - 1, nil
	}
	indices := b.dict.StackTable().At(int(index)).LocationIndices()
	before := b.total
	for i := indices.Len() - 1; i >= 0; i-- { // in this order, frames are listed root first
		if b.total += len(b.location(indices.At(i))); b.total > b.maxFrames {
			return 0, fmt.Errorf("%w: the stacks have more than %d frames", model.ErrTooLarge, b.maxFrames)
		}
	}
	stack := make([]int32, 0, b.total-before)
	for i := indices.Len() - 1; i >= 0; i-- {
		stack = append(stack, b.location(indices.At(i))...)
	}
	key := make([]byte, 0, 2*len(stack))
	for _, frame := range stack {
		key = binary.AppendUvarint(key, uint64(frame))
	}
	i, ok := b.byFrames[string(key)]
	if !ok {
		i = int32(len(b.stacks))
		b.stacks = append(b.stacks, stack)
		b.byFrames[string(key)] = i
	}
	b.byIndex[index] = i + 1
	return i, nil
}

func (b *builder) location(index int32) []int32 {
	if known := b.locations[index]; known != nil {
		return known
	}
	l := b.dict.LocationTable().At(int(index))
	strs, functions := b.dict.StringTable(), b.dict.FunctionTable()
	var frames []int32
	for i := l.Lines().Len() - 1; i >= 0; i-- {
		f := functions.At(int(l.Lines().At(i).FunctionIndex()))
		key := frameKey{name: f.NameStrindex(), file: f.FilenameStrindex(), line: f.StartLine()}
		if key.name == 0 {
			key.name = f.SystemNameStrindex()
		}
		frame := Frame{Name: strs.At(int(key.name)), File: strs.At(int(key.file)), Line: key.line}
		if key.name == 0 {
			frame.Name = unknownName
		}
		frames = append(frames, b.frame(key, frame))
	}
	if len(frames) == 0 {
		m := b.dict.MappingTable().At(int(l.MappingIndex()))
		name := answers.AddressName(l.Address(), strs.At(int(m.FilenameStrindex())))
		frames = append(frames, b.frame(frameKey{address: name}, Frame{Name: name}))
	}
	b.locations[index] = frames
	return frames
}

func (b *builder) frame(key frameKey, f Frame) int32 {
	i, ok := b.frames[key]
	if !ok {
		i = int32(len(b.list))
		b.list = append(b.list, f)
		b.frames[key] = i
	}
	return i
}
