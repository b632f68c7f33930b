// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

var (
	errNoAsync         = errors.New("queries are answered synchronously: leave out `async`")
	errNoSpanExemplars = errors.New("series have exemplars of profiles, not of spans: use SelectHeatmap")
	errNoFrameFilter   = errors.New("stack_trace_selector supports only `call_site` and `go_pgo`")
)

// SelectMergeProfile merges profiles to a pprof.
func (q *Querier) SelectMergeProfile(
	ctx context.Context, r *connect.Request[querierv1.SelectMergeProfileRequest],
) (*connect.Response[profilev1.Profile], error) {
	in := r.Msg
	p, err := q.pprof(ctx, &querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: in.ProfileTypeID, LabelSelector: in.LabelSelector, Start: in.Start, End: in.End, MaxNodes: in.MaxNodes,
		StackTraceSelector: in.StackTraceSelector, ProfileIdSelector: in.ProfileIdSelector,
		TraceIdSelector: in.TraceIdSelector,
	})
	return respond(p, err)
}

// pprof merges profiles to a pprof of one sample type, without labels.
func (q *Querier) pprof(ctx context.Context, in *querierv1.SelectMergeStacktracesRequest) (*profilev1.Profile, error) {
	s, err := q.selected(ctx, in)
	if err != nil || len(s.series) == 0 {
		return &profilev1.Profile{}, err
	}
	p := &profilev1.Profile{}
	err = q.Store.MergeQuery(ctx, s.query(answers.Want{Stacks: true}), s.keep(), func(merged *answers.Merged) (err error) {
		if merged.Count > 0 && merged.SampleCount() > 0 {
			p, err = message(ctx, in, merged)
		}
		return err
	})
	return p, err
}

// message returns profiles as a pprof.
func message(ctx context.Context, in *querierv1.SelectMergeStacktracesRequest,
	merged *answers.Merged) (*profilev1.Profile, error) {
	meter := meterOf(ctx)
	if err := meter.Grow(encode.Bytes(merged.Profiles)); err != nil {
		return nil, err
	}
	encoded, stats, err := encode.Encode(merged.Profiles)
	if err != nil {
		return nil, err
	}
	if stats.Dropped > 0 || len(encoded) != 1 {
		return nil, model.ErrTooLarge
	}
	if err := meter.Grow(messageFactor * len(encoded[0].Bytes)); err != nil {
		return nil, err
	}
	p := &profilev1.Profile{}
	if err := p.UnmarshalVT(encoded[0].Bytes); err != nil {
		return nil, err
	}
	c := &cutter{p: p, meter: meter}
	if pgo := in.GetStackTraceSelector().GetGoPgo(); pgo != nil {
		err = c.forPGO(pgo)
	} else if in.GetMaxNodes() > 0 {
		err = c.cut(in.GetMaxNodes())
	}
	return p, err
}

// messageFactor is how many bytes of memory a byte of a pprof takes as a message.
const messageFactor = 12

// selectStacks selects the stacks of a selector. What this service does not know of it is refused, instead of an answer
// that has too much.
func (s *selection) selectStacks(in *typesv1.StackTraceSelector) error {
	if in != nil && len(in.ProtoReflect().GetUnknown()) > 0 {
		return connect.NewError(connect.CodeUnimplemented, errNoFrameFilter)
	}
	if in.GetGoPgo() != nil {
		return nil // then call_site does not count
	}
	for _, site := range in.GetCallSite() {
		s.sites = append(s.sites, site.GetName())
	}
	return nil
}

// cutter shortens the stacks of a pprof.
type cutter struct {
	p     *profilev1.Profile
	meter *size.Meter
	// locations are those of the pprof by their ids.
	locations map[uint64]*profilev1.Location
	lastID    uint64
}

func (c *cutter) index() error {
	c.locations = make(map[uint64]*profilev1.Location, len(c.p.Location))
	for _, l := range c.p.Location {
		c.locations[l.Id] = l
		c.lastID = max(c.lastID, l.Id)
	}
	return c.meter.Grow(cacheBytes * len(c.p.Location))
}

func (c *cutter) add(l *profilev1.Location) uint64 {
	c.lastID++
	l.Id = c.lastID
	c.locations[l.Id] = l
	c.p.Location = append(c.p.Location, l)
	return l.Id
}

// cut cuts the small ends of stacks, as Pyroscope does: nodes of the tree of functions are small if they are below the
// value of the most-th largest. A stack keeps the location of its first small function, and what is below that becomes
// a location named other. Stacks without a function that is large enough become one sample.
func (c *cutter) cut(most int64) error {
	if err := c.index(); err != nil {
		return err
	}
	t := functionTree{nodes: map[functionEdge]int32{}, totals: []int64{0}}
	for _, s := range c.p.Sample {
		before, at := len(t.totals), int32(0)
		for function := range c.functions(s) {
			at = t.child(at, function)
			t.totals[at] = otlp.SaturatingAdd(t.totals[at], s.Value[0])
		}
		if err := c.meter.Grow(cacheBytes * (len(t.totals) - before)); err != nil {
			return err
		}
	}
	if most >= int64(len(t.totals)) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(t.totals))
	least := sorted[len(sorted)-int(most)]
	left := uint64(0)
	for _, s := range c.p.Sample {
		below := c.cutAt(s, &t, least)
		if below == 0 {
			continue
		}
		if left == 0 {
			left = c.add(c.other())
		}
		s.LocationId = append([]uint64{left}, s.LocationId[below:]...)
	}
	return c.finish()
}

// cutAt returns how many locations of a stack are below its first small function, or 0 if there are none to cut.
func (c *cutter) cutAt(s *profilev1.Sample, t *functionTree, least int64) (below int) {
	large, at := 0, int32(0)
	for function := range c.functions(s) {
		if at = t.child(at, function); t.totals[at] >= least {
			large++
			continue
		}
		below = len(s.LocationId)
		for n := 0; large > 0 && below > 0 && n <= large; below-- {
			n += len(c.locations[s.LocationId[below-1]].GetLine())
		}
		return below
	}
	return 0
}

// functions returns the functions of a stack from the root on.
func (c *cutter) functions(s *profilev1.Sample) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, id := range slices.Backward(s.LocationId) {
			for _, line := range slices.Backward(c.locations[id].GetLine()) {
				if !yield(line.FunctionId) {
					return
				}
			}
		}
	}
}

// functionTree is a tree of functions with the totals of its nodes.
type functionTree struct {
	nodes  map[functionEdge]int32
	totals []int64
}

type functionEdge struct {
	parent   int32
	function uint64
}

func (t *functionTree) child(parent int32, function uint64) int32 {
	key := functionEdge{parent, function}
	node, ok := t.nodes[key]
	if !ok {
		node = int32(len(t.totals))
		t.nodes[key], t.totals = node, append(t.totals, 0)
	}
	return node
}

func (c *cutter) other() *profilev1.Location {
	f := &profilev1.Function{Id: 1, Name: int64(len(c.p.StringTable)), SystemName: int64(len(c.p.StringTable))}
	for _, in := range c.p.Function {
		f.Id = max(f.Id, in.Id+1)
	}
	c.p.StringTable, c.p.Function = append(c.p.StringTable, other), append(c.p.Function, f)
	return &profilev1.Location{Line: []*profilev1.Line{{FunctionId: f.Id}}}
}

// forPGO makes a pprof for profile-guided optimization of Go: of each stack, only the leaf and its callers. If callees
// are aggregated, a leaf is its function, wherever in that it was.
func (c *cutter) forPGO(in *typesv1.GoPGO) error {
	if err := c.index(); err != nil {
		return err
	}
	leaves := map[string]uint64{}
	for _, s := range c.p.Sample {
		if most := int(in.KeepLocations); most > 0 && len(s.LocationId) > most {
			s.LocationId = s.LocationId[:most]
		}
		if !in.AggregateCallees || len(s.LocationId) == 0 {
			continue
		}
		of := c.locations[s.LocationId[0]]
		if len(of.GetLine()) == 0 {
			continue
		}
		key := binary.AppendUvarint(nil, of.MappingId)
		for i, line := range of.Line {
			if key = binary.AppendUvarint(key, line.FunctionId); i > 0 {
				key = binary.AppendVarint(key, line.Line)
			}
		}
		id, ok := leaves[string(key)]
		if !ok {
			leaf := of.CloneVT()
			leaf.Address, leaf.Line[0].Line = 0, 0
			id = c.add(leaf)
			leaves[string(key)] = id
			if err := c.meter.Grow(2*cacheBytes + 2*len(key) + cacheBytes*len(of.Line)); err != nil {
				return err
			}
		}
		s.LocationId[0] = id
	}
	return c.finish()
}

// finish adds up the samples that have become equal, and drops what none refers to.
func (c *cutter) finish() error {
	byStack := map[string]*profilev1.Sample{}
	var key []byte
	for _, s := range c.p.Sample {
		key = key[:0]
		for _, id := range s.LocationId {
			key = binary.AppendUvarint(key, id)
		}
		if known := byStack[string(key)]; known != nil {
			known.Value[0] = otlp.SaturatingAdd(known.Value[0], s.Value[0])
			s.Value = nil
			continue
		}
		byStack[string(key)] = s
		if err := c.meter.Grow(cacheBytes + len(key)); err != nil {
			return err
		}
	}
	p := c.p
	p.Sample = slices.DeleteFunc(p.Sample, func(s *profilev1.Sample) bool { return s.Value == nil })
	locations, functions := map[uint64]bool{}, map[uint64]bool{}
	for _, s := range p.Sample {
		for _, id := range s.LocationId {
			locations[id] = true
		}
	}
	p.Location = slices.DeleteFunc(p.Location, func(l *profilev1.Location) bool { return !locations[l.Id] })
	for _, l := range p.Location {
		for _, line := range l.Line {
			functions[line.FunctionId] = true
		}
	}
	p.Function = slices.DeleteFunc(p.Function, func(f *profilev1.Function) bool { return !functions[f.Id] })
	keepStrings(p)
	return c.meter.Check()
}

// keepStrings drops the strings of a pprof of one sample type and without labels that nothing refers to.
func keepStrings(p *profilev1.Profile) {
	moved, kept := make([]int64, len(p.StringTable)), []string{""}
	move := func(list ...*int64) {
		for _, i := range list {
			if *i != 0 && moved[*i] == 0 {
				moved[*i] = int64(len(kept))
				kept = append(kept, p.StringTable[*i])
			}
			*i = moved[*i]
		}
	}
	for _, t := range append(slices.Clone(p.SampleType), p.PeriodType) {
		if t != nil {
			move(&t.Type, &t.Unit)
		}
	}
	for _, m := range p.Mapping {
		move(&m.Filename, &m.BuildId)
	}
	for _, f := range p.Function {
		move(&f.Name, &f.SystemName, &f.Filename)
	}
	for i := range p.Comment {
		move(&p.Comment[i])
	}
	move(&p.DropFrames, &p.KeepFrames, &p.DefaultSampleType)
	p.ProtoReflect().SetUnknown(nil) // doc_url, which the message does not have, is a string, too
	p.StringTable = kept
}
