// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

var (
	errNoAsync         = errors.New("queries are answered at once: leave `async` out")
	errNoPGO           = errors.New("profiles for PGO are not made here: use SelectMergeProfile without `go_pgo`, and `go tool pprof -proto`")
	errNoCallSite      = errors.New("series of a `stack_trace_selector` are not known here: select its flame graph")
	errNoSpanExemplars = errors.New("exemplars of series are profiles, not spans: use SelectHeatmap")
	errNoFrameFilter   = errors.New("the only stack_trace_selector that is known here is `call_site`")
)

// SelectMergeProfile merges profiles to a pprof.
func (q *Querier) SelectMergeProfile(
	ctx context.Context, r *connect.Request[querierv1.SelectMergeProfileRequest],
) (*connect.Response[profilev1.Profile], error) {
	in := r.Msg
	p, err := q.pprof(ctx, &querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: in.ProfileTypeID, LabelSelector: in.LabelSelector, Start: in.Start, End: in.End,
		StackTraceSelector: in.StackTraceSelector, ProfileIdSelector: in.ProfileIdSelector, TraceIdSelector: in.TraceIdSelector,
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(p), nil
}

// pprof merges profiles to a pprof of one sample type, without labels.
func (q *Querier) pprof(ctx context.Context, in *querierv1.SelectMergeStacktracesRequest) (*profilev1.Profile, error) {
	s, err := q.selected(ctx, in)
	if err != nil || len(s.series) == 0 {
		return &profilev1.Profile{}, err
	}
	merged, err := q.Store.MergeQuery(ctx, s.query(store.Want{Stacks: true}), s.keep())
	if err != nil || merged.Count == 0 || merged.SampleCount() == 0 {
		return &profilev1.Profile{}, err
	}
	meter := meterOf(ctx)
	if err := meter.More(encode.Bytes(merged.Profiles)); err != nil {
		return nil, err
	}
	encoded, stats, err := encode.Encode(merged.Profiles)
	if err != nil {
		return nil, err
	}
	if stats.Dropped > 0 || len(encoded) != 1 {
		return nil, store.ErrTooLarge
	}
	if err := meter.More(messageFactor * len(encoded[0].Bytes)); err != nil {
		return nil, err
	}
	p := &profilev1.Profile{}
	if err := p.UnmarshalVT(encoded[0].Bytes); err != nil {
		return nil, err
	}
	if sites := in.GetStackTraceSelector().GetCallSite(); len(sites) > 0 {
		keepCallSite(p, sites)
	}
	return p, nil
}

// messageFactor is how many bytes of memory a byte of a pprof takes as a message.
const messageFactor = 12

// keepCallSite drops the samples whose outermost functions are not those of a call site.
func keepCallSite(p *profilev1.Profile, sites []*typesv1.Location) {
	functions := map[uint64]int64{}
	for _, f := range p.Function {
		functions[f.Id] = f.Name
	}
	lines := map[uint64][]int64{}
	for _, l := range p.Location {
		for _, line := range l.Line {
			lines[l.Id] = append(lines[l.Id], functions[line.FunctionId])
		}
	}
	p.Sample = slices.DeleteFunc(p.Sample, func(s *profilev1.Sample) bool {
		at := 0
		for _, id := range slices.Backward(s.LocationId) {
			for _, name := range slices.Backward(lines[id]) {
				if at == len(sites) {
					return false
				}
				if p.StringTable[name] != sites[at].GetName() {
					return true
				}
				at++
			}
		}
		return at < len(sites)
	})
}
