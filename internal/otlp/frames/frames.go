// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package frames finds the functions of the stacks of one message: Leaf the one that was running, All each one that was
// on the stack, Package the package of a name. Functions are numbered by the string of their name, so that a caller can
// keep sums in slices.
package frames

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Unknown is the name of a function that has none.
const Unknown = "[unknown]"

// Fault is why the functions of a stack are not known.
type Fault uint8

// The faults. Index is an index out of range, Expansion means that the stacks of the message share their frames too
// often.
const (
	None Fault = iota
	Index
	Expansion
)

// Stacks share locations, and locations share lines: all of them may have as many frames as roomFactor times the
// entries of the message, and minRoom.
const (
	roomFactor = 64
	minRoom    = 1 << 20
	// spentPerFrame is how much more the first visit of a frame costs than a later one.
	spentPerFrame = 4
)

// Frames resolves the stacks of a message. One goroutine uses it.
type Frames struct {
	strings   pcommon.StringSlice
	functions pprofile.FunctionSlice
	locations pprofile.LocationSlice
	stacks    pprofile.StackSlice

	// leaves has the name of each stack's leaf and 2, or 0 for a stack that has not been asked for, or 1 for one that has
	// a bad index.
	leaves []int32
	// names has the names of those stacks that All has been asked for, and spans where those of each stack are.
	names []int32
	spans []span
	// seen[name] is the number of the stack in which All has found it last.
	seen    []uint32
	stack   uint32
	room    int
	samples int
	// drop reports whether a function is left out; nil leaves out none.
	drop    func(name string) bool
	dropped map[int32]bool
	// begin is where the names of the stack begin that is being read, isDropped whether its last one is left out unless it
	// has no caller.
	begin     int
	isDropped bool
}

// span is a range of names. fault says why a stack has none. end is 0 until All is called for the stack.
type span struct {
	begin, end int
	fault      Fault
}

// Begin begins another message, of a number of samples.
func (f *Frames) Begin(d pprofile.ProfilesDictionary, samples int) {
	f.strings, f.functions, f.locations, f.stacks = d.StringTable(), d.FunctionTable(), d.LocationTable(), d.StackTable()
	f.leaves = Zeroed(f.leaves, f.stacks.Len())
	f.spans, f.names = f.spans[:0], append(f.names[:0], 0)
	f.room, f.samples, f.drop = -1, samples, nil
}

// Drop leaves out the functions of a message that matches reports, with all that they call, where another one calls
// them. It must be called before the first stack is asked for.
func (f *Frames) Drop(matches func(name string) bool) { f.drop, f.dropped = matches, map[int32]bool{} }

// Zeroed returns n zeros, in memory that is reused if it is not much larger: one large message keeps none.
func Zeroed[T any](s []T, n int) []T {
	const spare = 1 << 16
	if cap(s) < n || cap(s) > 4*n+spare {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Name returns a name by its index.
func (f *Frames) Name(name int32) string {
	if name > 0 && int(name) < f.strings.Len() {
		if s := f.strings.At(int(name)); s != "" {
			return s
		}
	}
	return Unknown
}

// Names returns the number of names, 0 included.
func (f *Frames) Names() int { return f.strings.Len() }

// Leaf returns the name of the function that was running. It is the innermost of those that were inlined.
func (f *Frames) Leaf(stack int32) (name int32, fault Fault) {
	if f.drop != nil {
		names, fault := f.All(stack)
		if fault != None {
			return 0, fault
		}
		return names[0], None
	}
	if uint(stack) >= uint(len(f.leaves)) {
		if stack == 0 {
			return 0, None
		}
		return 0, Index
	}
	if known := f.leaves[stack]; known != 0 {
		if known == 1 {
			return 0, Index
		}
		return known - 2, None
	}
	name, fault = f.leaf(stack)
	f.leaves[stack] = 1
	if fault == None {
		f.leaves[stack] = name + 2
	}
	return name, fault
}

func (f *Frames) leaf(stack int32) (int32, Fault) {
	indices := f.stacks.At(int(stack)).LocationIndices()
	if indices.Len() == 0 {
		return 0, None
	}
	i := indices.At(0)
	if uint(i) >= uint(f.locations.Len()) {
		return 0, Index
	}
	lines := f.locations.At(int(i)).Lines()
	if lines.Len() == 0 {
		return 0, None
	}
	return f.function(lines.At(0).FunctionIndex())
}

// function returns the name of a function, or 0 if it has none.
func (f *Frames) function(i int32) (int32, Fault) {
	if uint(i) >= uint(f.functions.Len()) {
		if i == 0 {
			return 0, None
		}
		return 0, Index
	}
	function := f.functions.At(int(i))
	name := function.NameStrindex()
	if name == 0 {
		name = function.SystemNameStrindex()
	}
	if uint(name) >= uint(f.strings.Len()) && name != 0 {
		return 0, Index
	}
	return name, None
}

// All returns the names of the functions of a stack, each once, in the order of the stack. They are valid until the
// next message.
func (f *Frames) All(stack int32) ([]int32, Fault) {
	if f.room < 0 {
		f.room = minRoom + roomFactor*f.entries()
		f.spans = Zeroed(f.spans, max(f.stacks.Len(), 1))
		f.seen = Zeroed(f.seen, f.strings.Len()+1)
		f.stack = 0
	}
	if uint(stack) >= uint(len(f.spans)) {
		return nil, Index
	}
	s := &f.spans[stack]
	if s.end == 0 {
		begin := len(f.names)
		if fault := f.resolve(stack); fault == Expansion {
			f.names = f.names[:begin]
			return nil, fault
		} else if fault != None {
			f.names = f.names[:begin]
			*s = span{0, 1, fault}
		} else {
			*s = span{begin, len(f.names), None}
		}
	}
	if s.fault != None {
		return nil, s.fault
	}
	if !f.Spend(s.end - s.begin) {
		return nil, Expansion
	}
	return f.names[s.begin:s.end], None
}

// Spend takes room for work on a number of frames, and reports whether there was enough.
func (f *Frames) Spend(frames int) bool {
	f.room = max(f.room-frames, 0)
	return f.room > 0
}

func (f *Frames) resolve(stack int32) Fault {
	f.stack++
	f.begin, f.isDropped = len(f.names), false
	if int(stack) >= f.stacks.Len() || f.stacks.At(int(stack)).LocationIndices().Len() == 0 {
		f.add(0)
		return None
	}
	locations := f.stacks.At(int(stack)).LocationIndices()
	for k := range locations.Len() {
		i := locations.At(k)
		if uint(i) >= uint(f.locations.Len()) {
			return Index
		}
		lines := f.locations.At(int(i)).Lines()
		if !f.Spend(spentPerFrame * (1 + lines.Len())) {
			return Expansion
		}
		if lines.Len() == 0 {
			f.add(0)
		}
		for n := range lines.Len() {
			name, fault := f.function(lines.At(n).FunctionIndex())
			if fault != None {
				return fault
			}
			f.add(name)
		}
	}
	return None
}

func (f *Frames) add(name int32) {
	if f.drop != nil {
		wasDropped := f.isDropped
		if f.isDropped = f.matches(name); wasDropped && !f.isDropped {
			f.names = f.names[:f.begin]
			f.stack++
		}
	}
	if f.seen[name] != f.stack {
		f.seen[name] = f.stack
		f.names = append(f.names, name)
	}
}

// matches reports whether functions of a name are left out.
func (f *Frames) matches(name int32) bool {
	matches, ok := f.dropped[name]
	if !ok {
		matches = f.drop(f.Name(name))
		f.dropped[name] = matches
	}
	return matches
}

// entries counts what the message has of samples and frames.
func (f *Frames) entries() int {
	n := f.samples
	for _, stack := range f.stacks.All() {
		n += stack.LocationIndices().Len()
	}
	for _, location := range f.locations.All() {
		n += location.Lines().Len()
	}
	return n
}

// Package returns the package, module or class that a function's name begins with: net/http of net/http.(*conn).serve,
// com.shop.Cart of com.shop.Cart.add, app::cart of app::cart::add. It is the whole name if that has no such part.
func Package(function string) string {
	end := len(function)
	if i := strings.IndexAny(function, "(<[ "); i > 0 { // arguments, type parameters, a receiver
		end = i
	}
	name := strings.TrimRight(function[:end], ".:")
	if name != function[:end] { // a receiver follows the package
		return name
	}
	slash := strings.LastIndexByte(name, '/') + 1
	if i := strings.LastIndex(name[slash:], "::"); i > 0 {
		return name[:slash+i]
	}
	base := name[slash:]
	if slash > 0 { // Go: what follows the first dot is not part of the package
		if i := strings.IndexByte(base, '.'); i > 0 {
			return name[:slash+i]
		}
		return name
	}
	if i := strings.LastIndexByte(base, '.'); i > 0 {
		return base[:i]
	}
	return name
}
