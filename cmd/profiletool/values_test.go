// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/page"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mcp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// What a producer has sent several times has one sum: on the page, as pprof, as text, to assistants, in Grafana and as
// a metric. A state is not added up over time, a difference is not subtracted.
func TestOneSum(t *testing.T) {
	for name, tc := range map[string]struct {
		types, period string
		seconds       int // of each profile
		stated        profilekind.Temporality
		profiles      [][]int64 // the values of the last type, in the functions a, b …
		want          int64
		wantText      string // for assistants
	}{
		"leaked goroutines": {"goroutineleak/count", "goroutineleak/count", 0, "", [][]int64{{5}, {5}, {5}}, 5, "5"},
		"dd-trace-py's heap": {"cpu-time/nanoseconds heap-space/bytes", "cpu-time/nanoseconds", 10, "",
			[][]int64{{1e8}, {1e8}, {1e8}}, 1e8, "95.4 MiB"},
		"tcmalloc's residents": {"space/bytes resident_space/bytes", "space/bytes", 0, "", [][]int64{{800}, {800}}, 800,
			"800 B"},
		"a difference of heaps": {"inuse_space/bytes", "space/bytes", 10, "", [][]int64{{500, -300, -200}}, 0, "0 B"},
		"godeltaprof": {"alloc_space/bytes", "space/bytes", 0, profilekind.StatedDelta, [][]int64{{10}, {10}, {30}},
			50, "50 B"},
		"Datadog's cpu-time": {"wall-time/nanoseconds cpu-time/nanoseconds", "", 10, "", [][]int64{{3, 4}, {5, 6}}, 18,
			"18 ns"},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Truncate(time.Second)
			types := strings.Fields(tc.types)
			typ, unit, _ := strings.Cut(types[len(types)-1], "/")
			var all []pprofile.Profiles
			for i, values := range tc.profiles {
				start := now.Add(time.Duration(i-len(tc.profiles)) * 10 * time.Second)
				all = append(all, sentProfile(t, types, tc.period, start, tc.seconds, tc.stated, values))
			}
			kept := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
			for _, pd := range all {
				require.Zero(t, kept.Add(pd, now).Refused)
			}
			handler := api.New(api.Settings{
				Store: answers.NewQuerier(kept), Page: page.Files, MaxBytes: 64 << 20,
				Limits:      query.Limits{MaxConcurrent: 4, Timeout: time.Minute},
				ReadTimeout: time.Minute, Now: func() time.Time { return now },
			})
			get := func(path string) []byte {
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
				require.Equal(t, http.StatusOK, recorder.Code, "%s: %s", path, recorder.Body)
				return recorder.Body.Bytes()
			}
			var catalog struct {
				Profiles []struct{ Profile, Type, Kind string }
			}
			require.NoError(t, json.Unmarshal(get("/api/profiles?service=shop"), &catalog))
			profileName := catalog.Profiles[0].Profile
			var table struct{ Total int64 }
			require.NoError(t, json.Unmarshal(get(fmt.Sprintf("/api/table?service=shop&profile=%s&type=%s", profileName, typ)),
				&table))
			assert.Equal(t, tc.want, table.Total, "the page")

			p := profiletest.ParsePprof(t, get(fmt.Sprintf("/profiles/shop/%s?type=%s", profileName, typ)))
			sum := int64(0)
			for _, s := range p.Sample {
				sum += s.Value[0]
			}
			assert.Equal(t, tc.want, sum, "pprof")

			sum = 0
			for line := range strings.Lines(string(get(fmt.Sprintf("/profiles/shop/%s.collapsed?type=%s", profileName, typ)))) {
				value, err := strconv.ParseInt(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 10, 64)
				require.NoError(t, err)
				sum += value
			}
			assert.Equal(t, tc.want, sum, "collapsed")

			answer := askAssistant(t, kept, now, fmt.Sprintf(`{"service":"shop","profile":%q,"type":%q}`, profileName, typ))
			assert.Contains(t, answer, "; total "+tc.wantText+"\n", "MCP")

			periodType, periodUnit, _ := strings.Cut(tc.period, "/")
			of := profilekind.ProfileTypeID(profileName, typ, unit, periodType, periodUnit) + `{service_name="shop"}`
			var rendered struct{ Flamebearer struct{ NumTicks int64 } }
			require.NoError(t, json.Unmarshal(get("/pyroscope/render?from=now-1h&until=now&query="+url.QueryEscape(of)),
				&rendered))
			want := tc.want
			for _, in := range catalog.Profiles {
				if in.Type == typ+"/"+unit && in.Kind == profilekind.Gauge.String() {
					want *= int64(len(tc.profiles)) // Pyroscope adds up the profiles of a state, too
				}
			}
			assert.Equal(t, want, rendered.Flamebearer.NumTicks, "Grafana")

			assert.Equal(t, tc.want, metricOf(t, all, profileName+"/"+typ), "the metric")
		})
	}
}

// askAssistant returns what the MCP tool hottest_functions answers.
func askAssistant(t *testing.T, kept *store.Store, now time.Time, arguments string) string {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	server, err := mcp.New(mcp.Settings{
		Store: answers.NewQuerier(kept), Now: func() time.Time { return now },
		Queries: query.New(query.Limits{MaxConcurrent: 1, Timeout: time.Minute}),
	}).Connect(t.Context(), there, nil)
	require.NoError(t, err)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	result, err := client.CallTool(t.Context(),
		&sdk.CallToolParams{Name: "hottest_functions", Arguments: json.RawMessage(arguments)})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_ = server.Wait()
	return result.Content[0].(*sdk.TextContent).Text
}

// sentProfile returns what a pprof of these types is decoded to. Only its last type has values.
func sentProfile(t *testing.T, types []string, period string, start time.Time, seconds int,
	stated profilekind.Temporality, values []int64) pprofile.Profiles {
	t.Helper()
	b := profiletest.New().Resource("service.name", "shop", "service.instance.id", "one").Scope("", "",
		"pprof.scope.sample_type_order", []any{int64(0)})
	for i, typ := range types {
		name, unit, _ := strings.Cut(typ, "/")
		periodType, periodUnit, _ := strings.Cut(period, "/")
		b.Profile(name, unit).Period(1, periodType, periodUnit).Time(uint64(start.UnixNano()), uint64(seconds)*1e9)
		for k, v := range values {
			if i == len(types)-1 {
				b.Sample(profiletest.Value(v, string(rune('a'+k)), "main"))
			}
		}
	}
	pd := b.Build()
	statement := profilekind.Statement{Dictionary: pd.Dictionary()}
	for i := range types {
		p := profiletest.ProfileAt(pd, i)
		statement.Put(p, profilekind.DeclaredOf(p, pd.Dictionary()),
			stated.ValuesOf(profilekind.DeclaredOf(p, pd.Dictionary())))
	}
	return pd
}

// metricOf returns the last value of a metric of a sample type.
func metricOf(t *testing.T, all []pprofile.Profiles, typ string) (value int64) {
	t.Helper()
	factory := profilemetricsconnector.NewFactory().(xconnector.Factory)
	cfg := factory.CreateDefaultConfig()
	unit := "{thing}"
	switch {
	case strings.Contains(typ, "space"):
		unit = "By"
	case strings.Contains(typ, "time"):
		unit = "s"
	}
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"interval": "1h", "metrics": map[string]any{"the.sum": map[string]any{"unit": unit, "profiles": []any{typ}}},
	}).Unmarshal(cfg))
	sink := &consumertest.MetricsSink{}
	c, err := factory.CreateProfilesToMetrics(t.Context(), connectortest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	for _, pd := range all {
		require.NoError(t, c.ConsumeProfiles(t.Context(), pd))
	}
	require.NoError(t, c.Shutdown(t.Context()))
	for _, md := range sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() == "the.sum" {
						value = pointOf(m)
					}
				}
			}
		}
	}
	return value
}

// pointOf returns the only value of a metric, times in nanoseconds.
func pointOf(m pmetric.Metric) int64 {
	points := pmetric.NewNumberDataPointSlice()
	if m.Type() == pmetric.MetricTypeGauge {
		points = m.Gauge().DataPoints()
	} else if m.Type() == pmetric.MetricTypeSum {
		points = m.Sum().DataPoints()
	}
	if points.Len() == 0 {
		return -1
	}
	if p := points.At(0); p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return p.IntValue()
	}
	return int64(points.At(0).DoubleValue()*1e9 + 0.5)
}
