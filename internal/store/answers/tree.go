// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/uninteresting"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Frame is a function as a flame graph shows it.
type Frame struct {
	Name, File string
	// Line is the line of all its samples, if they have the same one, otherwise that of the function; 0 means unknown.
	Line             int64
	Mapping, BuildID string
	// Kind is kernel, runtime, inlined, unknown, group, the producer's word in profile.frame.type, or user.
	Kind string
}

// The kinds of frames that this package determines.
const (
	kindKernel  = "kernel"
	kindRuntime = "runtime"
	kindInlined = "inlined"
	kindUnknown = "unknown"
	kindUser    = "user"
	kindGroup   = "group"
)

// frameKey identifies a frame. file is that of its binary where it has none. Lines are not part of it, since they
// differ between versions of a program; in the end, files and binaries are only where they must (unite). Strings are
// numbered, since many frames can share a long one.
type frameKey struct{ name, file, kind int32 }

// Tree is a flame graph: columns of nodes, parents before their children, children of one parent in the order of their
// names. Node 0 is the root, whose frame is −1.
type Tree struct {
	Frames []Frame
	Frame  []int32
	Parent []int32
	// Self and Total are the values of the selection, BaseSelf and BaseTotal those of the base that it is compared
	// with.
	Self, Total         []int64
	BaseSelf, BaseTotal []int64
	// Truncated is the number of nodes that were left out. Their values are in their parents' totals.
	Truncated int
	// IsPruned reports that nodes were left out because all of them need more memory than a query can have. One that was
	// left out several times counts as often.
	IsPruned bool
}

type treeBuilder struct {
	memory  *model.Memory
	frames  []Frame
	keys    []frameKey
	byFrame map[frameKey]int32
	// strings has copies of the strings of frames, names has them by their numbers: dictionaries go with their blocks.
	strings map[string]int32
	names   []string
	// stringBytes is the memory of these.
	stringBytes int

	parent, frame []int32
	// self[side] has the values of the selection (0) or of its base (1).
	self      [2][]int64
	fractions [2][]float64
	index     dictionary.HashIndex
	// dropped counts the nodes above maxBuiltNodes: their values go to their parents.
	dropped int
	// extra counts the frames of all stacks so far beyond framesPerLocation. unchecked are those since chargeFrames has
	// checked the memory.
	extra, maxExtra, unchecked int
	// framer is that of the current dictionary.
	framer *blockFramer
	// parts is 0, or how many parts of the free memory there are, of which the tree has one.
	parts    int
	isPruned bool
	// namesOnly makes one frame of all functions with a name.
	namesOnly bool
	// uninteresting has the patterns of functions to leave out.
	uninteresting uninteresting.Functions
}

// maxBuiltNodes bounds a tree before its smallest nodes are left out, and so the memory of a query.
const maxBuiltNodes = 2 << 20

// nodeColumns is how many 32-bit numbers a node of a comparison has in a Tree.
const nodeColumns = 10

func newTreeBuilder(m *model.Memory) *treeBuilder {
	b := &treeBuilder{memory: m, maxExtra: maxExtraConstant}
	b.beginFrames()
	b.index.Reset(0)
	b.addNode(-1, -1)
	return b
}

// beginFrames begins without frames and strings.
func (b *treeBuilder) beginFrames() {
	b.frames, b.keys, b.byFrame = nil, nil, map[frameKey]int32{}
	b.strings, b.names, b.stringBytes = map[string]int32{}, nil, 0
}

const (
	// framesPerLocation is how many frames locations may have on average: a call, and those that are inlined in it.
	framesPerLocation = 8
	// The stacks of a query may have maxExtraConstant + the bytes of locations / extraBytes in further frames.
	maxExtraConstant = 256 << 10
	extraBytes       = 4
	// framesPerCheck is the number of frames between two checks of the memory.
	framesPerCheck = 1 << 16
)

// chargeFrames counts the frames of a stack before they are walked over. Few bytes can have many: a location has any
// number of lines, a stack has it any number of times, and any number of stacks have it.
func (b *treeBuilder) chargeFrames(locations, frames int) error {
	b.extra += max(0, frames-framesPerLocation*locations)
	if b.extra > b.maxExtra {
		return fmt.Errorf("%w: its stacks have more than %d inlined frames", model.ErrTooLarge, b.maxExtra)
	}
	if b.unchecked += frames; b.unchecked < framesPerCheck {
		return b.memory.Grow(0)
	}
	b.unchecked = 0
	return b.memory.Check()
}

func (b *treeBuilder) addNode(parent, frame int32) int32 {
	i := int32(len(b.parent))
	b.parent = append(b.parent, parent)
	b.frame = append(b.frame, frame)
	b.self[0] = append(b.self[0], 0)
	b.self[1] = append(b.self[1], 0)
	return i
}

// find returns the node of a frame below its parent, or 0 and where to insert it.
func (b *treeBuilder) find(parent, frame int32) (int32, dictionary.HashProbe) {
	p := b.index.Start(dictionary.Mix(0, uint64(uint32(parent))<<32|uint64(uint32(frame))))
	for e := b.index.Next(&p); e != 0; e = b.index.Next(&p) {
		if b.parent[e] == parent && b.frame[e] == frame {
			return e, p
		}
	}
	return 0, p
}

func (b *treeBuilder) child(parent, frame int32) int32 {
	e, p := b.find(parent, frame)
	if e != 0 {
		return e
	}
	if b.memory.Grow(nodeBytes) != nil {
		return parent // chargeFrames returns the error
	}
	if len(b.parent) >= maxBuiltNodes {
		b.dropped++
		return parent // add the value there instead
	}
	i := b.addNode(parent, frame)
	b.index.Insert(p, i)
	return i
}

func (b *treeBuilder) frameIndex(f Frame) int32 {
	path := f.File
	if f.Kind != kindUnknown {
		path = pathOf(&f)
	}
	return b.keyedFrame(frameKey{b.number(f.Name), b.number(path), b.number(f.Kind)}, f)
}

// number returns the number of a string, of which a new one is copied.
func (b *treeBuilder) number(s string) int32 {
	i, ok := b.strings[s]
	if !ok {
		s = strings.Clone(s)
		b.stringBytes += stringBytes + len(s)
		_ = b.memory.Grow(stringBytes + len(s)) // chargeFrames returns the error
		i = int32(len(b.names))
		b.strings[s] = i
		b.names = append(b.names, s)
	}
	return i
}

func (b *treeBuilder) keyedFrame(key frameKey, f Frame) int32 {
	if b.namesOnly {
		key, f = frameKey{name: key.name, file: b.number(""), kind: b.number("")}, Frame{Name: f.Name}
	}
	i, ok := b.byFrame[key]
	if !ok {
		_ = b.memory.Grow(frameBytes)
		f.Name, f.Kind = b.names[key.name], b.names[key.kind]
		if f.File != "" { // otherwise that of the key is the binary
			f.File = b.names[key.file]
		}
		f.Mapping, f.BuildID = b.names[b.number(f.Mapping)], b.names[b.number(f.BuildID)]
		i = int32(len(b.frames))
		b.frames, b.keys = append(b.frames, f), append(b.keys, key)
		b.byFrame[key] = i
	}
	return i
}

// stringRanks returns the position of each string in alphabetical order.
func (b *treeBuilder) stringRanks() []int32 {
	sorted := slices.Sorted(maps.Keys(b.strings))
	ranks := make([]int32, len(sorted))
	for rank, s := range sorted {
		ranks[b.strings[s]] = int32(rank)
	}
	return ranks
}

// add adds sums to the tree, below a node for their group if groupBy is set.
func (b *treeBuilder) add(s *Samples, groupBy string, side int) error {
	if b.framer == nil || b.framer.dict != s.Dict {
		b.endBlock()
		b.framer = &blockFramer{b: b, dict: s.Dict}
		b.maxExtra += s.Dict.Locations.MemoryBytes() / extraBytes
	}
	root := b.root(s, groupBy)
	for i := range s.Len() {
		if b.isFull() {
			if err := b.prune(); err != nil {
				return err
			}
			b.framer = &blockFramer{b: b, dict: s.Dict}
			root = b.root(s, groupBy)
		}
		node, err := b.framer.node(root, dictionary.StackIndex(model.At(s.Stacks, i)))
		if err != nil {
			return err
		}
		if s.Fractions == nil {
			b.self[side][node] = otlp.SaturatingAdd(b.self[side][node], s.Values[i])
			continue
		}
		b.addFraction(side, node, s.Fractions[i])
	}
	return nil
}

// root returns the node below which samples are added.
func (b *treeBuilder) root(s *Samples, groupBy string) int32 {
	if groupBy == "" {
		return 0
	}
	return b.child(0, b.frameIndex(Frame{Name: groupBy + "=" + s.Group, Kind: kindGroup}))
}

// endBlock frees what is known of the current dictionary.
func (b *treeBuilder) endBlock() {
	if b.framer != nil {
		b.framer.end()
		b.framer = nil
	}
}
