// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// This file answers GET /pyroscope/render and /pyroscope/render-diff: flame graphs as JSON.

type flamebearer struct {
	Version     int                  `json:"version"`
	Flamebearer flames               `json:"flamebearer"`
	Metadata    metadata             `json:"metadata"`
	Timeline    *timeline            `json:"timeline"`
	Groups      map[string]*timeline `json:"groups"`
	Heatmap     *struct{}            `json:"heatmap"`
	LeftTicks   int64                `json:"leftTicks,omitempty"`
	RightTicks  int64                `json:"rightTicks,omitempty"`
}

type flames struct {
	Names    []string  `json:"names"`
	Levels   [][]int64 `json:"levels"`
	NumTicks int64     `json:"numTicks"`
	MaxSelf  int64     `json:"maxSelf"`
}

type metadata struct {
	Format     string `json:"format"`
	SpyName    string `json:"spyName"`
	SampleRate int    `json:"sampleRate"`
	Units      string `json:"units"`
	Name       string `json:"name"`
}

// timeline has the sums of steps of durationDelta seconds. Those before the first and after the last profile are 0.
type timeline struct {
	StartTime     int64          `json:"startTime"`
	Samples       []int64        `json:"samples"`
	DurationDelta int64          `json:"durationDelta"`
	Watermarks    map[string]int `json:"watermarks"`
}

func newFlamebearer(format string, t *typesv1.ProfileType, names []string, rows []*querierv1.Level, total,
	maxSelf int64) *flamebearer {
	out := &flamebearer{Version: 1,
		Metadata: metadata{Format: format, SampleRate: 100, Units: t.SampleUnit, Name: t.SampleType}}
	switch t.SampleType {
	case "inuse_objects", "alloc_objects", "goroutine", "samples":
		out.Metadata.Units = "objects"
	case "cpu":
		out.Metadata.Units, out.Metadata.SampleRate = "samples", 1_000_000_000
	}
	out.Flamebearer = flames{Names: names, Levels: make([][]int64, len(rows)), NumTicks: total, MaxSelf: maxSelf}
	for i, row := range rows {
		out.Flamebearer.Levels[i] = row.Values
	}
	return out
}

// Render writes the flame graph of a query.
func (q *Querier) Render(ctx context.Context, params url.Values, w io.Writer) (contentType string, err error) {
	in, t, err := q.rendered(ctx, params, "query", "from", "until")
	if err != nil {
		return "", err
	}
	if params.Get("format") == "dot" {
		in.Format = querierv1.ProfileFormat_PROFILE_FORMAT_DOT
	}
	flame, err := q.SelectMergeStacktraces(ctx, connect.NewRequest(in))
	if err != nil {
		return "", err
	}
	step := pointSeconds(in.End - in.Start)
	series, err := q.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{
		ProfileTypeID: in.ProfileTypeID, LabelSelector: in.LabelSelector, Start: in.Start, End: in.End, Step: step,
		GroupBy: params["groupBy"], Aggregation: aggregation(params.Get("aggregation")),
	}))
	if err != nil {
		return "", err
	}
	g := flame.Msg.Flamegraph
	out := newFlamebearer("single", t, g.Names, g.Levels, g.Total, g.MaxSelf)
	all := &typesv1.Series{}
	if len(series.Msg.Series) == 1 {
		all = series.Msg.Series[0]
	}
	steps := newSteps(in.Start, in.End, int64(step))
	if err := meterOf(ctx).Grow(8 * steps.n * (1 + len(series.Msg.Series))); err != nil {
		return "", err
	}
	out.Timeline = steps.of(all)
	if by := params["groupBy"]; len(by) > 0 {
		out.Groups = map[string]*timeline{}
		for _, s := range series.Msg.Series {
			key := "*"
			for _, l := range s.Labels {
				if l.Name == by[0] {
					key = l.Value
				}
			}
			out.Groups[key] = steps.of(s)
		}
	}
	return "application/json", json.NewEncoder(w).Encode(out)
}

func aggregation(word string) *typesv1.TimeSeriesAggregationType {
	if word == "avg" {
		return typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE.Enum()
	}
	return nil
}

// RenderDiff writes the comparison of two queries.
func (q *Querier) RenderDiff(ctx context.Context, params url.Values, w io.Writer) (contentType string, err error) {
	left, t, err := q.rendered(ctx, params, "leftQuery", "leftFrom", "leftUntil")
	if err != nil {
		return "", err
	}
	right, other, err := q.rendered(ctx, params, "rightQuery", "rightFrom", "rightUntil")
	if err != nil {
		return "", err
	}
	if t.ID != other.ID {
		return "", invalid("both queries must have the same profile type, found %q and %q", model.Shorten(t.ID),
			model.Shorten(other.ID))
	}
	diff, err := q.Diff(ctx, connect.NewRequest(&querierv1.DiffRequest{Left: left, Right: right}))
	if err != nil {
		return "", err
	}
	g := diff.Msg.Flamegraph
	out := newFlamebearer("double", t, g.Names, g.Levels, g.Total, g.MaxSelf)
	out.LeftTicks, out.RightTicks = g.LeftTicks, g.RightTicks
	return "application/json", json.NewEncoder(w).Encode(out)
}

// rendered reads a query of the form `process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop"}` and its time.
func (q *Querier) rendered(ctx context.Context, params url.Values, selector, from,
	until string) (*querierv1.SelectMergeStacktracesRequest, *typesv1.ProfileType, error) {
	value := params.Get(selector)
	matchers, err := parseSelectors(meterOf(ctx), value)
	if err != nil {
		return nil, nil, err
	}
	var t *typesv1.ProfileType
	var rest []string
	for _, m := range matchers {
		if m.Name == typeIDLabel {
			t = parsedType(m.Value)
		} else {
			rest = append(rest, m.String())
		}
	}
	if t == nil {
		return nil, nil,
			invalid("`%s` must be a profile type and a label selector, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"shop\"}, found %q",
				selector, model.Shorten(value))
	}
	in := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: t.ID, LabelSelector: "{" + strings.Join(rest, ",") + "}"}
	for key, at := range map[string]*int64{from: &in.Start, until: &in.End} {
		t, err := query.ParseTime(cmp.Or(strings.TrimSpace(params.Get(key)), "now"), q.Now())
		if err != nil {
			return nil, nil, invalid("`%s`: %s", key, err)
		}
		*at = t / int64(time.Millisecond)
	}
	nodes := int64(0)
	for _, key := range []string{"max-nodes", "maxNodes"} {
		if n, err := strconv.ParseInt(params.Get(key), 10, 64); err == nil && n != 0 {
			nodes = n
		}
	}
	in.MaxNodes = &nodes
	return in, t, nil
}

// pointSeconds returns the step of a timeline in seconds: at least 15, for about 1500 steps in the given milliseconds.
func pointSeconds(millis int64) float64 {
	interval := millis / 1500
	steps := []int64{15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800}
	for i, step := range steps[:len(steps)-1] {
		// A step is used up to about the middle between it and the next one.
		if interval <= (step+steps[i+1])*500 {
			return float64(step)
		}
	}
	return float64(steps[len(steps)-1])
}

type steps struct {
	start, step int64
	n           int
}

const maxSteps = 10_000

func newSteps(start, end, step int64) steps {
	start, end = start/1000/step*step, end/1000/step*step
	return steps{start, step, int(min(max((end-start)/step, 0), maxSteps))}
}

func (s steps) of(series *typesv1.Series) *timeline {
	t := &timeline{StartTime: s.start, DurationDelta: s.step, Samples: make([]int64, s.n)}
	for _, p := range series.Points {
		if i := (p.Timestamp/1000 - s.start) / s.step; i >= 0 && i < int64(len(t.Samples)) {
			t.Samples[i] = otlp.SaturatingAdd(t.Samples[i], otlp.SaturatingRound(math.Trunc(p.Value)))
		}
	}
	return t
}
