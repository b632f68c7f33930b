// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"path"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// Attributes of the semantic conventions that are read.
const (
	attributeBuildIDGNU     = "process.executable.build_id.gnu"
	attributeBuildIDGo      = "process.executable.build_id.go"
	attributeBuildIDHtlhash = "process.executable.build_id.htlhash"
	attributeFrameType      = "profile.frame.type"
	attributePID            = "process.pid"
)

// message is a message whose locations are being resolved. All of its profiles share the dictionary, so each location
// is looked up and changed once. Any index can be out of range.
type message struct {
	*symbolizer
	profiles   pprofile.Profiles
	dictionary pprofile.ProfilesDictionary

	mappings []mapping
	// hasProcesses reports that the mappings' processes are known.
	hasProcesses bool
	// frameKinds[i] is what attribute i is as the type of a frame.
	frameKinds []frameKind
	resolved   []resolvedLocation
	// named are mappings of frames that the eBPF profiler has named: Go programs, the kernel.
	named   []int32
	missing []missingLocation
	tally   tally
}

// mapping is an entry of the mapping table that a location refers to.
type mapping struct {
	isRead               bool
	module               *lookup.Module // nil if it is not of a file
	start, limit, offset uint64
	at                   []symbols.Position // addresses to request
	pids                 []int64
	finished             <-chan struct{}
	reason               lookup.Reason
}

type resolvedLocation struct {
	location int32
	answer   *lookup.Answer
	frames   []symbols.Frame // those of the answer that are written
}

type missingLocation struct {
	location, mapping int32
	at                symbols.Position
}

// symbolize looks up all locations without lines, and adds the functions that are known.
func (m *message) symbolize(ctx context.Context) {
	m.lookUp()
	if len(m.missing) > 0 {
		m.request()
		m.wait(ctx)
	}
	for _, l := range m.missing {
		m.unresolved(&m.mappings[l.mapping], m.mappings[l.mapping].reason)
	}
	if m.tally.lookups > 0 {
		m.metrics.count(ctx, &m.tally)
	}
	if len(m.resolved) > 0 || len(m.named) > 0 {
		m.write()
	}
}

// lookUp looks up every location that has an address and no lines in the cache.
func (m *message) lookUp() {
	locations := m.dictionary.LocationTable()
	for i := range locations.Len() {
		location := locations.At(i)
		if location.Lines().Len() > 0 {
			if i := location.MappingIndex(); i > 0 && m.frameKind(location.AttributeIndices()) != untyped {
				m.named = append(m.named, i)
			}
			continue
		}
		if location.Address() == 0 || m.frameKind(location.AttributeIndices()) == otherFrame {
			continue
		}
		m.tally.lookups++
		index := location.MappingIndex()
		if index <= 0 || int(index) >= m.dictionary.MappingTable().Len() {
			m.tally.unresolved[lookup.NotAFile]++
			continue
		}
		p := m.mapping(index)
		at, ok := p.position(location.Address())
		if !ok || p.module == nil {
			m.tally.unresolved[lookup.NotAFile]++
			continue
		}
		answer := m.resolver.Lookup(p.module, at)
		if answer != nil {
			m.tally.cached++
		}
		m.record(missingLocation{location: int32(i), mapping: index, at: at}, answer)
	}
}

// record records the result of a lookup: an answer, or nil if it has to be requested.
func (m *message) record(l missingLocation, answer *lookup.Answer) {
	switch {
	case answer == nil:
		m.missing = append(m.missing, l)
		p := &m.mappings[l.mapping]
		p.at = append(p.at, l.at)
	case len(answer.Frames) == 0:
		m.unresolved(&m.mappings[l.mapping], answer.Missing)
	default:
		m.tally.resolved[answer.Source]++
		m.resolved = append(m.resolved, resolvedLocation{location: l.location, answer: answer})
	}
}

func (m *message) unresolved(p *mapping, why lookup.Reason) {
	m.tally.unresolved[why]++
	p.module.AddUnresolved()
}

// frameKind is what the attributes of a location tell of it.
type frameKind byte

const (
	untyped     frameKind = iota // pprof, for example
	machineCode                  // its address is in the mapped file
	otherFrame                   // it is a frame of an interpreter or of the kernel
)

func (m *message) frameKind(indices pcommon.Int32Slice) frameKind {
	if m.frameKinds == nil {
		m.readFrameTypes()
	}
	kind := untyped
	for i := range indices.Len() {
		if a := indices.At(i); a >= 0 && int(a) < len(m.frameKinds) {
			kind = max(kind, m.frameKinds[a])
		}
	}
	return kind
}

func (m *message) readFrameTypes() {
	table := m.dictionary.AttributeTable()
	m.frameKinds = make([]frameKind, table.Len()+1)
	for i := range table.Len() {
		a := table.At(i)
		if otlp.StringAt(m.dictionary, a.KeyStrindex()) != attributeFrameType {
			continue
		}
		switch a.Value().AsString() {
		case "", "native", "go", "rust":
			m.frameKinds[i] = machineCode
		default:
			m.frameKinds[i] = otherFrame
		}
	}
}

// mapping reads entry i of the mapping table, which is within range.
func (m *message) mapping(i int32) *mapping {
	if m.mappings == nil {
		m.mappings = make([]mapping, m.dictionary.MappingTable().Len())
	}
	p := &m.mappings[i]
	if p.isRead {
		return p
	}
	entry := m.dictionary.MappingTable().At(int(i))
	p.isRead = true
	p.start, p.limit, p.offset = entry.MemoryStart(), entry.MemoryLimit(), entry.FileOffset()
	key := lookup.Key{IDs: m.buildIDs(entry.AttributeIndices())}
	name := otlp.StringAt(m.dictionary, entry.FilenameStrindex())
	if len(name) >= maxFileName {
		name = "" // no file has it, and the module would keep it
	}
	if key.IDs.IsEmpty() {
		if !sources.IsFileName(name) {
			return p
		}
		key.Path = path.Clean(name)
		if m.config.Sources.Files.WithoutBuildID {
			m.findProcesses()
			if len(p.pids) > 0 {
				key.PID = p.pids[0]
			}
		}
	}
	p.module = m.resolver.Module(key, name)
	return p
}

// maxFileName is the longest path that Linux opens.
const maxFileName = 4096

// maxBuildID is far above the longest id.
const maxBuildID = 256

func (m *message) buildIDs(indices pcommon.Int32Slice) (ids symbols.IDs) {
	keys := map[string]*string{
		attributeBuildIDGNU: &ids.GNU, attributeBuildIDGo: &ids.Go, attributeBuildIDHtlhash: &ids.Htlhash,
	}
	for key, v := range otlp.Attributes(m.dictionary, indices) {
		if to := keys[key]; to != nil && v.Type() == pcommon.ValueTypeStr && len(v.Str()) <= maxBuildID {
			*to = v.Str()
		}
	}
	ids.GNU, ids.Htlhash = strings.ToLower(ids.GNU), strings.ToLower(ids.Htlhash)
	return ids
}

// position returns the position of an address in the mapping's file, or false if it is outside of the mapping.
func (p *mapping) position(address uint64) (symbols.Position, bool) {
	if p.start == 0 && p.limit == 0 {
		return symbols.Position{Offset: address, Virtual: true}, true
	}
	if address < p.start || p.limit > p.start && address >= p.limit {
		return symbols.Position{}, false
	}
	return symbols.Position{Offset: address - p.start + p.offset, MappingOffset: p.offset}, true
}

func (m *message) request() {
	for i := range m.mappings {
		p := &m.mappings[i]
		if len(p.at) == 0 {
			continue
		}
		if reason, ok := m.resolver.Missing(p.module); ok {
			p.reason = reason
			continue
		}
		m.findProcesses()
		p.reason, p.finished = m.resolver.Request(p.module, p.at, p.pids)
	}
}

const (
	maxProcesses = 4
	// maxStackVisits bounds how often a stack is walked, so that a walk is proportional to the message.
	maxStackVisits = 4
)

// findProcesses finds the processes of each mapping, by the samples that refer to it, once for the message.
func (m *message) findProcesses() {
	if m.hasProcesses {
		return
	}
	m.hasProcesses = true
	pids := m.pidAttributes()
	stacks := m.dictionary.StackTable()
	visits := make([]uint8, stacks.Len())
	for _, rp := range m.profiles.ResourceProfiles().All() {
		ofResource := int64(0)
		if v, ok := rp.Resource().Attributes().Get(attributePID); ok && v.Type() == pcommon.ValueTypeInt {
			ofResource = v.Int()
		}
		if ofResource == 0 && len(pids) == 0 {
			continue
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				for _, sample := range p.Samples().All() {
					pid := ofResource
					for _, a := range sample.AttributeIndices().All() {
						if own, ok := pids[a]; ok {
							pid = own
						}
					}
					index := sample.StackIndex()
					if pid > 0 && index >= 0 && int(index) < len(visits) && visits[index] < maxStackVisits {
						visits[index]++
						m.addProcess(pid, stacks.At(int(index)).LocationIndices())
					}
				}
			}
		}
	}
}

// pidAttributes returns the process ids in the attribute table, by their index.
func (m *message) pidAttributes() map[int32]int64 {
	pids := map[int32]int64{}
	for i, a := range m.dictionary.AttributeTable().All() {
		if a.Value().Type() == pcommon.ValueTypeInt && otlp.StringAt(m.dictionary, a.KeyStrindex()) == attributePID {
			pids[int32(i)] = a.Value().Int()
		}
	}
	return pids
}

func (m *message) addProcess(pid int64, stack pcommon.Int32Slice) {
	locations := m.dictionary.LocationTable()
	for i := range stack.Len() {
		index := stack.At(i)
		if index < 0 || int(index) >= locations.Len() {
			continue
		}
		mapping := locations.At(int(index)).MappingIndex()
		if mapping <= 0 || int(mapping) >= len(m.mappings) {
			continue
		}
		if p := &m.mappings[mapping]; len(p.pids) < maxProcesses && !slices.Contains(p.pids, pid) {
			p.pids = append(p.pids, pid)
		}
	}
}

// wait waits for at most `max_wait` for the missing addresses, and looks them up again.
func (m *message) wait(ctx context.Context) {
	if m.config.MaxWait == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.config.MaxWait)
	defer cancel()
	defer context.AfterFunc(m.stopping, cancel)()
	// An address that is requested during a search is part of the next one.
	for range 2 {
		for i := range m.mappings {
			if finished := m.mappings[i].finished; finished != nil {
				select {
				case <-finished:
				case <-ctx.Done():
				}
			}
		}
		m.lookUpMissing()
		if len(m.missing) == 0 || ctx.Err() != nil {
			return
		}
		m.request()
	}
}

func (m *message) lookUpMissing() {
	missing := m.missing
	m.missing = nil
	for i := range m.mappings {
		m.mappings[i].at, m.mappings[i].finished = nil, nil
	}
	for _, l := range missing {
		m.record(l, m.resolver.Lookup(m.mappings[l.mapping].module, l.at))
	}
}
