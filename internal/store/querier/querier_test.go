// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/clickhousetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// The answers to fixed queries over fixed profiles, in memory and on disk. Those of a real Pyroscope are the same:
// TestAnswersAreThoseOfPyroscope.
func TestAnswers(t *testing.T) {
	list := fixedHistory()
	s := newStore()
	keep(t, s, list, noon)
	requireAnswers(t, s.Querier)
	requireAnswers(t, storeOnDisk(t, list).Querier)
}

// The same answers of a table of ClickHouse.
func TestAnswersFromClickHouse(t *testing.T) {
	app := clickhousetest.Install(t)
	table := clickhousetest.NewTable(t, clickhousetest.Start(t, clickhousetest.StartEngine(t, app, app)), "otel_profiles")
	for _, pd := range messages(t, fixedHistory()) {
		table.Add(t, pd)
	}
	table.Insert(t)
	requireAnswers(t, table.Source(t, noon).Querier)
}

func fixedHistory() []pushed { return history(rand.New(rand.NewPCG(1, 1)), noon, 4) }

// requireAnswers compares the answers about fixedHistory with the golden ones.
func requireAnswers(t *testing.T, s *answers.Querier) {
	t.Helper()
	c, address := client(t, s, noon)
	r := rand.New(rand.NewPCG(2, 2))
	var got strings.Builder
	for range 40 {
		q := randomQuery(r, noon)
		answer, err := q.ask(t.Context(), c)
		require.NoError(t, err, q.name)
		fmt.Fprintf(&got, "== %s\n%v\n", q.name, answer)
	}
	render := url.Values{"query": {`memory:inuse_space:bytes:space:bytes{service_name="shop-1"}`}, "from": {"now-2m"},
		"max-nodes": {"20"}}
	fmt.Fprintln(&got, "== render\n", renderText(t, address, "/pyroscope/render", render))
	fmt.Fprintln(&got, "== render-diff\n", renderText(t, address, "/pyroscope/render-diff", url.Values{
		"leftQuery": {`mutex:delay:nanoseconds:contentions:count{service_version="1.0"}`}, "leftFrom": {"now-1h"},
		"rightQuery": {`mutex:delay:nanoseconds:contentions:count{service_version="1.1"}`}, "rightFrom": {"now-1h"},
		"max-nodes": {"12"},
	}))
	profiletest.Golden(t, "testdata/answers.golden", got.String())
}

// storeOnDisk has the older part of the profiles in blocks on disk.
func storeOnDisk(t *testing.T, list []pushed) *store.Store {
	s := store.New(store.Config{
		Window: 2 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20, MaxSeries: 10_000,
		Disk: store.DiskConfig{Directory: t.TempDir(), Retention: 48 * time.Hour, MaxBytes: 1 << 30,
			Report: func(string, error) {}},
	})
	require.NoError(t, s.Open())
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	keep(t, s, list[:len(list)/2], noon)
	keep(t, s, list[len(list)/2:], noon.Add(time.Hour))
	s.Maintain(noon.Add(time.Hour))
	require.Positive(t, s.Stats().DiskBlocks)
	return s
}

// Dots in names of attributes: selectors take both forms, lists have the one that a client asks for.
func TestLabelsWithDots(t *testing.T) {
	s := newStore()
	b := profiletest.New().Resource("service.name", "shop", "k8s.pod.name", "pod-1", "replicas", int64(3))
	b.Profile("cpu", "nanoseconds").Period(10, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
		Attributes(profiletest.Attr("profiling.source", "timer"), profiletest.Attr("pprof.profile.comment", "x")).
		Sample(profiletest.Value(5, "leaf", "root").With(profiletest.Attr("http.route", "/cart"),
			profiletest.Attr("thread.id", "7"), profiletest.Attr("size", int64(1))))
	require.Equal(t, 1, s.Add(b.Build(), noon).Profiles)
	c, _ := client(t, s.Querier, noon)
	names := func(accept string) []string {
		in := connect.NewRequest(&typesv1.LabelNamesRequest{Start: noon.Add(-time.Hour).UnixMilli(), End: noon.UnixMilli()})
		in.Header().Set("Accept", accept)
		out, err := c.LabelNames(t.Context(), in)
		require.NoError(t, err)
		return out.Msg.Names
	}
	every := []string{"__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"}
	assert.Equal(t, append(every, "http_route", "k8s_pod_name", "profiling_source", "replicas", "service_name"),
		names("*/*"))
	assert.Equal(t, append(every, "http.route", "k8s.pod.name", "profiling.source", "replicas", "service_name"),
		names("*/*; allow-utf8-labelnames=true"))
	for _, selector := range []string{
		"", "{}", `{k8s_pod_name="pod-1"}`, `{"k8s.pod.name"="pod-1"}`, `{http_route="/cart"}`, `{"http.route"=~"/c.*"}`,
		`{replicas="3"}`, `{thread_id=""}`,
		`{"service.name"="shop"}`, `{profiling_source="timer", service_name="shop"}`,
	} {
		assert.EqualValues(t, 5, total(t, c, selector), selector)
	}
	for _, selector := range []string{`{k8s_pod_name="pod-2"}`, `{http_route!="/cart"}`, `{thread_id="7"}`, `{size="1"}`,
		`{pprof_profile_comment="x"}`, `{service_name=""}`} {
		assert.Zero(t, total(t, c, selector), selector)
	}
}

const cpuType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

// flame returns the flame graph of the processor time of the hour before noon, or of what change selects.
func flame(t *testing.T, c calls, change func(*querierv1.SelectMergeStacktracesRequest)) *querierv1.FlameGraph {
	t.Helper()
	in := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, Start: noon.Add(-time.Hour).UnixMilli(),
		End: noon.UnixMilli()}
	change(in)
	out, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(in))
	require.NoError(t, err, in)
	return out.Msg.Flamegraph
}

func total(t *testing.T, c calls, selector string) int64 {
	t.Helper()
	return flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) { in.LabelSelector = selector }).Total
}

// Profiles that only count samples of CPU time are those of the time itself, too, unless the program has both.
func TestCountsOfCPUAreTimes(t *testing.T) {
	s := newStore()
	for i, both := range []bool{false, true} {
		b := profiletest.New().Resource("service.name", []string{"ebpf", "go"}[i])
		b.Profile("samples", "count").Period(50, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
			Sample(profiletest.Value(3, "leaf").With(profiletest.Attr("endpoint", "/a")), profiletest.Value(1, "leaf"))
		if both {
			b.Profile("cpu", "nanoseconds").Period(50, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()),
				1e9).
				Sample(profiletest.Value(7, "leaf"))
		}
		require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	}
	// Without a period, a sample is 1 in all answers.
	require.NotZero(t, s.Add(profiletest.New().Resource("service.name", "none").Profile("samples", "count").
		Period(0, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
		Sample(profiletest.Value(9, "leaf")).Build(), noon).Profiles)
	// async-profiler's times go before its samples.
	for _, typ := range []string{"count", "ns"} {
		require.NotZero(t, s.Add(profiletest.New().Resource("service.name", "java").Profile("itimer", typ).
			Period(10, "itimer", "ns").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
			Sample(profiletest.Value(3, "leaf")).Build(), noon).Profiles)
		c, _ := client(t, s.Querier, noon)
		assert.EqualValues(t, map[string]int{"count": 30, "ns": 3}[typ], total(t, c, `{service_name="java"}`))
	}
	c, _ := client(t, s.Querier, noon)
	assert.EqualValues(t, 9, total(t, c, `{service_name="none"}`))
	at := noon.Add(-time.Minute).UnixMilli()
	assert.EqualValues(t, 9, flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) {
		in.LabelSelector, in.Start, in.End = `{service_name="none"}`, at-1000, at
	}).Total, "the end belongs to the time")
	assert.EqualValues(t, 200, total(t, c, `{service_name="ebpf"}`))
	assert.EqualValues(t, 150, total(t, c, `{service_name="ebpf", endpoint="/a"}`))
	assert.EqualValues(t, 7, total(t, c, `{service_name="go"}`))
	series, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: noon.Add(-time.Hour).UnixMilli(), End: noon.UnixMilli(),
		Step: 3600, GroupBy: []string{"service_name", "endpoint"},
	}))
	require.NoError(t, err)
	assert.Equal(t, []string{"endpoint=/a,service_name=ebpf 1769860800000:150", "service_name=ebpf 1769860800000:50",
		"service_name=none 1769860800000:9", "service_name=go 1769860800000:7", "service_name=java 1769860800000:3"}, seriesText(series.Msg.Series))
}

// Goroutine profiles can be queried by Pyroscope's name for them, too.
func TestGoroutines(t *testing.T) {
	s := newStore()
	b := profiletest.New().Resource("service.name", "shop")
	b.Profile("goroutine", "count").Period(1, "goroutine", "count").Time(uint64(noon.Add(-time.Minute).UnixNano()), 0).
		Sample(profiletest.Value(4, "leaf"))
	require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	c, _ := client(t, s.Querier, noon)
	for _, name := range []string{"goroutine", "goroutines"} {
		assert.EqualValues(t, 4, flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) {
			in.ProfileTypeID = name + ":goroutine:count:goroutine:count"
		}).Total, name)
	}
}

// Profiles Drilldown asks newer servers for tables of functions and for the callers and callees of one, and works
// without: an answer to what this one does not know must be a flame graph.
func TestNewerFormats(t *testing.T) {
	s := newStore()
	keep(t, s, history(rand.New(rand.NewPCG(8, 8)), noon, 2), noon)
	_, address := client(t, s.Querier, noon)
	selected := fmt.Sprintf(`"profileTypeID": %q, "labelSelector": "{}", "start": "%d", "end": "%d"`, cpuType,
		noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli())
	for call, body := range map[string]string{
		"SelectMergeStacktraces":  `{` + selected + `, "maxNodes": "5", "format": "PROFILE_FORMAT_FUNCTIONS"}`,
		"SelectMergeStacktraces ": `{` + selected + `, "format": "PROFILE_FORMAT_SANDWICH", "sandwichFunction": "main.f1"}`,
		"Diff": `{"left": {` + selected + `}, "right": {` + selected +
			`}, "maxNodes": "5", "format": "PROFILE_FORMAT_FUNCTIONS"}`,
	} {
		answer := collectortest.Ask(t, http.MethodPost, address+"/querier.v1.QuerierService/"+strings.TrimSpace(call),
			strings.NewReader(body), "Content-Type", "application/json")
		require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
		require.Contains(t, answer.Body, `"flamegraph"`)
	}
}

// Sets that have none of the wanted labels are left out.
func TestSeriesOfLabels(t *testing.T) {
	s := newStore()
	for _, pod := range []string{"a", ""} {
		b := profiletest.New().Resource("service.name", "shop")
		if pod != "" {
			b.Resource("pod", pod)
		}
		b.Profile("cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
			Sample(profiletest.Value(3, "leaf"))
		require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	}
	c, _ := client(t, s.Querier, noon)
	out, err := c.Series(t.Context(), connect.NewRequest(&querierv1.SeriesRequest{
		Start: noon.Add(-time.Hour).UnixMilli(), End: noon.UnixMilli(), LabelNames: []string{"pod", "nothing"},
	}))
	require.NoError(t, err)
	require.Len(t, out.Msg.LabelsSet, 1)
	assert.Equal(t, "pod=a", labelText(out.Msg.LabelsSet[0].Labels))
}

// A profile's id, as heat maps and exemplars show it, selects the profile.
func TestProfileIDs(t *testing.T) {
	list := history(rand.New(rand.NewPCG(3, 3)), noon, 4)
	s := newStore()
	keep(t, s, list, noon)
	c, _ := client(t, s.Querier, noon)
	start, end := noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
	heat, err := c.SelectHeatmap(t.Context(), connect.NewRequest(&querierv1.SelectHeatmapRequest{
		ProfileTypeID: cpuType, LabelSelector: `{service_name="shop-0"}`, Start: start, End: end, Step: 60,
		QueryType:    querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_INDIVIDUAL,
		ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL,
	}))
	require.NoError(t, err)
	points, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
		ProfileTypeID: cpuType, LabelSelector: `{service_name="shop-0"}`, Start: start, End: end, Step: 15,
		ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL,
	}))
	require.NoError(t, err)
	exemplars := heat.Msg.Series[0].Slots[0].Exemplars
	for _, p := range points.Msg.Series[0].Points {
		exemplars = append(exemplars, p.Exemplars...)
	}
	require.Greater(t, len(exemplars), 4)
	for _, e := range exemplars {
		assert.Equal(t, e.Value, flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) {
			in.ProfileIdSelector = []string{e.ProfileId}
		}).Total)
		assert.Contains(t, labelText(e.Labels), "service_name=shop-0")
	}
}

// Most of Pyroscope's clients state a span without its trace: in labels, which are no links of OTLP. Spans select them.
func TestSpansWithoutTraces(t *testing.T) {
	const span, trace = "00000000000000ab", "000000000000000000000000000000cd"
	b := profiletest.New().Resource("service.name", "shop")
	b.Profile("cpu", "nanoseconds").Period(1, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
		Sample(profiletest.Value(1, "a").With(profiletest.Attr("span_id", span), profiletest.Attr("span_name", "GET")),
			profiletest.Value(2, "b").With(profiletest.Attr("profile_id", span)),
			profiletest.Value(4, "c").With(profiletest.Attr("trace_id", trace)),
			profiletest.Value(8, "d").With(profiletest.Attr("span_id", "00000000000000ef")),
			profiletest.Value(16, "e").With(profiletest.Attr("profile_id", "1234")),
			profiletest.Value(32, "f"))
	s := newStore()
	require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	c, _ := client(t, s.Querier, noon)
	start, end := noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
	for _, tt := range []struct {
		spans, traces []string
		want          int64
	}{
		{[]string{span}, nil, 3},
		{nil, []string{trace}, 4},
		{[]string{strings.Repeat("0", 16)}, nil, 0},
	} {
		out, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
			ProfileTypeID: cpuType, LabelSelector: "{}", Start: start, End: end, SpanSelector: tt.spans,
			TraceIdSelector: tt.traces,
		}))
		require.NoError(t, err)
		assert.Equal(t, tt.want, out.Msg.Flamegraph.Total, "%v %v", tt.spans, tt.traces)
	}
	names, err := c.LabelNames(t.Context(), connect.NewRequest(&typesv1.LabelNamesRequest{Start: start, End: end}))
	require.NoError(t, err)
	assert.Contains(t, names.Msg.Names, "span_name")
	for _, id := range []string{"span_id", "profile_id", "trace_id"} {
		assert.NotContains(t, names.Msg.Names, id, "it would have a value for each span")
	}
	heat, err := c.SelectHeatmap(t.Context(), connect.NewRequest(&querierv1.SelectHeatmapRequest{
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: start, End: end, Step: 3600,
		QueryType:    querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_SPAN,
		ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_SPAN,
	}))
	require.NoError(t, err)
	require.Len(t, heat.Msg.Series, 1)
	var spans []string
	for _, e := range heat.Msg.Series[0].Slots[0].Exemplars {
		spans = append(spans, fmt.Sprint(e.SpanId, " ", e.Value))
	}
	assert.Equal(t, []string{span + " 3", "00000000000000ef 8"}, spans)
}

// What is left out of a flame graph is in nodes named other: levels add up, whatever max_nodes is.
func TestPrunedLevelsAddUp(t *testing.T) {
	list := history(rand.New(rand.NewPCG(4, 4)), noon, 10)
	s := newStore()
	keep(t, s, list, noon)
	c, _ := client(t, s.Querier, noon)
	for _, most := range []int64{1, 2, 7, 50, 300} {
		f := flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) { in.MaxNodes = &most })
		self, nodes := int64(0), int64(0)
		for _, row := range f.Levels {
			for i := 0; i < len(row.Values); i += 4 {
				self += row.Values[i+2]
				if nodes++; f.Names[row.Values[i+3]] == "other" {
					nodes--
				}
			}
		}
		assert.Equal(t, f.Total, self)
		assert.LessOrEqual(t, nodes, 2*most+1, "ties stay")
		assert.EqualValues(t, f.Total, total(t, c, "{}"))
	}
}

// The series of a call site add up to its flame graph, and to its pprof.
func TestSeriesOfACallSite(t *testing.T) {
	s := newStore()
	keep(t, s, history(rand.New(rand.NewPCG(7, 7)), noon, 6), noon)
	c, _ := client(t, s.Querier, noon)
	start, end := noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
	sum, found := int64(0), 0
	for _, names := range [][]string{{}, {"main.f1"}, {"main.f3", "main.f2"}, {"main.f0", "main.f5"}, {"main.f2"},
		{"nothing"}} {
		site := &typesv1.StackTraceSelector{}
		for _, name := range names {
			site.CallSite = append(site.CallSite, &typesv1.Location{Name: name})
		}
		whole := flame(t, c, func(in *querierv1.SelectMergeStacktracesRequest) {
			in.LabelSelector, in.StackTraceSelector = `{endpoint="/cart"}`, site
		})
		series, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
			ProfileTypeID: cpuType, LabelSelector: `{endpoint="/cart"}`, Start: start, End: end, Step: 20,
			GroupBy: []string{"pod"}, StackTraceSelector: site,
		}))
		require.NoError(t, err)
		points := int64(0)
		for _, in := range series.Msg.Series {
			for _, p := range in.Points {
				points += int64(p.Value)
			}
		}
		//nolint:staticcheck // Grafana's app calls it
		merged, err := c.SelectMergeProfile(t.Context(), connect.NewRequest(&querierv1.SelectMergeProfileRequest{
			ProfileTypeID: cpuType, LabelSelector: `{endpoint="/cart"}`, Start: start, End: end, StackTraceSelector: site,
		}))
		require.NoError(t, err)
		assert.Equal(t, whole.Total, points, names)
		assert.Equal(t, points, pprofTotal(merged.Msg), names)
		if len(names) == 0 {
			sum = points
		} else if points > 0 {
			found++
			assert.Less(t, points, sum, names)
		}
	}
	assert.Greater(t, found, 2)
}

func pprofTotal(p *profilev1.Profile) (sum int64) {
	for _, s := range p.Sample {
		sum += s.Value[0]
	}
	return sum
}

// Cutting a pprof by max_nodes, or for PGO, leaves its total as it is. Those of a real Pyroscope are the same:
// TestAnswersAreThoseOfPyroscope.
func TestCutPprof(t *testing.T) {
	s := newStore()
	b := profiletest.New().Resource("service.name", "shop")
	b.Profile("cpu", "nanoseconds").Period(1, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
		Sample(
			profiletest.Value(50, "leaf", "hot", "main"), profiletest.Value(30, "hot", "main"),
			profiletest.Value(3, "deep", "small", "main"), profiletest.Value(2, "deeper", "deep", "small", "main"),
			profiletest.Value(1, "tiny"),
		)
	require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	c, _ := client(t, s.Querier, noon)
	ask := func(most int64, pgo *typesv1.GoPGO) *profilev1.Profile {
		in := &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpuType, Start: noon.Add(-time.Hour).UnixMilli(),
			End: noon.UnixMilli()}
		if in.MaxNodes = &most; pgo != nil {
			in.StackTraceSelector = &typesv1.StackTraceSelector{GoPgo: pgo, CallSite: []*typesv1.Location{{Name: "not used"}}}
		}
		//nolint:staticcheck // Grafana's app calls it
		out, err := c.SelectMergeProfile(t.Context(), connect.NewRequest(in))
		require.NoError(t, err)
		require.EqualValues(t, 86, pprofTotal(out.Msg))
		return out.Msg
	}
	names := func(p *profilev1.Profile) (lines []string) {
		functions, locations := map[uint64]string{}, map[uint64]string{}
		for _, f := range p.Function {
			functions[f.Id] = p.StringTable[f.Name]
		}
		for _, l := range p.Location {
			locations[l.Id] = functions[l.Line[0].FunctionId]
		}
		for _, s := range p.Sample {
			var path []string
			for _, id := range s.LocationId {
				require.NotEmpty(t, locations[id])
				path = append(path, locations[id])
			}
			lines = append(lines, fmt.Sprint(strings.Join(path, " < "), " ", s.Value[0]))
		}
		slices.Sort(lines)
		return lines
	}
	whole := []string{"deep < small < main 3", "deeper < deep < small < main 2", "hot < main 30", "leaf < hot < main 50",
		"tiny 1"}
	assert.Equal(t, whole, names(ask(0, nil)))
	assert.Equal(t, whole, names(ask(8, nil)))
	// The nodes are main 85, hot 80, leaf 50, small 5, deep 5, deeper 2, tiny 1, and the root.
	assert.Equal(t, []string{"hot < main 30", "leaf < hot < main 50", "other 1", "other < small < main 5"},
		names(ask(3, nil)))
	assert.Equal(t, []string{"hot < main 30", "other 1", "other < hot < main 50", "other < small < main 5"},
		names(ask(1, nil)))
	assert.NotContains(t, ask(3, nil).StringTable, "deeper", "nothing refers to it")
	assert.Equal(t, []string{"deep 3", "deeper 2", "hot 30", "leaf 50", "tiny 1"},
		names(ask(0, &typesv1.GoPGO{KeepLocations: 1, AggregateCallees: true})))
	assert.Equal(t, []string{"deep < small 3", "deeper < deep 2", "hot < main 30", "leaf < hot 50", "tiny 1"},
		names(ask(3, &typesv1.GoPGO{KeepLocations: 2})))
	for _, l := range ask(0, &typesv1.GoPGO{KeepLocations: 1, AggregateCallees: true}).Location {
		assert.Zero(t, l.Line[0].Line)
	}
}

// Calls reserve what their answers take, although profiles share long labels.
func TestCallsReserveTheirMemory(t *testing.T) {
	profiletest.SkipLarge(t)
	s := newStore()
	b := profiletest.New()
	var many []any
	for i := range 100 {
		many = append(many, fmt.Sprint("key", i), "value")
	}
	b.Resource(append([]any{"service.name", "shop"}, many...)...)
	for i := range 10_000 {
		b.Profile("cpu", "nanoseconds").Period(10, "cpu", "nanoseconds").
			Time(uint64(noon.Add(-time.Minute).UnixNano()+int64(i)*5e6), 1e6).Sample(profiletest.Value(int64(1+i), "leaf"))
	}
	long, by := []profiletest.Attribute{}, []string{"number"}
	for i := range 4 {
		by = append(by, fmt.Sprint("long", i))
		long = append(long, profiletest.Attr(by[i+1], strings.Repeat("long", 10_000)))
	}
	b.Resource("service.name", "long").Profile("cpu", "nanoseconds").Period(10, "cpu", "nanoseconds").
		Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9)
	for i := range 5000 {
		b.Sample(profiletest.Value(1, "leaf").With(append(long, profiletest.Attr("number", fmt.Sprint(i)))...))
	}
	require.Zero(t, s.Add(b.Build(), noon).Refused)
	q := &Querier{Store: s.Querier, Now: func() time.Time { return noon }}
	from, until := noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
	individual := typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL
	for name, call := range map[string]func(ctx context.Context) (any, error){
		"exemplars of series": func(ctx context.Context) (any, error) {
			return q.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpuType,
				LabelSelector: `{service_name="shop"}`, Start: from, End: until, Step: 0.001, ExemplarType: individual}))
		},
		"exemplars of a heat map": func(ctx context.Context) (any, error) {
			return q.SelectHeatmap(ctx, connect.NewRequest(&querierv1.SelectHeatmapRequest{ProfileTypeID: cpuType,
				LabelSelector: `{service_name="shop"}`, Start: from, End: until, Step: 0.001, ExemplarType: individual,
				QueryType: querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_INDIVIDUAL}))
		},
		"groups": func(ctx context.Context) (any, error) {
			return q.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpuType,
				LabelSelector: `{service_name="long"}`, Start: from, End: until, Step: 10, GroupBy: by}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			profiletest.RequireReserved(t, profiletest.Bound{}, 8<<20, func(reserve func(n int) error) {
				reserved := 0
				answer, err := call(WithMeter(t.Context(), &size.Meter{Context: t.Context(), Reserve: func(n int) error {
					reserved += n
					return reserve(n)
				}}))
				require.NoError(t, err)
				if name == "groups" { // their keys
					require.Greater(t, reserved, 5000*4*2000)
				}
				runtime.KeepAlive(answer)
			})
		})
	}
}

// Queries that are at fault say why. None of them takes long, or more memory than it may.
func TestHostileQueries(t *testing.T) {
	s := newStore()
	keep(t, s, history(rand.New(rand.NewPCG(5, 5)), noon, 4), noon)
	c, _ := client(t, s.Querier, noon)
	ask := func(in *querierv1.SelectMergeStacktracesRequest) error {
		in.Start, in.End = noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
		_, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(in))
		return err
	}
	nodes := func(n int64) *int64 { return &n }
	for name, in := range map[string]*querierv1.SelectMergeStacktracesRequest{
		"is not a profile type":          {ProfileTypeID: "cpu"},
		"label selector":                 {ProfileTypeID: cpuType, LabelSelector: `{a=`},
		"missing argument to repetition": {ProfileTypeID: cpuType, LabelSelector: `{a=~"*"}`},
		"more than 16384 bytes": {ProfileTypeID: cpuType,
			LabelSelector: `{a=~"` + strings.Repeat("x|", 10_000) + `"}`},
		"from 1 to 1048576":          {ProfileTypeID: cpuType, MaxNodes: nodes(1 << 40)},
		"found -1":                   {ProfileTypeID: cpuType, MaxNodes: nodes(-1)},
		"is not the id of a profile": {ProfileTypeID: cpuType, ProfileIdSelector: []string{"x"}},
		"is not the id of a span":    {ProfileTypeID: cpuType, SpanSelector: []string{"123"}},
		"is not the id of a trace":   {ProfileTypeID: cpuType, TraceIdSelector: []string{strings.Repeat("g", 32)}},
		"cannot be combined": {ProfileTypeID: cpuType, SpanSelector: []string{strings.Repeat("0", 16)},
			TraceIdSelector: []string{strings.Repeat("0", 32)}},
		"may select at most 10000 ids": {ProfileTypeID: cpuType, SpanSelector: make([]string, 10_001)},
		"leave out `async`":            {ProfileTypeID: cpuType, Async: &querierv1.AsyncQueryRequest{RequestId: "x"}},
		"`go tool pprof -dot`":         {ProfileTypeID: cpuType, Format: querierv1.ProfileFormat_PROFILE_FORMAT_DOT},
		"`go_pgo`": {ProfileTypeID: cpuType,
			StackTraceSelector: &typesv1.StackTraceSelector{GoPgo: &typesv1.GoPGO{}}},
	} {
		assert.ErrorContains(t, ask(in), name)
	}
	labels := strings.Fields(strings.Repeat("a ", maxNames+1))
	_, err := c.Series(t.Context(), connect.NewRequest(&querierv1.SeriesRequest{LabelNames: labels}))
	require.ErrorContains(t, err, "at most 100 labels")
	_, err = c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpuType, Step: 1,
		End: noon.UnixMilli(), GroupBy: labels}))
	require.ErrorContains(t, err, "at most 100 labels")
	var bounds size.Meter
	reserved := 0
	bounds.Reserve = func(n int) error {
		if reserved += n; reserved > 32<<20 {
			return model.ErrTooLarge
		}
		return nil
	}
	for _, text := range []string{
		`{a=~"` + strings.Repeat(`\\pL{1000}|`, 1000) + `"}`, `{a=~"` + strings.Repeat(`(x{500}){2}|`, 1000) + `"}`,
		`{a=~"` + strings.Repeat(`[^x]{999}|`, 1000) + `"}`,
	} {
		reserved = 0
		bounds = size.Meter{Reserve: bounds.Reserve}
		_, err := parseSelectors(&bounds, text)
		assert.ErrorIs(t, err, model.ErrTooLarge, text[:20])
	}
	left := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, Start: 2, End: 1}
	_, err = c.Diff(t.Context(), connect.NewRequest(&querierv1.DiffRequest{Left: left,
		Right: &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, End: noon.UnixMilli()}}))
	require.ErrorContains(t, err, "the start of the time, 2, is after its end, 1")
	_, err = c.SelectSeries(t.Context(),
		connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpuType, Start: 2, End: 1, Step: 15}))
	require.ErrorContains(t, err, "is after its end")
	_, err = c.SelectSeries(t.Context(),
		connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpuType, Start: -1 << 63, End: 1<<63 - 1,
			Step: 0.001}))
	require.NoError(t, err, "the cost is that of the profiles, not of the steps")
}

func FuzzSelectors(f *testing.F) {
	for _, text := range []string{`{a="b"}`,
		`process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=~"shop|cart", "k8s.pod.name"!="x"}`, `{a=~"(x{500}){2}"}`} {
		f.Add(text)
	}
	s := newStore()
	keep(f, s, history(rand.New(rand.NewPCG(6, 6)), noon, 2), noon)
	q := &Querier{Store: s.Querier, Now: func() time.Time { return noon }}
	f.Fuzz(func(t *testing.T, text string) {
		ctx := WithMeter(t.Context(), &size.Meter{Context: t.Context()})
		in := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: text, Start: 0,
			End: noon.UnixMilli()}
		out, err := q.SelectMergeStacktraces(ctx, connect.NewRequest(in))
		if err == nil {
			require.NotNil(t, out.Msg.Flamegraph)
		}
		_, _ = q.Series(ctx,
			connect.NewRequest(&querierv1.SeriesRequest{Matchers: []string{text}, Start: 0, End: noon.UnixMilli(),
				LabelNames: []string{text}}))
		_, _ = query.ParseTime(text, noon)
		_, _ = parseIDs[profileID]("profile", []string{text}, "-")
	})
}

// Series with equal sums are in the order of their labels, which are in the order of group_by.
func TestEqualSums(t *testing.T) {
	s := newStore()
	for i, endpoint := range []string{"/pay", "/cart"} {
		b := profiletest.New().Resource("service.name", fmt.Sprint("shop-", i), "endpoint", endpoint)
		b.Profile("cpu", "nanoseconds").Period(50, "cpu", "nanoseconds").Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).
			Sample(profiletest.Value(7, "leaf"))
		require.NotZero(t, s.Add(b.Build(), noon).Profiles)
	}
	c, _ := client(t, s.Querier, noon)
	pay, cart := "endpoint=/pay,service_name=shop-0 1769860800000:7", "endpoint=/cart,service_name=shop-1 1769860800000:7"
	for first, want := range map[string][]string{"service_name": {pay, cart}, "endpoint": {cart, pay}} {
		series, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
			ProfileTypeID: cpuType, LabelSelector: "{}", Start: noon.Add(-time.Hour).UnixMilli(), End: noon.UnixMilli(),
			Step:    3600,
			GroupBy: []string{first, "service_name", "endpoint"},
		}))
		require.NoError(t, err)
		assert.Equal(t, want, seriesText(series.Msg.Series))
	}
}
