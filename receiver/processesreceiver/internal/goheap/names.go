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

// maxAddresses bounds the addresses of a program whose frames are kept. A program with 10,000 buckets has about as many.
const maxAddresses = 200_000

// frame is a call. Names and files are indices of Names.strings.
type frame struct {
	name, file      uint32
	startLine, line int32
}

// Names turns addresses of a program into calls, and keeps them: a program has the same stacks each time. It is not for concurrent use.
type Names struct {
	image   *symbols.Image
	known   map[uint64][]frame
	indices map[string]uint32
	strings []string
}

// NewNames returns Names for a program. The image is borrowed.
func NewNames(image *symbols.Image) *Names {
	return &Names{image: image, known: map[uint64][]frame{}, indices: map[string]uint32{}}
}

// resolve finds the calls at addresses of the file.
func (n *Names) resolve(addresses []uint64) error {
	if len(n.known)+len(addresses) > maxAddresses {
		n.known, n.indices, n.strings = map[uint64][]frame{}, map[string]uint32{}, nil
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	addresses = slices.DeleteFunc(addresses, func(a uint64) bool { _, ok := n.known[a]; return ok })
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
			n.known[part[i]] = frames
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

// resolveAll finds the calls of all stacks. Stacks have return addresses: the call is before them.
func (n *Names) resolveAll(buckets []Bucket, bias uint64) error {
	var addresses []uint64
	seen := map[uint64]bool{}
	add := func(address uint64) {
		if !seen[address] {
			seen[address] = true
			addresses = append(addresses, address)
		}
	}
	for i := range buckets {
		isOutside := false
		for _, pc := range buckets[i].Stack {
			if pc == logicalStack {
				continue
			}
			add(pc - 1 - bias)
			// Which calls of the runtime are hidden depends on the address itself, as in runtime/pprof.
			if !isOutside {
				add(pc - bias)
			}
			isOutside = isOutside || buckets[i].Size == 0 || !n.isRuntimeAddress(pc-bias)
		}
	}
	return n.resolve(addresses)
}

// isRuntimeAddress reports whether an address may be in the runtime: unless it is known to be elsewhere.
func (n *Names) isRuntimeAddress(address uint64) bool {
	frames, ok := n.known[address]
	return !ok || n.isRuntime(frames)
}

func (n *Names) isRuntime(frames []frame) bool {
	if len(frames) == 0 {
		return false
	}
	name := n.strings[frames[0].name]
	return strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/runtime/")
}

// withoutRuntime returns a stack without the innermost calls if they are the runtime's. A stack of the runtime alone stays.
func (n *Names) withoutRuntime(stack []uint64, bias uint64) []uint64 {
	for i, pc := range stack {
		if !n.isRuntime(n.known[pc-bias]) {
			return stack[i:]
		}
	}
	return stack
}

// location is an address with its calls, innermost first.
type location struct {
	address uint64
	frames  []frame
}

// locations returns the locations of a stack. A stack may have an address for each inlined call, or one for all of a function: the calls
// of an address that its followers have are theirs.
func (n *Names) locations(stack []uint64, bias uint64, to []location) []location {
	if len(stack) > 0 && stack[0] == logicalStack {
		stack = stack[1:]
	}
	for i := 0; i < len(stack); {
		frames := n.known[stack[i]-1-bias]
		at := stack[i]
		i++
		for k := 1; k < len(frames) && i < len(stack) && slices.Equal(n.known[stack[i]-1-bias], frames[k:]); k++ {
			i++
		}
		if frames = n.visible(frames); len(frames) > 0 {
			to = append(to, location{address: at, frames: frames})
		}
	}
	return to
}

// visible returns the calls without those that the runtime never shows: the start of a goroutine, and wrappers into which a function was
// inlined.
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
