// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"context"
	"errors"
	"iter"
	"slices"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

var (
	errNoAsync         = errors.New("queries are answered synchronously: leave out `async`")
	errNoDot           = errors.New("there are no graphs for Graphviz: `go tool pprof -dot` makes one of /profiles/<service>/<profile>")
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
	p := &profilev1.Profile{}
	if err != nil || len(s.series) == 0 {
		return p, err
	}
	stacks := s.stacks()
	if pgo := in.GetStackTraceSelector().GetGoPgo(); pgo != nil {
		stacks.Shorten = forPGO(pgo)
	} else if most := in.GetMaxNodes(); most > 0 {
		stacks.Shorten = cutter(most)
	}
	err = q.Store.MergeQuery(ctx, stacks, func(merged *answers.Merged) (err error) {
		if merged.Count > 0 && merged.SampleCount() > 0 {
			p, err = message(meterOf(ctx), merged)
		}
		return err
	})
	return p, err
}

// message returns profiles as a pprof.
func message(meter *size.Meter, merged *answers.Merged) (*profilev1.Profile, error) {
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
	return p, p.UnmarshalVT(encoded[0].Bytes)
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

// cutter returns what cuts the small ends of stacks, as Pyroscope does: nodes of the tree of functions are small if
// they are below the value of the most-th largest. A stack keeps the location of its first small function, and what is
// below that becomes a location named other. Stacks without a function that is large enough become one sample.
func cutter(most int64) answers.Shorten {
	return func(m *model.Memory, dict *dictionary.Dictionary, stacks []int32, values []int64) error {
		t := functionTree{dict: dict, nodes: map[functionEdge]int32{}, totals: []int64{0}}
		for i, stack := range stacks {
			before, at := len(t.totals), int32(0)
			for function := range t.functions(stack) {
				at = t.child(at, function)
				t.totals[at] = otlp.SaturatingAdd(t.totals[at], values[i])
			}
			if err := m.Grow(cacheBytes * (len(t.totals) - before)); err != nil {
				return err
			}
		}
		if most >= int64(len(t.totals)) {
			return nil
		}
		sorted := slices.Sorted(slices.Values(t.totals))
		least := sorted[len(sorted)-int(most)]
		for i, stack := range stacks {
			if below := t.cutAt(stack, least); below > 0 {
				locations := dict.Stacks.At(dictionary.StackIndex(stack))[below:]
				stacks[i] = int32(dict.Stacks.Intern(append([]int32{t.other()}, locations...)))
			}
		}
		return m.Check()
	}
}

// functionTree is a tree of functions with the totals of its nodes.
type functionTree struct {
	dict   *dictionary.Dictionary
	nodes  map[functionEdge]int32
	totals []int64
}

type functionEdge struct {
	parent   int32
	function dictionary.FunctionIndex
}

func (t *functionTree) child(parent int32, function dictionary.FunctionIndex) int32 {
	key := functionEdge{parent, function}
	node, ok := t.nodes[key]
	if !ok {
		node = int32(len(t.totals))
		t.nodes[key], t.totals = node, append(t.totals, 0)
	}
	return node
}

// linesOf returns the lines of a location.
func (t *functionTree) linesOf(location int32) []dictionary.Line {
	_, lines := t.dict.Locations.At(dictionary.LocationIndex(location))
	return lines
}

// functions returns the functions of a stack from the root on.
func (t *functionTree) functions(stack int32) iter.Seq[dictionary.FunctionIndex] {
	return func(yield func(dictionary.FunctionIndex) bool) {
		for _, location := range slices.Backward(t.dict.Stacks.At(dictionary.StackIndex(stack))) {
			for _, line := range slices.Backward(t.linesOf(location)) {
				if !yield(line.Function) {
					return
				}
			}
		}
	}
}

// cutAt returns how many locations of a stack are below its first small function, or 0 if there are none to cut.
func (t *functionTree) cutAt(stack int32, least int64) (below int) {
	large, at := 0, int32(0)
	locations := t.dict.Stacks.At(dictionary.StackIndex(stack))
	for function := range t.functions(stack) {
		if at = t.child(at, function); t.totals[at] >= least {
			large++
			continue
		}
		below = len(locations)
		for n := 0; large > 0 && below > 0 && n <= large; below-- {
			n += len(t.linesOf(locations[below-1]))
		}
		return below
	}
	return 0
}

// other returns the location of what is cut.
func (t *functionTree) other() int32 {
	name := t.dict.Strings.Intern(other)
	f := t.dict.Functions.Intern(dictionary.Function{Name: name, SystemName: name})
	return int32(t.dict.Locations.Intern(dictionary.Location{}, []dictionary.Line{{Function: f}}))
}

// forPGO returns what makes a pprof for profile-guided optimization of Go: of each stack, only the leaf and its
// callers. If callees are aggregated, a leaf is its function, wherever in that it was.
func forPGO(in *typesv1.GoPGO) answers.Shorten {
	return func(m *model.Memory, dict *dictionary.Dictionary, stacks []int32, _ []int64) error {
		for i := range stacks {
			locations := slices.Clone(dict.Stacks.At(dictionary.StackIndex(stacks[i])))
			if most := int(in.KeepLocations); most > 0 && len(locations) > most {
				locations = locations[:most]
			}
			if in.AggregateCallees && len(locations) > 0 {
				leaf, lines := dict.Locations.At(dictionary.LocationIndex(locations[0]))
				if lines = slices.Clone(lines); len(lines) > 0 {
					leaf.Address, lines[0] = 0, dictionary.Line{Function: lines[0].Function}
					locations[0] = int32(dict.Locations.Intern(leaf, lines))
				}
			}
			stacks[i] = int32(dict.Stacks.Intern(locations))
			if err := m.Grow(cacheBytes); err != nil {
				return err
			}
		}
		return nil
	}
}
