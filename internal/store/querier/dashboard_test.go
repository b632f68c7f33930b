// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const grafanaFolder = "../../../config/grafana/"

// dashboard is what a Pyroscope data source needs of Grafana's JSON.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Panels []struct {
		Title, Type, Repeat string
		Targets             []struct {
			Datasource                              struct{ Type string }
			QueryType, ProfileTypeID, LabelSelector string
			GroupBy                                 []string
			Limit, MaxNodes                         *int64
		}
	}
}

// Each query of the dashboard, as the data source asks it, has an answer: a stand-in for Grafana, which cannot be had
// in a test.
func TestDashboard(t *testing.T) {
	text := profiletest.FileBytes(t, grafanaFolder+"dashboards/profiles.json")
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	var provisioned struct {
		Datasources []struct{ Type, Access, URL string }
	}
	text = profiletest.FileBytes(t, grafanaFolder+"provisioning/datasources/profiles.yaml")
	require.NoError(t, yaml.Unmarshal(text, &provisioned))
	require.Len(t, provisioned.Datasources, 1)
	source := provisioned.Datasources[0]
	require.Equal(t, []string{"proxy", "${PROFILES_URL}"}, []string{source.Access, source.URL})

	s := newStore()
	keep(t, s, history(rand.New(rand.NewPCG(9, 9)), noon, 8), noon)
	c, _ := client(t, s.Querier, noon)
	start, end := noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli()
	values := map[string]string{"profile": cpuType}
	for _, v := range d.Templating.List {
		var query struct{ Type, ProfileTypeID, LabelName string }
		if v.Type != "query" {
			require.Equal(t, `"`+source.Type+`"`, string(v.Query))
			continue
		}
		require.NoError(t, json.Unmarshal(v.Query, &query))
		if query.Type != "labelValue" {
			require.Equal(t, "profileType", query.Type)
			continue
		}
		// Older data sources write the type before the selector.
		for _, selector := range []string{cpuType + "{}", `{__profile_type__="` + cpuType + `"}`} {
			out, err := c.LabelValues(t.Context(), connect.NewRequest(&typesv1.LabelValuesRequest{
				Name: query.LabelName, Matchers: []string{selector}, Start: start, End: end,
			}))
			require.NoError(t, err)
			require.NotEmpty(t, out.Msg.Names, "%s of %s", v.Name, selector)
			values[v.Name] = out.Msg.Names[0]
		}
	}
	asked, repeated := map[string]int{}, ""
	for _, p := range d.Panels {
		if p.Type == "row" {
			repeated = p.Repeat
		}
		replace := func(in string) string {
			for name, value := range values {
				in = strings.ReplaceAll(in, "$"+name, value)
			}
			require.NotContains(t, in, "$", p.Title)
			return in
		}
		require.Equal(t, strings.Contains(p.Title, "$service"), repeated == "service", "%s is for one service each", p.Title)
		for _, target := range p.Targets {
			require.Equal(t, source.Type, target.Datasource.Type)
			asked[target.QueryType]++
			id, selector := replace(target.ProfileTypeID), replace(target.LabelSelector)
			if target.QueryType == "metrics" {
				out, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
					ProfileTypeID: id, LabelSelector: selector, Start: start, End: end, Step: 15, GroupBy: target.GroupBy,
					Limit: target.Limit,
				}))
				require.NoError(t, err, p.Title)
				require.NotEmpty(t, out.Msg.Series, p.Title)
				require.Equal(t, target.GroupBy[0], out.Msg.Series[0].Labels[0].Name)
				continue
			}
			out, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
				ProfileTypeID: id, LabelSelector: selector, Start: start, End: end, MaxNodes: target.MaxNodes,
			}))
			require.NoError(t, err, p.Title)
			require.Positive(t, out.Msg.Flamegraph.Total, p.Title)
		}
	}
	require.Equal(t, map[string]int{"metrics": 2, "profile": 4}, asked)
}
