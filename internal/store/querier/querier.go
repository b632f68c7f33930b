// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package querier answers the queries of Grafana's Pyroscope data source and of its Profiles Drilldown app
// (querier.v1.QuerierService, and the two paths /pyroscope/render and /pyroscope/render-diff) from a store.
//
// A query names a profile type, a label selector and a time range. choose lists the series in that range and matches
// their labels (labels.go), which have the names that the exporter pyroscope writes. A matcher that the labels of a
// series cannot decide is applied to the labels of its samples as they are read. The samples then become a flame graph
// (flamegraph.go), a pprof (pprof.go), points over time or a heat map (series.go).
//
// Times follow Pyroscope: a profile counts as a whole if its start lies in [start, end], regardless of its kind.
// docs/grafana.md lists the differences.
//
// The caller, package api, has reserved a slot and a meter (WithMeter).
package querier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Querier implements the service.
type Querier struct {
	querierv1connect.UnimplementedQuerierServiceHandler
	Store *answers.Querier
	// Now is the clock.
	Now func() time.Time
}

type meterKey struct{}

// WithMeter returns the context of a query whose memory the meter reserves.
func WithMeter(ctx context.Context, meter *size.Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, meter)
}

func meterOf(ctx context.Context) *size.Meter {
	if meter, ok := ctx.Value(meterKey{}).(*size.Meter); ok {
		return meter
	}
	return &size.Meter{Context: ctx}
}

// respond returns a message as the response to a call, unless there is an error.
func respond[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// checkTime refuses a time that ends before it begins: nothing would be in it.
func checkTime(start, end int64) error {
	if end < start {
		return invalid("the start of the time, %d, is after its end, %d", start, end)
	}
	return nil
}

// allowsDots reports whether a client accepts dots in label names.
func allowsDots(header interface{ Get(string) string }) bool {
	return strings.Contains(header.Get("Accept"), "allow-utf8-labelnames=true")
}

// recent returns the time of a list: all until now if the request states none.
func (q *Querier) recent(start, end int64) (int64, int64) {
	if start == 0 && end == 0 {
		end = q.Now().UnixMilli()
	}
	return start, end
}

// ProfileTypes lists the types of profiles.
func (q *Querier) ProfileTypes(ctx context.Context,
	r *connect.Request[querierv1.ProfileTypesRequest]) (*connect.Response[querierv1.ProfileTypesResponse], error) {
	start, end := q.recent(r.Msg.Start, r.Msg.End)
	s, err := q.choose(ctx, nil, start, end, false)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for i := range s.series {
		ids[profileType(&s.series[i])] = true
	}
	out := &querierv1.ProfileTypesResponse{}
	for _, id := range sortedKeys(ids) {
		out.ProfileTypes = append(out.ProfileTypes, parsedType(id))
	}
	return connect.NewResponse(out), nil
}

// parsedType returns the parts of a profile type; nil if it does not have five.
func parsedType(id string) *typesv1.ProfileType {
	parts := strings.Split(id, ":")
	if len(parts) != 5 && len(parts) != 6 {
		return nil
	}
	return &typesv1.ProfileType{
		ID: id, Name: parts[0], SampleType: parts[1], SampleUnit: parts[2], PeriodType: parts[3], PeriodUnit: parts[4],
	}
}

// LabelNames lists the names of labels.
func (q *Querier) LabelNames(ctx context.Context,
	r *connect.Request[typesv1.LabelNamesRequest]) (*connect.Response[typesv1.LabelNamesResponse], error) {
	names := map[string]bool{}
	dots := allowsDots(r.Header())
	err := q.list(ctx, r.Msg.Matchers, r.Msg.Start, r.Msg.End, dots, nil, func(list []label) error {
		for _, l := range list {
			names[l.name] = true
		}
		return nil
	})
	return respond(&typesv1.LabelNamesResponse{Names: sortedKeys(names)}, err)
}

// list calls use with the wanted labels of the series that match.
func (q *Querier) list(ctx context.Context, selectors []string, start, end int64, dots bool, names []string,
	use func([]label) error) error {
	matchers, err := parseSelectors(meterOf(ctx), selectors...)
	if err != nil {
		return err
	}
	start, end = q.recent(start, end)
	s, err := q.choose(ctx, matchers, start, end, dots)
	if err != nil {
		return err
	}
	return q.labelSets(s, names, use)
}

// LabelValues lists the values of a label.
func (q *Querier) LabelValues(ctx context.Context,
	r *connect.Request[typesv1.LabelValuesRequest]) (*connect.Response[typesv1.LabelValuesResponse], error) {
	if r.Msg.Name == "" {
		return nil, invalid("name is required")
	}
	values, meter := map[string]bool{}, meterOf(ctx)
	err := q.list(ctx, r.Msg.Matchers, r.Msg.Start, r.Msg.End, false, []string{r.Msg.Name}, func(list []label) error {
		if len(list) == 0 || values[list[0].value] {
			return nil
		}
		values[list[0].value] = true
		return meter.Grow(cacheBytes + 2*len(list[0].value))
	})
	return respond(&typesv1.LabelValuesResponse{Names: sortedKeys(values)}, err)
}

// Series lists the sets of labels that series have.
func (q *Querier) Series(ctx context.Context,
	r *connect.Request[querierv1.SeriesRequest]) (*connect.Response[querierv1.SeriesResponse], error) {
	if err := checkNames(r.Msg.LabelNames); err != nil {
		return nil, err
	}
	out, seen, meter := &querierv1.SeriesResponse{}, map[string]bool{}, meterOf(ctx)
	names := r.Msg.LabelNames
	if len(names) == 0 {
		names = nil
	}
	err := q.list(ctx, r.Msg.Matchers, r.Msg.Start, r.Msg.End, allowsDots(r.Header()), names, func(list []label) error {
		key := keyOf(list)
		if len(list) == 0 || seen[key] {
			return nil
		}
		seen[key] = true
		out.LabelsSet = append(out.LabelsSet, &typesv1.Labels{Labels: pairs(list)})
		return meter.Grow(2*len(key) + cacheBytes*(len(list)+1))
	})
	slices.SortFunc(out.LabelsSet, func(a, b *typesv1.Labels) int { return comparePairs(a.Labels, b.Labels) })
	return respond(out, err)
}

// maxNames bounds the names of labels in a call, each of which is compared with all labels of each series.
const maxNames = 100

func checkNames(list []string) error {
	if len(list) > maxNames {
		return invalid("a call may name at most %d labels, found %d", maxNames, len(list))
	}
	return nil
}

func keyOf(list []label) string {
	var b strings.Builder
	for _, l := range list {
		_, _ = fmt.Fprintf(&b, "%d:%s%d:%s", len(l.name), l.name, len(l.value), l.value)
	}
	return b.String()
}

func pairs(list []label) []*typesv1.LabelPair {
	out := make([]*typesv1.LabelPair, len(list))
	for i, l := range list {
		out[i] = &typesv1.LabelPair{Name: l.name, Value: l.value}
	}
	return out
}

func comparePairs(a, b []*typesv1.LabelPair) int {
	return slices.CompareFunc(a, b, func(a, b *typesv1.LabelPair) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
}

// GetProfileStats reports whether there are profiles, and of what time.
func (q *Querier) GetProfileStats(ctx context.Context,
	_ *connect.Request[typesv1.GetProfileStatsRequest]) (*connect.Response[typesv1.GetProfileStatsResponse], error) {
	list, err := q.Store.Catalog(ctx, "", meterOf(ctx))
	out := &typesv1.GetProfileStatsResponse{DataIngested: len(list) > 0}
	for i, in := range list {
		from, until := in.From/1e6, in.Until/1e6
		if i == 0 {
			out.OldestProfileTime, out.NewestProfileTime = from, until
		}
		out.OldestProfileTime, out.NewestProfileTime = min(out.OldestProfileTime, from), max(out.NewestProfileTime, until)
	}
	return respond(out, err)
}

// AnalyzeQuery estimates what a query reads.
func (q *Querier) AnalyzeQuery(ctx context.Context,
	r *connect.Request[querierv1.AnalyzeQueryRequest]) (*connect.Response[querierv1.AnalyzeQueryResponse], error) {
	matchers, err := parseSelectors(meterOf(ctx), r.Msg.Query)
	if err != nil {
		return nil, err
	}
	s, err := q.choose(ctx, matchers, r.Msg.Start, r.Msg.End, false)
	if err != nil {
		return nil, err
	}
	scope := &querierv1.QueryScope{ComponentType: "profile_store", ComponentCount: 1, SeriesCount: uint64(len(s.series))}
	for i := range s.series {
		scope.SampleCount += uint64(s.series[i].Samples)
	}
	scope.ProfileBytes = scope.SampleCount * sampleBytes
	return connect.NewResponse(&querierv1.AnalyzeQueryResponse{
		QueryScopes: []*querierv1.QueryScope{scope},
		QueryImpact: &querierv1.QueryImpact{TotalBytesInTimeRange: scope.ProfileBytes, TotalQueriedSeries: scope.SeriesCount},
	}), nil
}

// sampleBytes is about what a sample takes in a store.
const sampleBytes = 3

// goroutines is Pyroscope's name for goroutine profiles that pyroscope-go pushes. The store names them as it does
// scraped ones.
const goroutines = "goroutines"

// selectTyped returns the selection of a profile type and a selector.
func (q *Querier) selectTyped(ctx context.Context, typeID, selector string, start, end int64) (*selection, error) {
	t := parsedType(typeID)
	if t == nil {
		return nil, invalid(
			"%q is not a profile type: it must be <name>:<sample type>:<sample unit>:<period type>:<period unit>",
			model.Shorten(typeID))
	}
	matchers, err := parseSelectors(meterOf(ctx), selector)
	if err != nil {
		return nil, err
	}
	if t.Name == goroutines {
		t.Name = kind.Goroutine
	}
	id := kind.ProfileTypeID(t.Name, t.SampleType, t.SampleUnit, t.PeriodType, t.PeriodUnit)
	matchers = append(matchers, labels.MustNewMatcher(labels.MatchEqual, typeIDLabel, id))
	return q.choose(ctx, matchers, start, end, false)
}
