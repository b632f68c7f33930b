// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
)

// matched is what the frames of a location or a stack match, in bits of the set's patterns.
type matched struct {
	// leaf is what the innermost frame matches, callers what the other frames do.
	leaf, callers uint64
	// below are the metrics whose condition `below` the stack meets.
	below uint64
	state state
}

type state uint8

const (
	unknown state = iota
	known
	broken
)

// call adds the frames that called those before. There are none before the first.
func (m *matched) call(callers matched, isFirst bool, below []*selection.Metric) {
	before, after := m.leaf|m.callers, callers.leaf|callers.callers
	m.below |= callers.below
	for _, metric := range below {
		if before&metric.FunctionBits != 0 && after&metric.BelowBits != 0 {
			m.below |= metric.BelowBit
		}
	}
	if isFirst {
		m.leaf, m.callers = callers.leaf, callers.callers
	} else {
		m.callers |= after
	}
}

// matcher finds what stacks match: each pattern is tried once for each string, each location and each stack is combined
// once.
type matcher struct {
	set               *selection.Set
	cache             nameCache
	dict              pprofile.ProfilesDictionary
	names             []nameBits
	locations, stacks []matched
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
func (m *matcher) stack(i int32) (bits *matched, ok bool) {
	if uint(i) >= uint(len(m.stacks)) {
		return &matched{}, i == 0
	}
	s := &m.stacks[i]
	if s.state == unknown {
		s.state = known
		indices := m.dict.StackTable().At(int(i)).LocationIndices()
		for k := range indices.Len() {
			location, ok := m.location(indices.At(k))
			if !ok {
				*s = matched{state: broken}
				break
			}
			s.call(*location, k == 0, m.set.Below)
		}
	}
	return s, s.state == known
}

func (m *matcher) location(i int32) (bits *matched, ok bool) {
	if uint(i) >= uint(len(m.locations)) {
		return nil, false
	}
	l := &m.locations[i]
	if l.state == unknown {
		l.state = known
		lines := m.dict.LocationTable().At(int(i)).Lines()
		for k := range lines.Len() {
			function, ok := m.function(lines.At(k).FunctionIndex())
			if !ok {
				*l = matched{state: broken}
				break
			}
			l.call(matched{leaf: function}, k == 0, m.set.Below)
		}
	}
	return l, l.state == known
}

func (m *matcher) function(i int32) (bits uint64, ok bool) {
	functions := m.dict.FunctionTable()
	if uint(i) >= uint(functions.Len()) {
		return 0, i == 0
	}
	function := functions.At(int(i))
	return m.name(cmp.Or(function.NameStrindex(), function.SystemNameStrindex()))
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
