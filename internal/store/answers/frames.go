// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file finds the frames of stacks.

// blockFramer finds the frames of a block's locations.
type blockFramer struct {
	b    *treeBuilder
	dict *dictionary.Dictionary
	// spans[i] is the range of location i's frames in frames, outermost first.
	spans  []frameSpan
	frames []int32
	// buildIDs and values have the strings of mappings and attributes that were needed so far: many locations can share a
	// mapping of many attributes, or an attribute with a long list.
	buildIDs map[dictionary.MappingIndex]string
	values   map[dictionary.AttributeIndex]string
	// numbers are the builder's numbers of the block's strings, plus one.
	numbers []int32
	taken   int // of the memory
}

type frameSpan struct{ start, end uint32 }

func (f *blockFramer) begin() error {
	if f.spans != nil {
		return nil
	}
	f.taken = 8*f.dict.Locations.Len() + 4*f.dict.Strings.Len()
	if err := f.b.memory.Grow(f.taken); err != nil {
		return err
	}
	f.spans = make([]frameSpan, f.dict.Locations.Len())
	f.buildIDs, f.values = map[dictionary.MappingIndex]string{}, map[dictionary.AttributeIndex]string{}
	f.numbers = make([]int32, f.dict.Strings.Len())
	f.frames = append(f.frames, 0) // no span ends at 0
	return nil
}

func (f *blockFramer) end() { f.b.memory.Release(f.taken) }

func (f *blockFramer) take(n int) {
	f.taken += n
	_ = f.b.memory.Grow(n) // chargeFrames returns the error
}

func (f *blockFramer) node(root int32, stack dictionary.StackIndex) (int32, error) {
	if err := f.begin(); err != nil {
		return 0, err
	}
	locations := f.dict.Stacks.At(stack)
	frames := 0
	for _, location := range locations {
		frames += len(f.framesOf(location))
	}
	if err := f.b.chargeFrames(len(locations), frames); err != nil {
		return 0, err
	}
	node := root
	for i := len(locations) - 1; i >= 0; i-- {
		for _, frame := range f.framesOf(locations[i]) {
			node = f.b.child(node, frame)
		}
	}
	return node, nil
}

// framesOf returns the frames of a location, outermost first.
func (f *blockFramer) framesOf(location int32) []int32 {
	span := f.spans[location]
	if span.end == 0 {
		span = f.location(location)
	}
	return f.frames[span.start:span.end]
}

// stack returns up to most frames of a stack, leaf first.
func (f *blockFramer) stack(stack dictionary.StackIndex, most int) (frames []int32, err error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	for _, location := range f.dict.Stacks.At(stack) {
		of := f.framesOf(location)
		for i := len(of) - 1; i >= 0 && len(frames) < most; i-- {
			frames = append(frames, of[i])
		}
		if len(frames) == most {
			break
		}
	}
	return frames, f.b.memory.Grow(4 * cap(frames))
}

func (f *blockFramer) location(i int32) frameSpan {
	span := frameSpan{start: uint32(len(f.frames))}
	l, lines := f.dict.Locations.At(dictionary.LocationIndex(i))
	mapping := f.dict.Mappings.At(l.Mapping)
	base := Frame{Mapping: f.dict.Strings.At(mapping.Filename), BuildID: f.buildID(l.Mapping, mapping),
		Kind: f.kind(l, mapping)}
	binary := mapping.Filename
	f.take(9 * max(len(lines), 1))
	for k := len(lines) - 1; k >= 0; k-- {
		f.frames = append(f.frames, f.line(base, binary, lines[k], k < len(lines)-1))
	}
	if len(lines) == 0 {
		base.Name, base.Kind = AddressName(l.Address, base.Mapping), kindUnknown
		f.frames = append(f.frames, f.b.frameIndex(base))
	}
	span.end = uint32(len(f.frames))
	f.spans[i] = span
	return span
}

// AddressName returns the name of a frame without a function.
func AddressName(address uint64, mapping string) string {
	if mapping == "" {
		return fmt.Sprintf("0x%x", address)
	}
	return fmt.Sprintf("0x%x [%s]", address, model.Shorten(baseName(mapping)))
}

// baseName returns the last part of a path. It looks at the path's end alone: many locations can have a long one.
func baseName(file string) string { return path.Base(file[max(0, len(file)-4096):]) }

const unknownName = "(unknown)"

func nameOf(f *dictionary.Function) dictionary.StringIndex { return cmp.Or(f.Name, f.SystemName) }

// Begins reports whether the stack of a sample begins, at its root, with frames of the given names.
func (s *Samples) Begins(row int, names []string) bool {
	d := s.Dict
	for _, i := range slices.Backward(d.Stacks.At(dictionary.StackIndex(model.At(s.Stacks, row)))) {
		l, lines := d.Locations.At(dictionary.LocationIndex(i))
		for k := max(len(lines), 1) - 1; k >= 0; k-- {
			if len(names) == 0 {
				return true
			}
			var name string
			if len(lines) == 0 {
				name = AddressName(l.Address, d.Strings.At(d.Mappings.At(l.Mapping).Filename))
			} else {
				function := d.Functions.At(lines[k].Function)
				name = cmp.Or(d.Strings.At(nameOf(&function)), unknownName)
			}
			if name != names[0] {
				return false
			}
			names = names[1:]
		}
	}
	return len(names) == 0
}

// line returns the frame of a line, whose kind is the base's, or another by its name.
func (f *blockFramer) line(base Frame, binary dictionary.StringIndex, line dictionary.Line, inlined bool) int32 {
	function := f.dict.Functions.At(line.Function)
	name := nameOf(&function)
	base.Name, base.File, base.Line = f.dict.Strings.At(name), f.dict.Strings.At(function.Filename), line.Line
	if inlined && base.Kind == kindUser {
		base.Kind = kindInlined
	}
	if strings.HasPrefix(base.Name, "runtime.") &&
		(base.Kind == kindUser || base.Kind == kindInlined || base.Kind == "go") {
		base.Kind = kindRuntime
	}
	key := frameKey{name: f.number(name), file: f.number(cmp.Or(function.Filename, binary))}
	if name == 0 {
		base.Name, base.Kind = unknownName, kindUnknown
		key = frameKey{name: f.b.number(base.Name), file: f.number(function.Filename)}
	}
	key.kind = f.b.number(base.Kind)
	i := f.b.keyedFrame(key, base)
	if frame := &f.b.frames[i]; frame.Line != line.Line {
		frame.Line = function.StartLine
	}
	return i
}

func (f *blockFramer) number(i dictionary.StringIndex) int32 {
	if f.numbers[i] == 0 {
		f.numbers[i] = f.b.number(f.dict.Strings.At(i)) + 1
	}
	return f.numbers[i] - 1
}

// kind returns the location's profile.frame.type (semantic conventions), or what its mapping implies.
func (f *blockFramer) kind(l dictionary.Location, m dictionary.Mapping) string {
	for _, i := range f.dict.AttributeSets.At(l.Attributes) {
		if a := f.dict.Attributes.At(dictionary.AttributeIndex(i)); f.dict.Strings.At(a.Key) == "profile.frame.type" {
			return f.value(dictionary.AttributeIndex(i))
		}
	}
	if name := f.dict.Strings.At(m.Filename); strings.HasPrefix(name, "[kernel") || baseName(name) == "vmlinux" {
		return kindKernel
	}
	return kindUser
}

// value returns the start of an attribute's value as a string.
func (f *blockFramer) value(i dictionary.AttributeIndex) string {
	value, ok := f.values[i]
	if !ok {
		value = model.Shorten(f.dict.Attributes.At(i).Value.AsString())
		f.take(cacheBytes + len(value))
		f.values[i] = value
	}
	return value
}

func (f *blockFramer) buildID(index dictionary.MappingIndex, m dictionary.Mapping) string {
	id, ok := f.buildIDs[index]
	if ok {
		return id
	}
	for _, i := range f.dict.AttributeSets.At(m.Attributes) {
		a := f.dict.Attributes.At(dictionary.AttributeIndex(i))
		if strings.HasPrefix(f.dict.Strings.At(a.Key), "process.executable.build_id.") {
			id = f.value(dictionary.AttributeIndex(i))
			break
		}
	}
	f.take(cacheBytes)
	f.buildIDs[index] = id
	return id
}
