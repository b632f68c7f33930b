// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// clock is a time that tests set.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time { return c.at }

// fixture is a connector whose time the test sets.
type fixture struct {
	*profileMetrics
	clock     *clock
	sink      *consumertest.MetricsSink
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func load(t testing.TB, section string) *Config {
	t.Helper()
	cfg, err := collectortest.LoadYAML(createDefaultConfig().(*Config), section)
	require.NoError(t, err)
	return cfg
}

func start(t testing.TB, section string) *fixture {
	t.Helper()
	f := &fixture{sink: &consumertest.MetricsSink{}}
	f.startWith(t, section, f.sink)
	return f
}

func (f *fixture) startWith(t testing.TB, section string, next consumer.Metrics) {
	t.Helper()
	f.clock, f.telemetry = newClock(), componenttest.NewTelemetry()
	set := connector.Settings{ID: component.MustNewID("profile_metrics"),
		TelemetrySettings: f.telemetry.NewTelemetrySettings()}
	var core zapcore.Core
	core, f.logs = observer.New(zapcore.InfoLevel)
	set.Logger = zap.New(core)
	set.Resource.Attributes().PutStr("service.instance.id", "collector-1")
	c, err := newConnector(set, load(t, section), next, f.clock.now)
	require.NoError(t, err)
	f.profileMetrics = c
	t.Cleanup(func() { require.NoError(t, f.telemetry.Shutdown(context.Background())) })
}

func (f *fixture) consume(t testing.TB, messages ...pprofile.Profiles) {
	t.Helper()
	for _, pd := range messages {
		pd.MarkReadOnly() // it is shared with other pipelines
		require.NoError(t, f.ConsumeProfiles(t.Context(), pd))
	}
}

// collect ends an interval, and returns its points: name{attributes} → value.
func (f *fixture) collect(t testing.TB) map[string]float64 {
	t.Helper()
	f.clock.at = f.clock.at.Add(time.Minute)
	f.flush(t.Context())
	points := pointsOf(t, f.sink.AllMetrics()...)
	f.sink.Reset()
	return points
}

func pointsOf(t testing.TB, messages ...pmetric.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, md := range messages {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range dataPoints(m).All() {
					if dp.Flags().NoRecordedValue() {
						continue
					}
					name := m.Name() + describe(rm.Resource().Attributes(), dp.Attributes())
					require.NotContains(t, all, name)
					all[name] = valueOf(dp)
				}
			}
		}
	}
	return all
}

func dataPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeGauge {
		return m.Gauge().DataPoints()
	}
	return m.Sum().DataPoints()
}

func valueOf(dp pmetric.NumberDataPoint) float64 {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(dp.IntValue())
	}
	return dp.DoubleValue()
}

func describe(maps ...pcommon.Map) string {
	var parts []string
	for _, m := range maps {
		for key, v := range m.All() {
			if key != series.WriterKey {
				parts = append(parts, key+"="+v.AsString())
			}
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func (f *fixture) dropped(t testing.TB, reason string) int64 {
	return collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_dropped_samples", "reason", reason)
}

const second = 1_000_000_000

// cpu returns a profile of a service: 10 samples a second, and their functions.
func cpu(service string, values ...int64) *profiletest.Builder {
	b := profiletest.New().Resource("service.name", service).Profile("cpu", "nanoseconds").
		Time(second, 10*second).Period(100_000_000, "cpu", "nanoseconds")
	for i, v := range values {
		b.Sample(profiletest.Value(v, fmt.Sprintf("main.leaf%d", i), "net/http.(*conn).serve", "main.main"))
	}
	return b
}

func TestFactory(t *testing.T) {
	factory := NewFactory().(xconnector.Factory)
	telemetry := componenttest.NewTelemetry()
	set := connector.Settings{ID: component.MustNewID("profile_metrics"),
		TelemetrySettings: telemetry.NewTelemetrySettings()}
	sink := &consumertest.MetricsSink{}
	c, err := factory.CreateProfilesToMetrics(t.Context(), set, createDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), nil))
	require.NoError(t, c.ConsumeProfiles(t.Context(), cpu("shop", 5*second).Build()))
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, map[string]float64{"profile.cpu.time{service.name=shop}": 5}, pointsOf(t, sink.AllMetrics()...),
		"the end sends what is left")
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// TestBuiltIn has each kind of profile by the words of this distribution and of others.
func TestBuiltIn(t *testing.T) {
	f := start(t, "")
	add := func(b *profiletest.Builder, sampleType, unit string, value int64) *profiletest.Builder {
		return b.Profile(sampleType, unit).Time(second, 10*second).Sample(profiletest.Value(value, "main.main"))
	}
	b := profiletest.New().Resource("service.name", "shop", "service.namespace", "demo")
	add(add(b.Scope("cpu", ""), "samples", "count", 7).Period(10, "cpu", "nanoseconds"), "cpu", "milliseconds", 1500).
		Period(10, "cpu", "nanoseconds")
	b.Scope("heap", "")
	for i, typ := range []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"} {
		unit := []string{"count", "bytes"}[i%2]
		add(b, typ, unit, int64(100+i)).Period(512<<10, "space", "bytes")
	}
	add(b.Scope("goroutines", ""), "goroutine", "count", 12)
	add(b.Scope("locks", ""), "delay", "nanoseconds", 3*second).Period(1, "contentions", "count")
	add(b.Scope("blocked", "", "pprof.scope.profile_name", "block"), "delay", "nanoseconds", 9*second).Period(1,
		"contentions", "count")
	// The eBPF profiler and Splunk's agents count samples of a period.
	b.Resource("service.name", "ebpf").Scope("", "", "pprof.scope.sample_type_order", []any{"samples"}).
		Profile("samples", "count").Time(second, 10*second).Period(50_000_000, "cpu", "nanoseconds").
		Sample(profiletest.Observed([]uint64{second, 2 * second}, "main.main"))
	// async-profiler's OTLP has its engine's name twice.
	for _, engine := range []string{"itimer", "ctimer", "perf_events"} {
		b.Resource("service.name", engine).Scope("", "")
		add(b, engine, "count", 3)
		add(b, engine, "ns", 4*second)
	}
	b.Resource("service.name", "both").Scope("", "")
	add(b, "itimer", "ns", 4*second)
	add(b, "cpu", "ns", 5*second)
	// One time in several forms.
	for i, types := range [][]string{{"cpu-time", "cpu"}, {"cpu_time"}, {"CPU"}} {
		b.Resource("service.name", fmt.Sprint("forms", i)).Scope("", "")
		add(b, "samples", "count", 6).Period(second, "cpu", "nanoseconds")
		for _, typ := range types {
			add(b, typ, "nanoseconds", 6*second)
		}
	}
	f.consume(t, b.Build())
	shop := "{service.name=shop,service.namespace=demo}"
	assert.Equal(t, map[string]float64{
		"profile.cpu.time" + shop: 1.5, "profile.memory.allocations" + shop: 100, "profile.memory.allocated" + shop: 101,
		"profile.memory.used" + shop: 103, "profile.goroutine.count" + shop: 12, "profile.lock.wait.time" + shop: 3,
		"profile.cpu.time{service.name=ebpf}": 0.1, "profile.cpu.time{service.name=itimer}": 4,
		"profile.cpu.time{service.name=ctimer}": 4, "profile.cpu.time{service.name=perf_events}": 4,
		"profile.cpu.time{service.name=both}": 5, "profile.cpu.time{service.name=forms0}": 6,
		"profile.cpu.time{service.name=forms1}": 6, "profile.cpu.time{service.name=forms2}": 6,
	}, f.collect(t))
	f = start(t, "metrics: {own: {unit: s, profiles: [process_cpu/itimer]}, profile.cpu.time: {enabled: false}}")
	f.consume(t, add(profiletest.New().Resource("service.name", "shop"), "itimer", "ns", second).Build())
	assert.Equal(t, map[string]float64{"own{service.name=shop}": 1}, f.collect(t))
}

func TestOTLP(t *testing.T) {
	f := start(t, "")
	f.consume(t, cpu("shop", second).Build(),
		profiletest.New().Resource("service.name", "shop").Profile("goroutine", "count").
			Sample(profiletest.Value(3, "main.main")).Build())
	began := f.clock.at
	f.clock.at = began.Add(time.Minute)
	f.flush(t.Context())
	md := f.sink.AllMetrics()[0]
	require.Equal(t, 1, md.ResourceMetrics().Len())
	sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector", sm.Scope().Name())
	sum := sm.Metrics().At(0)
	assert.Equal(t, "s", sum.Unit())
	assert.NotEmpty(t, sum.Description())
	assert.True(t, sum.Sum().IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.Sum().AggregationTemporality())
	dp := sum.Sum().DataPoints().At(0)
	assert.Equal(t, began, dp.StartTimestamp().AsTime().Local())
	assert.Equal(t, f.clock.at, dp.Timestamp().AsTime().Local())
	writer, _ := dp.Attributes().Get(series.WriterKey)
	assert.Equal(t, "collector-1", writer.Str())
	assert.Equal(t, pmetric.MetricTypeGauge, sm.Metrics().At(1).Type())
	assert.Equal(t, int64(3), sm.Metrics().At(1).Gauge().DataPoints().At(0).IntValue())
}

func TestTemporality(t *testing.T) {
	for temporality, want := range map[string][]float64{temporalityCumulative: {3, 3, 5}, temporalityDelta: {3, -1, 2}} {
		f := start(t, "temporality: "+temporality)
		f.consume(t, cpu("shop", 1*second, 2*second).Build())
		for i, w := range want {
			points := f.collect(t)
			if w < 0 {
				assert.Empty(t, points, "nothing happened")
			} else {
				assert.Equal(t, map[string]float64{"profile.cpu.time{service.name=shop}": w}, points, "%s %d", temporality, i)
			}
			if i == 1 {
				f.consume(t, cpu("shop", 2*second).Build())
			}
		}
	}
}

const conditional = `
metrics:
  profile.cpu.time: {enabled: false}
  anywhere: {profiles: [process_cpu/cpu], unit: s, functions: ['^encoding/json\.', '^net/http\.']}
  leaf:     {profiles: [process_cpu/cpu], unit: s, functions: ['^encoding/json\.'], match: leaf}
  below:    {profiles: [process_cpu/cpu], unit: s, functions: ['^runtime\.mallocgc$'], below: ['^encoding/json\.']}
  leafbelow: {profiles: [process_cpu/cpu], unit: s, functions: ['^runtime\.'], match: leaf, below: ['^net/http\.']}
  package:  {profiles: [process_cpu/cpu], unit: s, match: leaf, group_by: {frame: package}}
  listed:   {profiles: [process_cpu/cpu], unit: s, functions: ['^encoding/json\.', '^net/http\.'], group_by: {frame: function}}
  route:    {profiles: [process_cpu/cpu], unit: s, has_sample_attributes: {http.route: '^/api'}, group_by: {sample_attributes: [http.route], resource_attributes: []}}
  services: {profiles: [process_cpu/cpu], unit: s, services: ['^shop$', '^cart'], group_by: {resource_attributes: [host.name]}}
  prod:     {profiles: [process_cpu/cpu], unit: s, has_resource_attributes: {deployment.environment.name: ^prod}}
`

func TestConditions(t *testing.T) {
	f := start(t, conditional)
	b := profiletest.New().Resource("service.name", "shop", "host.name", "a").Profile("cpu", "nanoseconds").Sample(
		profiletest.Value(1*second, "runtime.mallocgc", "encoding/json.Marshal", "net/http.serve", "main.main").
			With(profiletest.Attr("http.route", "/api/x")),
		profiletest.Value(2*second, "encoding/json.Marshal", "runtime.mallocgc", "main.main").
			With(profiletest.Attr("http.route", "/api/y")),
		profiletest.Value(4*second, "runtime.mallocgc", "net/http.serve", "net/http.listen", "main.main").
			With(profiletest.Attr("http.route", "/health")),
		profiletest.Value(8*second, "main.main"),
	)
	b.Resource("service.name", "other", "deployment.environment.name", "production").Profile("cpu", "nanoseconds").
		Sample(profiletest.Value(16*second, "main.main"))
	f.consume(t, b.Build())
	assert.Equal(t, map[string]float64{
		"anywhere{service.name=shop}": 7, "leaf{service.name=shop}": 2, "below{service.name=shop}": 1,
		"leafbelow{service.name=shop}":                                       5,
		"package{profile.package.name=runtime,service.name=shop}":            5,
		"package{profile.package.name=encoding/json,service.name=shop}":      2,
		"package{profile.package.name=main,service.name=shop}":               8,
		"package{profile.package.name=main,service.name=other}":              16,
		"listed{code.function.name=encoding/json.Marshal,service.name=shop}": 3,
		"listed{code.function.name=net/http.serve,service.name=shop}":        5,
		"listed{code.function.name=net/http.listen,service.name=shop}":       4,
		"route{http.route=/api/x}":                                           1, "route{http.route=/api/y}": 2,
		"services{host.name=a}": 15, "prod{service.name=other}": 16,
	}, f.collect(t))
}

func TestExemplars(t *testing.T) {
	f := start(t, "")
	b := cpu("shop")
	for i := range 9 {
		b.Sample(profiletest.Value(int64(i+1)*second, "main.main", fmt.Sprint(i)).Linked([16]byte{1, byte(i)}, [8]byte{2}))
	}
	f.consume(t, b.Build())
	f.clock.at = f.clock.at.Add(time.Minute)
	f.flush(t.Context())
	dp := f.sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
	var values []float64
	for _, e := range dp.Exemplars().All() {
		values = append(values, e.DoubleValue())
		assert.Equal(t, pcommon.TraceID{1, byte(e.DoubleValue() - 1)}, e.TraceID())
	}
	assert.ElementsMatch(t, []float64{6, 7, 8, 9}, values, "the largest ones")
	f.sink.Reset()
	f.flush(t.Context())
	dp = f.sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
	assert.Zero(t, dp.Exemplars().Len(), "each exemplar is sent once")
}

// TestExemplarsHaveTheTimeOfTheirSample has a sample with timestamps and one without.
func TestExemplarsHaveTheTimeOfTheirSample(t *testing.T) {
	for _, observed := range []bool{true, false} {
		f := start(t, "")
		sample, want := profiletest.Value(2, "main.main"), pcommon.Timestamp(second)
		if observed {
			sample, want = profiletest.Observed([]uint64{3 * second, 4 * second}, "main.main"), 4*second
		}
		f.consume(t, cpu("shop").Sample(sample.Linked([16]byte{1}, [8]byte{2})).Build())
		f.flush(t.Context())
		dp := f.sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
		require.Equal(t, 1, dp.Exemplars().Len())
		assert.Equal(t, want, dp.Exemplars().At(0).Timestamp())
	}
}

// state returns a profile of a process whose values are a state or a total.
func state(pod, sampleType string, atSecond uint64, values ...int64) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", "shop", "pod", pod).Profile(sampleType, "bytes").Time(atSecond*second,
		0)
	for i, v := range values {
		b.Sample(profiletest.Value(v, fmt.Sprint("main.leaf", i)))
	}
	return b.Build()
}

func TestGauges(t *testing.T) {
	f := start(t, `
metrics:
  leaf0: {profiles: [memory/inuse_space], unit: By, functions: [leaf0]}
`)
	used, leaf := "profile.memory.used{service.name=shop}", "leaf0{service.name=shop}"
	f.consume(t, state("a", "inuse_space", 10, 5, 6), state("b", "inuse_space", 11, 100))
	assert.Equal(t, map[string]float64{used: 111, leaf: 105}, f.collect(t), "the sum of the processes")
	f.consume(t, state("a", "inuse_space", 70, 0, 7))
	assert.Equal(t, map[string]float64{used: 107, leaf: 100}, f.collect(t), "the newest state of each")
	f.consume(t, state("a", "inuse_space", 60, 1))
	assert.Equal(t, int64(2), f.dropped(t, "order"))
	f.collect(t)
	assert.Empty(t, f.collect(t), "no process is left")
}

func TestCumulative(t *testing.T) {
	f := start(t, `
metrics:
  leaf1: {profiles: [memory/alloc_space], unit: By, functions: [leaf1]}
`)
	all, leaf := "profile.memory.allocated{service.name=shop}", "leaf1{service.name=shop}"
	f.consume(t, state("a", "alloc_space", 10, 1000, 500))
	assert.Equal(t, map[string]float64{all: 0, leaf: 0}, f.collect(t), "nothing is known to be new")
	assert.Equal(t, int64(3), f.dropped(t, "baseline"))
	f.consume(t, state("a", "alloc_space", 70, 1010, 501))
	assert.Equal(t, map[string]float64{all: 11, leaf: 1}, f.collect(t))
	f.consume(t, state("a", "alloc_space", 65, 9999))
	assert.Equal(t, int64(1), f.dropped(t, "order"))
	f.consume(t, state("a", "alloc_space", 130, 20))
	assert.Equal(t, map[string]float64{all: 31, leaf: 1}, f.collect(t), "the process has restarted")
	f.consume(t, state("a", "alloc_space", 190, 20, 3))
	assert.Equal(t, map[string]float64{all: 34, leaf: 4}, f.collect(t),
		"what a function had before the restart does not count")
	f.consume(t, state("b", "alloc_space", 190, 7))
	assert.Equal(t, map[string]float64{all: 34, leaf: 4}, f.collect(t), "another process")
}

// Totals of two processes with one identity are told, those of a process that restarts are not.
func TestTotalsOfTwoProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		totals []int64
		lines  int
	}{
		"one that restarts": {[]int64{100, 110, 120, 10, 20, 30, 40, 1, 5}, 0},
		"two":               {[]int64{1000, 500, 1010, 510, 1020, 520, 1030, 530}, 1},
	} {
		f := start(t, "")
		for i, total := range tt.totals {
			f.consume(t, state("a", "alloc_space", uint64(i), total))
			for range i % 3 { // an interval may have several profiles, or none
				f.collect(t)
			}
		}
		lines := f.logs.FilterMessageSnippet("totals of one resource fall and rise").All()
		if assert.Len(t, lines, tt.lines, name) && tt.lines > 0 {
			assert.Equal(t, map[string]any{"service.name": "shop"}, lines[0].ContextMap()["resource"])
		}
	}
}

// TestProfilesNamedTwice has two names of one type, which counts once.
func TestProfilesNamedTwice(t *testing.T) {
	f := start(t, "metrics: {twice: {unit: s, profiles: [process_cpu/cpu, cpu/cpu, process_cpu/cpu]}}")
	f.consume(t, cpu("shop", 5*second).Build())
	assert.Equal(t, map[string]float64{"twice{service.name=shop}": 5, "profile.cpu.time{service.name=shop}": 5},
		f.collect(t))
}

// TestNothingVanishes adds up: the values that were sent are those that arrive, in the overflow included, and dropped
// samples are counted.
func TestNothingVanishes(t *testing.T) {
	f := start(t, "max_series: 10")
	b := profiletest.New()
	for i := range 100 {
		b.Resource("service.name", fmt.Sprint("service", i)).Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(second, "main.main"))
	}
	b.Resource("service.name", "units").Profile("cpu", "bytes").Sample(profiletest.Value(second, "main.main"))
	b.Resource("service.name", "negative").Profile("cpu", "nanoseconds").Sample(profiletest.Value(-1, "main.main"))
	b.Resource("service.name", "index").Profile("cpu", "nanoseconds").Sample(profiletest.Value(second, "main.main"))
	pd := b.Break(func(pd pprofile.Profiles) {
		last := pd.ResourceProfiles().At(102).ScopeProfiles().At(0).Profiles().At(0).Samples()
		last.At(0).SetStackIndex(99)
		last.AppendEmpty()
	}).Build()
	f.consume(t, pd)
	points := f.collect(t)
	assert.Len(t, points, 11)
	sum := 0.0
	for _, v := range points {
		sum += v
	}
	assert.InDelta(t, 100, sum, 0)
	assert.InDelta(t, 90, points["profile.cpu.time{otel.metric.overflow=true}"], 0)
	assert.Equal(t, int64(90), collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_overflow_samples"))
	assert.Equal(t, int64(104), collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_samples"))
	for _, reason := range []string{"unit", "negative", "index", "shape"} {
		assert.Equal(t, int64(1), f.dropped(t, reason), reason)
	}
	assert.Equal(t, int64(10), collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_series"))
}

// TestSeriesExpire has services that come and go: each interval other ones.
func TestSeriesExpire(t *testing.T) {
	for _, temporality := range []string{temporalityCumulative, temporalityDelta} {
		f := start(t, "{max_series: 100, series_expiry: 5m, temporality: "+temporality+"}")
		for i := range 60 {
			f.consume(t, cpu(fmt.Sprint("service", i), second).Build(), state(fmt.Sprint(i), "inuse_space", uint64(i+1), 1))
			points := f.collect(t)
			assert.NotContains(t, points, "profile.cpu.time{otel.metric.overflow=true}")
			assert.LessOrEqual(t, len(points), 10)
		}
		assert.Zero(t, f.dropped(t, "max_series"))
		f.clock.at = f.clock.at.Add(time.Hour)
		f.collect(t)
		assert.Zero(t, f.table.Len())
		assert.Zero(t, f.table.Bytes())
	}
}

func TestSaturates(t *testing.T) {
	f := start(t, "")
	for range 3 {
		f.consume(t, cpu("shop", math.MaxInt64, math.MaxInt64).Build())
	}
	assert.InDelta(t, float64(math.MaxInt64)/1e9, f.collect(t)["profile.cpu.time{service.name=shop}"], 1)
}

func TestManyPointsAreSeveralMessages(t *testing.T) {
	f := start(t, "")
	b := profiletest.New()
	for i := range 2*pointsPerMessage + 1 {
		b.Resource("service.name", fmt.Sprint("service", i)).Profile("cpu", "nanoseconds").
			Sample(profiletest.Value(second, "main.main"))
	}
	f.consume(t, b.Build())
	f.flush(t.Context())
	assert.Len(t, f.sink.AllMetrics(), 3)
	assert.Len(t, pointsOf(t, f.sink.AllMetrics()...), 2*pointsPerMessage+1)
}

// TestSideBySide has senders while metrics are sent.
func TestSideBySide(t *testing.T) {
	f := start(t, conditional+"\ntemporality: delta")
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range 50 {
				assert.NoError(t, f.ConsumeProfiles(context.Background(), cpu("shop", second).Build()))
			}
		})
	}
	for range 20 {
		f.flush(t.Context())
	}
	senders.Wait()
	f.flush(t.Context())
	sum := 0.0
	for _, md := range f.sink.AllMetrics() {
		for name, v := range pointsOf(t, md) {
			if strings.HasPrefix(name, "anywhere{") {
				sum += v
			}
		}
	}
	assert.InDelta(t, 200, sum, 1e-9)
}

func TestConfig(t *testing.T) {
	for section, want := range map[string]string{
		"interval: 0s":      "`interval` must be at least 1s, found 0s",
		"temporality: both": "`temporality` must be cumulative or delta",
		"max_series: 0":     "`max_series` must be positive, found 0",
		"max_bytes: 1":      "`max_bytes` must be at least 65536, found 1",
		"series_expiry: 1s": "`series_expiry` must be at least `interval`",
		"metrics: {profile.cpu.tim: {enabled: false}}":                                                                    "`metrics.profile.cpu.tim.profiles` must name at least one sample type",
		"metrics: {profile.cpu.time: {enabled: false, unit: s}}":                                                          "`metrics.profile.cpu.time.profiles` must name at least one sample type",
		"metrics: {'a b': {unit: s, profiles: [process_cpu/cpu]}}":                                                        "must begin with a letter",
		"metrics: {x: {unit: s}}":                                                                                         "`metrics.x.profiles` must name at least one sample type",
		"metrics: {x: {unit: s, profiles: [cpu]}}":                                                                        "`metrics.x.profiles`: \"cpu\" must be a profile and a sample type",
		"metrics: {x: {unit: apples, profiles: [process_cpu/cpu]}}":                                                       "`metrics.x.unit` must be s, By, 1 or an annotation such as {sample}, found \"apples\"",
		"metrics: {x: {unit: s, profiles: [process_cpu/cpu], functions: ['(']}}":                                          "`metrics.x.functions` must have regular expressions: error parsing regexp",
		"metrics: {x: {unit: s, profiles: [process_cpu/cpu], match: root}}":                                               "`metrics.x.match` must be anywhere or leaf, found \"root\"",
		"metrics: {x: {unit: s, profiles: [process_cpu/cpu], group_by: {frame: line}}}":                                   "`metrics.x.group_by.frame` must be none, package or function, found \"line\"",
		"metrics: {x: {unit: By, profiles: [memory/inuse_space, memory/alloc_space]}}":                                    "must not mix what happens (memory/alloc_space) and what is a state (memory/inuse_space)",
		"metrics: {x: {unit: s, profiles: [process_cpu/cpu], services: [a], has_resource_attributes: {service.name: b}}}": "exclude each other",
		"resource_attributes: ['']":                                                                                       "`resource_attributes` must not have an empty entry",
		"resource_attributes: [a, b, a]":                                                                                  "`resource_attributes` must be distinct, found \"a\" twice",
		"resource_attributes: [profile.writer.id]":                                                                        "`resource_attributes` must not have \"profile.writer.id\", which the connector sets",
		"metrics: {x: {unit: s, profiles: [a/b], group_by: {sample_attributes: [profile.writer.id]}}}":                    "`metrics.x.group_by.sample_attributes` must not have \"profile.writer.id\"",
		"metrics: {x: {unit: s, profiles: [a/b], group_by: {sample_attributes: [a, '']}}}":                                "`metrics.x.group_by.sample_attributes` must not have an empty entry",
		"metrics: {x: {unit: s, profiles: [a/b], group_by: {resource_attributes: [a, a]}}}":                               "`metrics.x.group_by.resource_attributes` must be distinct, found \"a\" twice",
		"top_functions: [{profile: process_cpu/cpu}, {profile: cpu/cpu}]":                                                 "`top_functions[1]` has the `profile` and `of` of `top_functions[0]`",
		"metric: {}": "metric",
	} {
		_, err := collectortest.LoadYAML(createDefaultConfig().(*Config), section)
		if strings.Contains(want, "must not mix") {
			want = "must not mix what happens"
		}
		assert.ErrorContains(t, err, want, section)
	}
	many := "metrics:\n"
	for i := range 65 {
		many += fmt.Sprintf("  m%d: {unit: s, profiles: [process_cpu/cpu], functions: [f%d]}\n", i, i)
	}
	_, err := collectortest.LoadYAML(createDefaultConfig().(*Config), many)
	assert.ErrorContains(t, err, "more than 64 different regular expressions")
}

// TestBuiltInMetrics has the sections that keep, replace and leave out a built-in metric, and one of an own metric.
func TestBuiltInMetrics(t *testing.T) {
	for section, want := range map[string]struct{ metrics, types int }{
		"{}":                                   {len(builtIn), len(builtIn["profile.cpu.time"].Profiles)},
		"{profile.cpu.time: {enabled: true}}":  {len(builtIn), len(builtIn["profile.cpu.time"].Profiles)},
		"{profile.cpu.time: {enabled: false}}": {len(builtIn) - 1, 0},
		"{profile.cpu.time: {unit: s, profiles: [cpu/cpu]}}":                 {len(builtIn), 1},
		"{profile.cpu.time: {enabled: false, unit: s, profiles: [cpu/cpu]}}": {len(builtIn) - 1, 0},
		"{x: {enabled: false, unit: s, profiles: [cpu/cpu]}}": {len(builtIn),
			len(builtIn["profile.cpu.time"].Profiles)},
		"{x: {unit: s, profiles: [cpu/cpu]}}": {len(builtIn) + 1, len(builtIn["profile.cpu.time"].Profiles)},
	} {
		set, err := load(t, "metrics: "+section).set()
		require.NoError(t, err, section)
		assert.Len(t, set.Metrics, want.metrics, section)
		types := 0
		for i := range set.Metrics {
			if set.Metrics[i].Name == "profile.cpu.time" {
				types = len(set.Metrics[i].Types)
			}
		}
		assert.Equal(t, want.types, types, section)
	}
}

// TestShutdownEndsGauges has a sum, a state and a hottest function: what the last message has are the gauges, without
// values.
func TestShutdownEndsGauges(t *testing.T) {
	f := start(t, "{top_functions: [{profile: process_cpu/cpu, window: 1m}]}")
	f.clock.at = f.clock.at.Truncate(time.Minute)
	f.consume(t, serviceProfiles("shop", f.clock.at, map[string]int64{"cart.Add": 1}, 1000))
	values := f.collect(t)
	f.clock.at = f.clock.at.Add(time.Second)
	require.NoError(t, f.Shutdown(t.Context()))
	var last pcommon.Timestamp
	ended := map[string]bool{}
	for _, md := range f.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range dataPoints(m).All() {
					if dp.Flags().NoRecordedValue() {
						require.Equal(t, pmetric.MetricTypeGauge, m.Type(), m.Name())
						require.Greater(t, dp.Timestamp(), last, m.Name())
						ended[m.Name()+describe(rm.Resource().Attributes(), dp.Attributes())] = true
					} else {
						last = max(last, dp.Timestamp())
					}
				}
			}
		}
	}
	for name := range values {
		assert.Equal(t, !strings.HasPrefix(name, "profile.cpu.time"), ended[name], name)
	}
}

// TestShutdownBesideABackendThatIsAway has a metrics pipeline that answers nothing, as an exporter does that retries:
// the connector stops in the time that it has, and stores its history.
func TestShutdownBesideABackendThatIsAway(t *testing.T) {
	entered := make(chan struct{}, 16)
	next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, err)
	for name, deadline := range map[string]time.Duration{"between intervals": 0, "while it sends": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			f, d := &fixture{}, collectortest.NewDisk(nil)
			f.startWith(t, "{storage: disk, top_functions: [{profile: process_cpu/cpu}]}", next)
			if deadline > 0 {
				f.config.Interval = deadline
			}
			f.consume(t, cpu("shop", second).Build())
			require.NoError(t, f.Start(t.Context(), d))
			if deadline > 0 {
				<-entered
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			require.NoError(t, f.Shutdown(ctx))
			assert.Len(t, d.Content(), 2, "settings and a window")
		})
	}
}

// TestRefusedPoints has a pipeline that refuses points: deltas are sent again unless all its exporters refuse them
// permanently, since one of them may not have got them.
func TestRefusedPoints(t *testing.T) {
	permanent, temporary := consumererror.NewPermanent(errors.New("never")), errors.New("later")
	for name, tc := range map[string]struct {
		refusal error
		want    float64
		outcome string
	}{
		"for the moment":            {temporary, 2, "retried"},
		"permanently":               {permanent, 1, "refused"},
		"one of two for the moment": {errors.Join(permanent, temporary), 2, "retried"},
		"both permanently":          {errors.Join(permanent, permanent), 1, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{sink: &consumertest.MetricsSink{}}
			refusal := tc.refusal
			next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
				if refusal != nil {
					return refusal
				}
				return f.sink.ConsumeMetrics(ctx, md)
			})
			require.NoError(t, err)
			f.startWith(t, "temporality: delta", next)
			f.consume(t, cpu("shop", second).Build())
			assert.Empty(t, f.collect(t))
			refusal = nil
			f.consume(t, cpu("shop", second).Build())
			assert.Equal(t, map[string]float64{"profile.cpu.time{service.name=shop}": tc.want}, f.collect(t))
			for _, outcome := range []string{"accepted", tc.outcome} {
				assert.Equal(t, int64(1), collectortest.Sum(t, f.telemetry, "otelcol_connector_profile_metrics_points",
					"outcome", outcome), outcome)
			}
		})
	}
}

// at has the clock show a number of seconds after the test's start.
func (f *fixture) at(seconds int) {
	f.clock.at = newClock().at.Add(time.Duration(seconds) * time.Second)
}

// TestGaugeSurvivesTwoStatesCloseTogether has a process that sends a state when it starts, another one soon after, and
// then one each minute, as the receiver's own profiles are.
func TestGaugeSurvivesTwoStatesCloseTogether(t *testing.T) {
	f := start(t, "")
	next := 0
	times := []int{0, 5, 65, 125, 185, 190, 250, 310}
	for now := 60; now <= 300; now += 60 {
		for ; next < len(times) && times[next] < now; next++ {
			f.at(times[next])
			f.consume(t, state("a", "inuse_space", uint64(1000+times[next]), 7))
		}
		f.at(now - 60) // collect adds a minute
		assert.Equal(t, map[string]float64{"profile.memory.used{service.name=shop}": 7}, f.collect(t), "after %d s", now)
	}
}

// TestGaugesEnd has a process that ends after a long pause: its interval is bounded.
func TestGaugesEnd(t *testing.T) {
	f := start(t, "series_expiry: 30h")
	f.consume(t, state("a", "inuse_space", 10, 7))
	f.at(20 * 3600)
	f.consume(t, state("a", "inuse_space", 20*3600, 7))
	f.at(22*3600 - 60)
	assert.Len(t, f.collect(t), 1)
	assert.Equal(t, []string{"profile.memory.used{service.name=shop}"}, f.collectEnds(t))
	assert.Empty(t, f.collectEnds(t), "once")
	f.consume(t, state("a", "inuse_space", 22*3600+600, 7))
	assert.Len(t, f.collect(t), 1, "it is back")
}

// collectEnds is collect for the points that have no value any more.
func (f *fixture) collectEnds(t testing.TB) (names []string) {
	t.Helper()
	f.clock.at = f.clock.at.Add(time.Minute)
	f.flush(t.Context())
	for _, md := range f.sink.AllMetrics() {
		require.NotZero(t, md.DataPointCount())
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range dataPoints(m).All() {
					if name := describe(rm.Resource().Attributes(), dp.Attributes()); dp.Flags().NoRecordedValue() {
						assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, dp.ValueType())
						names = append(names, m.Name()+name)
					}
				}
			}
		}
	}
	f.sink.Reset()
	slices.Sort(names)
	return names
}

// divided returns a profile in parts of some samples.
func divided(sampleType string, atSecond uint64, size int, values ...int64) (parts []pprofile.Profiles) {
	for first := 0; first < len(values); first += size {
		b := profiletest.New().Resource("service.name", "shop").Profile(sampleType, "bytes").Time(atSecond*second, 0).
			ID([16]byte{byte(atSecond)})
		for i := first; i < min(first+size, len(values)); i++ {
			b.Sample(profiletest.Value(values[i], fmt.Sprint("main.leaf", i)))
		}
		parts = append(parts, b.Build())
	}
	return parts
}

// TestTotalsInParts has a profile that is divided in other ways each time: only what is new counts, and a restart does.
func TestTotalsInParts(t *testing.T) {
	f := start(t, "metrics: {leaf2: {profiles: [memory/alloc_space], unit: By, functions: [leaf2]}}")
	all, leaf := "profile.memory.allocated{service.name=shop}", "leaf2{service.name=shop}"
	f.consume(t, divided("alloc_space", 10, 3, 100, 200, 300, 400)...)
	assert.Equal(t, map[string]float64{all: 0, leaf: 0}, f.collect(t))
	f.consume(t, divided("alloc_space", 70, 1, 100, 201, 303, 400)...)
	assert.Equal(t, map[string]float64{all: 4, leaf: 3}, f.collect(t))
	f.consume(t, divided("alloc_space", 130, 2, 100, 201, 303, 410)...)
	f.consume(t, divided("alloc_space", 131, 1, 100, 201, 305, 410)...)
	assert.Equal(t, map[string]float64{all: 16, leaf: 5}, f.collect(t), "without an interval between them")
	f.consume(t, divided("alloc_space", 190, 2, 1, 2, 3, 4)...)
	assert.Equal(t, map[string]float64{all: 26, leaf: 8}, f.collect(t), "the process has restarted")
	f.consume(t, divided("alloc_space", 250, 1, 1, 1, 1, 0)...)
	f.consume(t, divided("alloc_space", 251, 1, 1, 1, 2, 0)...)
	assert.Equal(t, map[string]float64{all: 30, leaf: 10}, f.collect(t), "twice within an interval, and not again")
}

// TestFlushBetweenParts has an interval that ends between the parts of a profile, which arrive within a second.
func TestFlushBetweenParts(t *testing.T) {
	f := start(t, "")
	f.consume(t, divided("alloc_space", 10, 2, 100, 200)...)
	f.collect(t)
	parts := divided("alloc_space", 70, 1, 101, 200)
	f.consume(t, parts[0])
	f.flush(t.Context())
	f.consume(t, parts[1])
	f.sink.Reset()
	assert.Equal(t, map[string]float64{"profile.memory.allocated{service.name=shop}": 1}, f.collect(t))
}

// TestSentAgain has messages that a sender repeats: states and totals count once, with and without ids.
func TestSentAgain(t *testing.T) {
	f := start(t, "")
	total := state("a", "alloc_space", 70, 1_000_010)
	f.consume(t, state("a", "alloc_space", 10, 1_000_000), total, total)
	used := state("a", "inuse_space", 10, 5, 6)
	f.consume(t, used, used)
	f.consume(t, divided("inuse_space", 20, 1, 30, 40)...)
	f.consume(t, divided("inuse_space", 20, 1, 30, 40)...)
	f.consume(t, state("b", "inuse_space", 10, 100), state("b", "inuse_space", 10, 1000)) // two parts with one stack
	assert.Equal(t,
		map[string]float64{"profile.memory.allocated{service.name=shop}": 10, "profile.memory.used{service.name=shop}": 1181},
		f.collect(t))
	f.consume(t, total)
	assert.InDelta(t, 10, f.collect(t)["profile.memory.allocated{service.name=shop}"], 0)
	assert.Equal(t, int64(1+2+2+1), f.dropped(t, "duplicate"))
}

// TestStartTimes has sums that begin with the interval in which they begin, and deltas that begin where the last ones
// ended.
func TestStartTimes(t *testing.T) {
	for temporality, wantFirst := range map[string]int{temporalityCumulative: 60, temporalityDelta: 120} {
		f := start(t, "temporality: "+temporality)
		f.collect(t) // an interval before the series begins
		f.consume(t, cpu("shop", second).Build())
		starts := func() time.Time {
			f.clock.at = f.clock.at.Add(time.Minute)
			f.consume(t, cpu("shop", second).Build())
			f.flush(t.Context())
			md := f.sink.AllMetrics()[0]
			f.sink.Reset()
			return dataPoints(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)).At(0).StartTimestamp().AsTime().
				Local()
		}
		assert.Equal(t, newClock().at.Add(time.Minute), starts(), temporality)
		assert.Equal(t, newClock().at.Add(time.Duration(wantFirst)*time.Second), starts(), temporality)
	}
}

// TestProcessesByProfileAttributes has two processes of one resource.
func TestProcessesByProfileAttributes(t *testing.T) {
	f := start(t, "")
	b := profiletest.New().Resource("service.name", "shop")
	for pid, value := range []int64{30, 40} {
		b.Profile("inuse_space", "bytes").Time(second, 0).Attributes(profiletest.Attr("process.pid", pid)).
			Sample(profiletest.Value(value, "main.main"))
	}
	f.consume(t, b.Build())
	assert.Equal(t, map[string]float64{"profile.memory.used{service.name=shop}": 70}, f.collect(t))
	f.consume(t, profiletest.New().Resource("service.name", "shop").Profile("inuse_space", "bytes").Time(61*second, 0).
		Attributes(profiletest.Attr("process.pid", 1)).Sample(profiletest.Value(50, "main.main")).Build())
	assert.Equal(t, map[string]float64{"profile.memory.used{service.name=shop}": 80}, f.collect(t))
}

func TestUnitsAreConverted(t *testing.T) {
	for unit, want := range map[string]float64{"bytes": 3, "kilobytes": 3 << 10, "megabytes": 3 << 20} {
		f := start(t, "")
		f.consume(t, profiletest.New().Resource("service.name", "shop").Profile("inuse_space", unit).Time(second, 0).
			Sample(profiletest.Value(3, "main.main")).Build())
		assert.Equal(t, map[string]float64{"profile.memory.used{service.name=shop}": want}, f.collect(t), unit)
	}
	for unit, want := range map[string]float64{"nanoseconds": 3e-9, "microseconds": 3e-6, "milliseconds": 3e-3,
		"seconds": 3} {
		f := start(t, "")
		f.consume(t, profiletest.New().Resource("service.name", "shop").Profile("cpu", unit).Time(second, second).
			Sample(profiletest.Value(3, "main.main")).Build())
		assert.InDelta(t, want, f.collect(t)["profile.cpu.time{service.name=shop}"], 1e-15, unit)
	}
}
