// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// standIn is what mcp-grafana sees of a Grafana that has one data source: its description, and the proxy to its server,
// which adds the data source's name and password.
type standIn struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
}

const standInUID = "profiles"

func newStandIn(t *testing.T, store string) *standIn {
	t.Helper()
	target, err := url.Parse(store)
	require.NoError(t, err)
	s := &standIn{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/datasources/uid/"+standInUID, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": 1, "uid": standInUID, "name": "Profiles", "type": "grafana-pyroscope-datasource", "access": "proxy",
			"url": store,
		})
	})
	const proxied = "/api/datasources/proxy/uid/" + standInUID
	mux.Handle(proxied+"/", http.StripPrefix(proxied, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		s.mu.Lock()
		s.calls = append(s.calls, r.In.URL.Path)
		s.mu.Unlock()
		r.SetURL(target)
		r.Out.SetBasicAuth("assistant", "secret")
	}}))
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestMCPGrafana asks mcp-grafana, which asks the collector through a stand-in for Grafana. The program takes minutes
// to build, hence the test uses the one that E2E_MCP_GRAFANA names, or that is in the path.
func TestMCPGrafana(t *testing.T) {
	program := os.Getenv("E2E_MCP_GRAFANA")
	if program == "" {
		found, err := exec.LookPath("mcp-grafana")
		if err != nil {
			t.Skip("SKIPPED: E2E_MCP_GRAFANA names no program: go install github.com/grafana/mcp-grafana/cmd/mcp-grafana@v1.6.3 makes it")
		}
		program = found
	}
	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	c := newCollector(t, []string{path, "--config", newFile(t, "mcp.yaml", []byte(mcpConfig))})
	c.start(t, "the collector with mcp")
	response, err := http.Post("http://"+c.endpoint+"/v1/pprof?service.name=shop", "application/octet-stream",
		bytes.NewReader(shopPprof(t)))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 2, response.StatusCode/100)
	grafana := newStandIn(t, "http://"+c.graphs)

	command := exec.Command(program, "-t", "stdio", "--enabled-tools", "pyroscope,datasource")
	command.Env = append(os.Environ(), "GRAFANA_URL="+grafana.URL, "GRAFANA_SERVICE_ACCOUNT_TOKEN=none")
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: command}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ask := func(tool string, args map[string]any) string {
		args["data_source_uid"] = standInUID
		answer, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		require.NoError(t, err)
		var text strings.Builder
		for _, content := range answer.Content {
			text.WriteString(content.(*mcp.TextContent).Text)
		}
		require.False(t, answer.IsError, text.String())
		t.Logf("%s %v: %s", tool, args, text.String())
		return text.String()
	}
	const cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
	require.JSONEq(t, `["`+cpu+`"]`, ask("list_pyroscope_profile_types", map[string]any{}))
	var names []string
	require.NoError(t,
		json.Unmarshal([]byte(ask("list_pyroscope_label_names", map[string]any{"matchers": `{service_name="shop"}`})),
			&names))
	require.Subset(t, names, []string{"__profile_type__", "service_name", "version"})
	require.JSONEq(t, `["1","2"]`, ask("list_pyroscope_label_values", map[string]any{"name": "version"}))

	var both struct {
		Profile string
		Metrics struct {
			Series []struct {
				Labels map[string]string
				Points [][2]float64
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ask("query_pyroscope", map[string]any{
		"profile_type": cpu, "matchers": `{service_name="shop"}`, "group_by": []string{"version"},
	})), &both))
	rows := map[string][]string{}
	for line := range strings.Lines(both.Profile) {
		if fields := strings.Fields(line); len(fields) == 6 {
			rows[fields[5]] = []string{fields[0], fields[3]}
		}
	}
	require.Contains(t, both.Profile, "Total: 9.00s")
	require.Equal(t, []string{"8.00s", "8.00s"}, rows["json.marshal"], both.Profile)
	require.Equal(t, []string{"0ns", "8.00s"}, rows["shop.handle"], both.Profile)
	sums := map[string]float64{}
	for _, s := range both.Metrics.Series {
		for _, p := range s.Points {
			sums[s.Labels["version"]] += p[1]
		}
	}
	require.Equal(t, map[string]float64{"1": 3e9, "2": 6e9}, sums)
	require.Contains(t,
		ask("query_pyroscope", map[string]any{"profile_type": cpu, "query_type": "profile", "format": "dot"}), "json.marshal")

	grafana.mu.Lock()
	defer grafana.mu.Unlock()
	for _, call := range []string{
		"/querier.v1.QuerierService/ProfileTypes", "/querier.v1.QuerierService/LabelNames",
		"/querier.v1.QuerierService/LabelValues",
		"/querier.v1.QuerierService/SelectMergeStacktraces", "/querier.v1.QuerierService/SelectSeries", "/pyroscope/render",
	} {
		require.True(t, slices.ContainsFunc(grafana.calls, func(path string) bool { return strings.HasSuffix(path, call) }),
			"%s of %v", call, grafana.calls)
	}
}
