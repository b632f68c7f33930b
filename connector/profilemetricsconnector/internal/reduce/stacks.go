// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
)

// stackBits is what a stack matches, in bits of the set's patterns.
type stackBits struct {
	// leaf is what its leaf matches, callers what the other frames do.
	leaf, callers uint64
	// below are the metrics whose functions are below those that they have to be below.
	below uint64
	state state
}

// locationBits is the same for a location.
type locationBits struct {
	leaf, callers, below uint64
	state                state
}

type state uint8

const (
	unknown state = iota
	known
	broken
)

// matcher finds what stacks match: each pattern is tried once for each string, each location and each stack is combined once.
type matcher struct {
	set       *selection.Set
	cache     nameCache
	dict      pprofile.ProfilesDictionary
	names     []nameBits
	locations []locationBits
	stacks    []stackBits
}

type nameBits struct {
	bits  uint64
	state state
}

func (m *matcher) begin(d pprofile.ProfilesDictionary) {
	m.dict = d
	if len(m.set.Patterns) == 0 {
		return
	}
	m.names = frames.Zeroed(m.names, d.StringTable().Len())
	m.locations = frames.Zeroed(m.locations, d.LocationTable().Len())
	m.stacks = frames.Zeroed(m.stacks, d.StackTable().Len())
}

// stack returns what a stack matches. ok is false if it has an index out of range.
func (m *matcher) stack(i int32) (bits *stackBits, ok bool) {
	if uint(i) >= uint(len(m.stacks)) {
		return &stackBits{}, i == 0
	}
	s := &m.stacks[i]
	if s.state == unknown {
		s.state = known
		if !m.resolve(i, s) {
			*s = stackBits{state: broken}
		}
	}
	return s, s.state == known
}

func (m *matcher) resolve(i int32, s *stackBits) bool {
	indices := m.dict.StackTable().At(int(i)).LocationIndices()
	for k := range indices.Len() {
		l, ok := m.location(indices.At(k))
		if !ok {
			return false
		}
		before := s.leaf | s.callers
		s.below |= l.below
		for _, metric := range m.set.Below {
			if before&metric.FunctionBits != 0 && (l.leaf|l.callers)&metric.BelowBits != 0 {
				s.below |= metric.BelowBit
			}
		}
		if k == 0 {
			s.leaf, s.callers = l.leaf, l.callers
		} else {
			s.callers |= l.leaf | l.callers
		}
	}
	return true
}

func (m *matcher) location(i int32) (bits *locationBits, ok bool) {
	if uint(i) >= uint(len(m.locations)) {
		return &locationBits{}, false
	}
	l := &m.locations[i]
	if l.state != unknown {
		return l, l.state == known
	}
	l.state = known
	lines := m.dict.LocationTable().At(int(i)).Lines()
	for k := range lines.Len() {
		bits, ok := m.function(lines.At(k).FunctionIndex())
		if !ok {
			*l = locationBits{state: broken}
			return l, false
		}
		before := l.leaf | l.callers
		for _, metric := range m.set.Below {
			if before&metric.FunctionBits != 0 && bits&metric.BelowBits != 0 {
				l.below |= metric.BelowBit
			}
		}
		if k == 0 {
			l.leaf = bits
		} else {
			l.callers |= bits
		}
	}
	return l, true
}

func (m *matcher) function(i int32) (bits uint64, ok bool) {
	functions := m.dict.FunctionTable()
	if uint(i) >= uint(functions.Len()) {
		return 0, i == 0
	}
	function := functions.At(int(i))
	name := function.NameStrindex()
	if name == 0 {
		name = function.SystemNameStrindex()
	}
	return m.name(name)
}

// name returns what a string matches.
func (m *matcher) name(i int32) (bits uint64, ok bool) {
	if uint(i) >= uint(len(m.names)) {
		return 0, i == 0
	}
	n := &m.names[i]
	if n.state == unknown {
		*n = nameBits{m.cache.match(m.set, m.dict.StringTable().At(int(i))), known}
	}
	return n.bits, true
}

// nameCache remembers what names match from one message to the next, since their functions are mostly the same.
type nameCache struct {
	bits  map[string]uint64
	bytes int
}

const (
	maxCacheBytes  = 2 << 20
	maxCachedName  = 1024
	cacheEntrySize = 64
)

func (c *nameCache) match(set *selection.Set, name string) uint64 {
	if bits, ok := c.bits[name]; ok {
		return bits
	}
	var bits uint64
	for i, pattern := range set.Patterns {
		if pattern.MatchString(name) {
			bits |= 1 << i
		}
	}
	if len(name) > maxCachedName {
		return bits
	}
	if c.bytes += len(name) + cacheEntrySize; c.bits == nil || c.bytes > maxCacheBytes {
		c.bits, c.bytes = map[string]uint64{}, len(name)+cacheEntrySize
	}
	c.bits[strings.Clone(name)] = bits
	return bits
}
