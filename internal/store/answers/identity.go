// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/uninteresting"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file decides which frames of a tree are one function. A function is its name: the files of two builds differ by
// their folder, and those of a dependency by its version. Where one profile has two functions of a name, as Python has
// with __init__, or two binaries with static functions, the ends of their paths tell them apart: as many elements as
// they need.

// pathKey identifies the frames that have a name and a kind. name and kind are numbers of the builder's strings.
type pathKey struct{ name, kind int32 }

// pathKey returns the key of a frame. A function is the same whether it is inlined or called, which differs between its
// callers and between versions.
func (b *treeBuilder) pathKey(frame int32) pathKey {
	key := pathKey{b.keys[frame].name, b.keys[frame].kind}
	if b.frames[frame].Kind == kindInlined {
		key.kind = b.number(kindUser)
	}
	return key
}

// pathOf returns what tells functions of one name apart: the file, or the binary where there is none.
func pathOf(f *Frame) string { return cmp.Or(f.File, f.Mapping) }

// namesakes returns the frames of each name and kind that has several paths.
func (b *treeBuilder) namesakes() map[pathKey][]int32 {
	all := map[pathKey][]int32{}
	for i := range int32(len(b.keys)) {
		key := b.pathKey(i)
		all[key] = append(all[key], i)
	}
	for key, frames := range all {
		if len(frames) == 1 {
			delete(all, key)
		}
	}
	return all
}

const (
	// evidenceTime is how much of the end of a selection is searched for profiles that have two functions of a name, and
	// evidenceRows how many of its rows.
	evidenceTime = int64(10 * time.Minute)
	evidenceRows = 1 << 20
	// maxNamesakes bounds the functions of a name that are compared with each other.
	maxNamesakes = 64
	// namesakeBytes is the memory for a frame.
	namesakeBytes = 64
)

// unite makes one frame of all that are one function, and leaves out those of no interest.
func (s *Querier) unite(ctx context.Context, b *treeBuilder, sides []model.Selection, selected []*Selected) error {
	if err := b.memory.Grow(namesakeBytes * len(b.frames)); err != nil {
		return err
	}
	defer b.memory.Release(namesakeBytes * len(b.frames))
	same, dropped := b.namesakes(), b.uninterestingFrames()
	if len(same) == 0 && dropped == nil {
		return nil
	}
	e := evidence{b: b, elements: map[pathKey]int{}, isNamesake: make([]bool, len(b.frames))}
	for _, frames := range same {
		for _, i := range frames {
			e.isNamesake[i] = true
		}
	}
	for side, sel := range sides {
		if len(same) == 0 {
			break
		}
		if err := s.search(ctx, &e, sel, selected[side].Until); err != nil {
			return err
		}
	}
	to := make([]int32, len(b.frames))
	for i := range to {
		to[i] = int32(i)
	}
	for key, frames := range same {
		first := map[string]int32{}
		// The last path in alphabetical order is that of the newest version, most likely; in any case it is always the same
		// one.
		slices.SortFunc(frames, func(x, y int32) int { return strings.Compare(pathOf(&b.frames[y]), pathOf(&b.frames[x])) })
		for _, i := range frames {
			end := lastElements(pathOf(&b.frames[i]), e.elements[key])
			if at, ok := first[end]; ok {
				to[i] = at
				if b.frames[at].Line != b.frames[i].Line {
					b.frames[at].Line = 0
				}
				if b.frames[at].Kind != b.frames[i].Kind {
					b.frames[at].Kind = kindUser
				}
				continue
			}
			first[end] = i
		}
	}
	return b.replaceFrames(to, dropped)
}

// uninterestingFrames reports for each frame whether it is of no interest; it is nil if none is, or if that takes too
// long to find out.
func (b *treeBuilder) uninterestingFrames() (dropped []bool) {
	work := 0
	for i := range b.frames {
		f := &b.frames[i]
		work += b.uninteresting.Cost(f.Name)
		if work > uninteresting.MaxCost || b.memory.Check() != nil {
			return nil
		}
		if f.Kind != kindGroup && b.uninteresting.Matches(f.Name) {
			if dropped == nil {
				dropped = make([]bool, len(b.frames))
			}
			dropped[i] = true
		}
	}
	return dropped
}

// uninterestingOf returns the functions that the attributes of a profile name.
func uninterestingOf(p *ProfileFields) uninteresting.Functions {
	if p == nil {
		return uninteresting.Functions{}
	}
	return uninteresting.Of(func(yield func(string, dictionary.Value) bool) {
		for _, i := range p.Attributes {
			a := p.Dict.Attributes.At(dictionary.AttributeIndex(i))
			if !yield(p.Dict.Strings.At(a.Key), a.Value) {
				return
			}
		}
	})
}

// isCaller reports whether a node is a function, which can call one of no interest.
func (b *treeBuilder) isCaller(node int32) bool {
	return node > 0 && b.frames[b.frame[node]].Kind != kindGroup
}

// replaceFrames replaces each frame by another. Values of frames that are dropped, and of all below them, go to their
// callers.
func (b *treeBuilder) replaceFrames(to []int32, dropped []bool) error {
	isGone := make([]bool, len(b.parent))
	return b.moveNodes(func(i, parent int32) (int32, bool) {
		frame := b.frame[i]
		if frame == leftOut {
			return frame, !isGone[b.parent[i]]
		}
		isGone[i] = isGone[b.parent[i]] || dropped != nil && dropped[frame] && b.isCaller(parent)
		return to[frame], !isGone[i]
	})
}

// moveNodes moves nodes to the front, in their order, and adds up those that become the same. frameOf returns the new
// frame of a node, whose parent has moved already, or false if its values go to that.
func (b *treeBuilder) moveNodes(frameOf func(i, parent int32) (frame int32, stays bool)) error {
	n := len(b.parent)
	if err := cmp.Or(b.memory.Grow(movedNodeBytes*n), b.memory.Check()); err != nil {
		return err
	}
	defer b.memory.Release(movedNodeBytes * n)
	position := make([]int32, n)
	b.index.Reset(0)
	count := int32(1)
	for i := int32(1); int(i) < n; i++ {
		at := position[b.parent[i]]
		if frame, stays := frameOf(i, at); stays {
			known, p := b.find(at, frame)
			if known == 0 {
				known = count
				b.index.Insert(p, count)
				b.parent[count], b.frame[count] = at, frame
				count++
			}
			at = known
		}
		position[i] = at
	}
	b.parent, b.frame = b.parent[:count], b.frame[:count]
	for side := range b.self {
		moveValues(&b.self[side], position, count)
		moveValues(&b.fractions[side], position, count)
	}
	return b.memory.Check()
}

// moveValues adds the values of nodes to those of others, which are at or before them.
func moveValues[T int64 | float64](values *[]T, position []int32, count int32) {
	list := *values
	for i, v := range list {
		list[i] = 0
		list[position[i]] = otlp.SaturatingAdd(list[position[i]], v)
	}
	*values = list[:min(len(list), int(count))]
}

// movedNodeBytes is what a node takes while nodes are moved.
const movedNodeBytes = 5

// evidence is how many elements at the end of its path tell a function from the others of its name.
type evidence struct {
	b        *treeBuilder
	elements map[pathKey]int
	// isNamesake is for each frame of the tree.
	isNamesake []bool
	rows       int

	// Of the current profile: the frames found of each name, and the stacks that were looked at.
	found  map[pathKey][]int32
	stacks map[int32]bool
	of     profileID
}

type profileID struct {
	dict              *dictionary.Dictionary
	resource, profile dictionary.AttributeSetIndex
	time              int64
}

// search looks for profiles at the end of a selection that have several functions of one name.
func (s *Querier) search(ctx context.Context, e *evidence, sel model.Selection, end int64) error {
	sel.GroupBy, sel.From = "", max(sel.From, end-evidenceTime)
	selected, err := s.Select(ctx, &Query{Selection: sel, Want: Want{Stacks: true, Series: true}, Memory: e.b.memory})
	if err != nil {
		return cmp.Or(e.b.memory.Check(), ctx.Err()) // nothing is there
	}
	defer selected.Close()
	defer e.b.endBlock()
	e.of = profileID{}
	return selected.Read(e.read)
}

func (e *evidence) read(s *Samples) error {
	if id := (profileID{s.Dict, s.Resource, s.Profile, s.Time}); id != e.of {
		e.of, e.found, e.stacks = id, map[pathKey][]int32{}, map[int32]bool{}
	}
	if e.b.framer == nil || e.b.framer.dict != s.Dict {
		e.b.endBlock()
		e.b.framer = &blockFramer{b: e.b, dict: s.Dict}
	}
	for i := range s.Len() {
		stack := model.At(s.Stacks, i)
		if e.stacks[stack] || e.rows >= evidenceRows {
			continue
		}
		e.rows++
		e.stacks[stack] = true
		if err := e.stack(dictionary.StackIndex(stack)); err != nil {
			return err
		}
	}
	return nil
}

func (e *evidence) stack(stack dictionary.StackIndex) error {
	if err := e.b.framer.begin(); err != nil {
		return err
	}
	for _, location := range e.b.framer.dict.Stacks.At(stack) {
		for _, frame := range e.b.framer.framesOf(location) {
			if int(frame) < len(e.isNamesake) && e.isNamesake[frame] {
				e.add(e.b.pathKey(frame), frame)
			}
		}
	}
	return e.b.memory.Grow(0)
}

func (e *evidence) add(key pathKey, frame int32) {
	others := e.found[key]
	if slices.Contains(others, frame) || len(others) == maxNamesakes {
		return
	}
	path := pathOf(&e.b.frames[frame])
	for _, other := range others {
		if end := pathOf(&e.b.frames[other]); end != path {
			e.elements[key] = max(e.elements[key], 1+commonElements(path, end))
		}
	}
	e.found[key] = append(others, frame)
}

// maxPathBytes bounds what is compared of the end of a path.
const maxPathBytes = 4 << 10

// commonElements returns how many elements two paths have in common at their ends.
func commonElements(a, b string) (n int) {
	a, b = a[max(0, len(a)-maxPathBytes):], b[max(0, len(b)-maxPathBytes):]
	for a != "" && b != "" {
		i, k := strings.LastIndexAny(a, `/\`), strings.LastIndexAny(b, `/\`)
		if a[i+1:] != b[k+1:] {
			return n
		}
		a, b = a[:max(i, 0)], b[:max(k, 0)]
		n++
	}
	return n
}

// lastElements returns the last n elements of a path, or all if it has fewer.
func lastElements(path string, n int) string {
	at := len(path)
	for range n {
		if at = strings.LastIndexAny(path[:at], `/\`); at < 0 {
			return path
		}
	}
	if at == len(path) {
		return ""
	}
	return path[at+1:]
}
