// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/clickhousetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/storetest"
)

// TestClickHouseSource holds the table of config/backends/clickhouse-table.sql to what every source does.
func TestClickHouseSource(t *testing.T) {
	t.Parallel()
	app := clickhousetest.Install(t)
	server := clickhousetest.Start(t, clickhousetest.StartEngine(t, app, app))
	memory := func() *store.Store {
		return store.New(store.Config{Window: 100 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20,
			MaxSeries: 100})
	}
	now := storetest.Noon.Add(72 * time.Hour)
	for seed := range uint64(1) {
		m, c := memory(), clickhousetest.NewTable(t, server, fmt.Sprint("rules", seed))
		storetest.SumsFollowTheRules(t, seed, map[string]*storetest.Kept{
			"memory": {Source: m, Add: func(pd pprofile.Profiles, arrived time.Time) { m.Add(pd, arrived) }},
			"ClickHouse": {
				Source: c.Source(t, now), Add: func(pd pprofile.Profiles, _ time.Time) { c.Add(t, pd) },
				Finish: func(time.Time) { c.Insert(t) },
			},
		})
	}
	m, c := memory(), clickhousetest.NewTable(t, server, "answers")
	h := &storetest.History{Rand: rand.New(rand.NewPCG(1, 2)), Strings: true}
	for i := range 100 {
		at := storetest.Noon.Add(time.Duration(i) * 20 * time.Minute)
		h.Send(at, func(pd pprofile.Profiles, arrived time.Time) {
			m.Add(pd, arrived)
			c.Add(t, pd)
		})
	}
	c.Insert(t)
	source := c.Source(t, now)
	whole := storetest.Noon.Add(24 * time.Hour).UnixNano()
	require.Equal(t, []string{"hours", "profiles", "series", "stacks"}, server.Projections(func() {
		storetest.Sum(t, source, model.Selection{Service: "shop", Profile: "process_cpu", From: storetest.Noon.UnixNano(),
			Until: whole})
	}))
	for _, span := range [][2]time.Duration{{0, 34 * time.Hour}, {50 * time.Minute, 130 * time.Minute}} {
		from, until := storetest.Noon.Add(span[0]).UnixNano(), storetest.Noon.Add(span[1]).UnixNano()
		want, got := strings.Split(storetest.Answers(t, m, from, until), "\n"),
			strings.Split(storetest.Answers(t, source, from, until), "\n")
		for i := range min(len(want), len(got)) {
			require.Equal(t, want[i], got[i], "%v, line %d", span, i)
		}
		require.Equal(t, len(want), len(got))
	}
	attributesOfSamples(t, clickhousetest.NewTable(t, server, "regions"))
}

// attributesOfSamples sees that a sample's attribute counts beside that of its resource, and decides its group.
func attributesOfSamples(t *testing.T, table *clickhousetest.Table) {
	t.Helper()
	for i, region := range []string{"eu", "asia", ""} {
		start := storetest.Noon.Add(time.Duration(i) * time.Minute)
		resource := []any{"service.name", "shop"}
		if region != "" {
			resource = append(resource, "region", region)
		}
		b := profiletest.New().Resource(resource...).Profile("cpu", "nanoseconds").Time(uint64(start.UnixNano()), 1e9)
		b.Sample(profiletest.Value(10, "plain"))
		if region != "asia" {
			b.Sample(profiletest.Value(1, "abroad").With(profiletest.Attr("region", "us")))
		}
		table.Add(t, b.Build())
	}
	table.Insert(t)
	source := table.Source(t, storetest.Noon.Add(time.Hour))
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	for value, want := range map[string]float64{"eu": 11, "us": 2, "asia": 10} {
		sel.Attributes = []model.Attribute{{Key: "region", Value: value}}
		require.InDelta(t, want, storetest.Sum(t, source, sel), 0, value)
	}
	sel.Attributes, sel.GroupBy = nil, "region"
	g, err := source.FlameGraph(t.Context(), sel, 100)
	require.NoError(t, err)
	groups := map[string]int64{}
	for i, parent := range g.Parent {
		if i > 0 && parent == 0 {
			groups[g.Frames[g.Frame[i]].Name] = g.Total[i]
		}
	}
	require.Equal(t, map[string]int64{
		"region=eu": 10, "region=us": 2, "region=asia": 10, "region=" + answers.NoGroup: 10,
	}, groups)
}

// clickhousePage compares the answers of a page in front of the table with those of a store that has the same profiles.
func clickhousePage(t *testing.T, server *clickhousetest.Server, profiles []pprofile.Profiles) {
	t.Helper()
	m := store.New(store.Config{Window: 10 * 365 * 24 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20,
		MaxSeries: 1000})
	for _, pd := range profiles {
		require.Zero(t, m.Add(pd, time.Now()).Refused)
	}
	page := launchWith(t, "config/backends/clickhouse-page.yaml", nil, "CLICKHOUSE_HTTP="+server.URL, "PAGE_WINDOW=87600h")
	infos, err := m.Catalog(t.Context(), "", nil)
	require.NoError(t, err)
	require.NotEmpty(t, infos)
	for _, in := range infos {
		sel := model.Selection{Service: in.Service, Profile: in.Profile, Type: in.Type.String()}
		table, err := m.FlameGraph(t.Context(), sel, 100_000)
		require.NoError(t, err)
		want := map[string][2]int64{}
		for _, row := range table.Functions() {
			if row.Frame.Kind != "group" {
				sums := want[row.Frame.Name]
				want[row.Frame.Name] = [2]int64{sums[0] + row.Self, max(sums[1], row.Total)}
			}
		}
		var answer struct {
			Functions []struct {
				Name        string
				Self, Total int64
			}
		}
		query := url.Values{"service": {in.Service}, "profile": {in.Profile}, "type": {in.Type.String()}, "limit": {"10000"}}
		require.NoError(t, json.Unmarshal([]byte(requireGet(t, "http://"+page.graphs+"/api/table?"+query.Encode())), &answer))
		got := map[string][2]int64{}
		for _, row := range answer.Functions {
			sums := got[row.Name]
			got[row.Name] = [2]int64{sums[0] + row.Self, max(sums[1], row.Total)}
		}
		require.Equal(t, want, got, "%v", sel)
	}
	server.SetAway(true)
	answer := collectortest.Ask(t, http.MethodGet, "http://"+page.graphs+"/api/services", nil)
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.Contains(t, answer.Body, "the engine is away")
	server.SetAway(false)
	page.Terminate(t)
}

// TestClickHousePageConfig runs config/backends/clickhouse-page.yaml in front of an empty table.
func TestClickHousePageConfig(t *testing.T) {
	t.Parallel()
	const config = "config/backends/clickhouse-page.yaml"
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	requireValid(t, config)
	c := launch(t, config, "CLICKHOUSE_HTTP="+server.URL)
	require.JSONEq(t, `{"services": [], "more": 0}`, requireGet(t, "http://"+c.graphs+"/api/services"))
	c.Terminate(t)
}
