// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// maxAddresses bounds the addresses of a program whose frames are kept. A program with 10,000 buckets has about as
// many.
const maxAddresses = 200_000

// frame is a call. Names and files are indices of Names.strings.
type frame struct {
	name, file      uint32
	startLine, line int32
}

// location is an address with its calls, innermost first.
type location struct {
	address uint64
	frames  []frame
}

// calls are those at an address: all, and those that are shown.
type calls struct {
	all, shown []frame
	isRuntime  bool
	// location is that of the address, if isLocation.
	location   uint32
	isLocation bool
}

// Names turns addresses of a program into calls, and keeps them: a program has the same stacks each time. It is not for
// concurrent use.
type Names struct {
	image   *symbols.Image
	known   map[uint64]*calls
	indices map[string]uint32
	strings []string
	// locations are numbered: buckets have these numbers until Reset.
	locations []location
}

// NewNames returns Names for a program. The image is borrowed.
func NewNames(image *symbols.Image) *Names {
	n := &Names{image: image}
	n.Reset()
	return n
}

// Reset forgets everything.
func (n *Names) Reset() {
	n.known, n.indices, n.strings, n.locations = map[uint64]*calls{}, map[string]uint32{}, nil, nil
}

// IsFull reports that there are so many addresses that Reset is due. Buckets that were kept must be forgotten then.
func (n *Names) IsFull() bool { return len(n.known) > maxAddresses }

// resolve finds the calls at addresses of the file.
func (n *Names) resolve(addresses []uint64) error {
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	const batch = 1 << 12
	for part := range slices.Chunk(addresses, batch) {
		resolved, err := n.image.Resolve(part, false)
		if errors.Is(err, symbols.ErrTooMuchWork) {
			return err
		}
		for i, r := range resolved {
			frames := make([]frame, len(r.Frames))
			for k, f := range r.Frames {
				frames[k] = frame{
					name: n.index(f.Name), file: n.index(f.File), startLine: int32(f.StartLine), line: int32(f.Line),
				}
			}
			n.known[part[i]] = &calls{all: frames, shown: n.visible(frames), isRuntime: n.isRuntime(frames)}
		}
	}
	return nil
}

func (n *Names) index(s string) uint32 {
	i, ok := n.indices[s]
	if !ok {
		i = uint32(len(n.strings))
		n.strings = append(n.strings, s)
		n.indices[s] = i
	}
	return i
}

// logicalStack begins a stack of the runtime that has an address for each call, inlined ones included.
const logicalStack = ^uint64(0)

// locate finds the locations of all buckets that do not have them.
func (n *Names) locate(buckets []*Bucket, bias uint64) error {
	if err := n.resolveAll(buckets, bias); err != nil {
		return err
	}
	for _, b := range buckets {
		if b.Stack == nil {
			continue
		}
		stack := b.Stack
		if b.kind == Memory {
			stack = n.withoutRuntime(stack, bias)
		}
		b.locations = n.locationsOf(stack, bias)
		if len(b.locations) == 0 {
			b.locations = n.locationsOf(b.Stack, bias)
		}
		b.Stack = nil
	}
	return nil
}

// resolveAll finds the calls of all stacks. Stacks have return addresses: the call is before them.
func (n *Names) resolveAll(buckets []*Bucket, bias uint64) error {
	var addresses []uint64
	add := func(address uint64) {
		if n.known[address] == nil {
			addresses = append(addresses, address)
		}
	}
	for _, b := range buckets {
		isOutside := b.kind != Memory
		for _, pc := range b.Stack {
			if pc == logicalStack {
				continue
			}
			add(pc - 1 - bias)
			// Which calls of the runtime are hidden depends on the address itself, as in runtime/pprof.
			if !isOutside {
				add(pc - bias)
				known := n.known[pc-bias]
				isOutside = known != nil && !known.isRuntime
			}
		}
	}
	return n.resolve(addresses)
}

func (n *Names) isRuntime(frames []frame) bool {
	if len(frames) == 0 {
		return false
	}
	name := n.strings[frames[0].name]
	return strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/runtime/")
}

// withoutRuntime returns a stack without the innermost calls if they are the runtime's. A stack of the runtime alone
// stays.
func (n *Names) withoutRuntime(stack []uint64, bias uint64) []uint64 {
	for i, pc := range stack {
		if !n.known[pc-bias].isRuntime {
			return stack[i:]
		}
	}
	return stack
}

// locationsOf returns the locations of a stack. A stack may have an address for each inlined call, or one for all of a
// function: the calls of an address that its followers have are theirs.
func (n *Names) locationsOf(stack []uint64, bias uint64) []uint32 {
	if len(stack) > 0 && stack[0] == logicalStack {
		stack = stack[1:]
	}
	locations := make([]uint32, 0, len(stack))
	for i := 0; i < len(stack); {
		at := stack[i] - bias
		found := n.known[at-1]
		i++
		for k := 1; k < len(found.all) && i < len(stack) && slices.Equal(n.known[stack[i]-1-bias].all, found.all[k:]); k++ {
			i++
		}
		if len(found.shown) == 0 {
			continue
		}
		if !found.isLocation {
			found.isLocation, found.location = true, uint32(len(n.locations))
			n.locations = append(n.locations, location{address: at, frames: found.shown})
		}
		locations = append(locations, found.location)
	}
	return locations
}

// visible returns the calls without those that the runtime never shows: the start of a goroutine, and wrappers into
// which a function was inlined.
func (n *Names) visible(frames []frame) []frame {
	if len(frames) == 1 && n.strings[frames[0].name] == "runtime.goexit" {
		return nil
	}
	if len(frames) > 1 && slices.ContainsFunc(frames[1:], n.isWrapper) {
		return append(frames[:1:1], slices.DeleteFunc(slices.Clone(frames[1:]), n.isWrapper)...)
	}
	return frames
}

// wrapper matches the names of closures that the compiler makes of the statements go and defer, and of method values.
var wrapper = regexp.MustCompile(`(\.(deferwrap|gowrap)[0-9]+|·dwrap·[0-9]+|-fm)$`)

// isWrapper reports whether the compiler wrote a function.
func (n *Names) isWrapper(f frame) bool {
	return n.strings[f.file] == "<autogenerated>" || wrapper.MatchString(n.strings[f.name])
}
