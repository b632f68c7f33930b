// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/clickhousetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hec is a server of HEC events. It keeps what it accepts.
type hec struct {
	mu     sync.Mutex
	events []map[string]any
}

func (h *hec) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzip, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body = unzip
	}
	decoder := json.NewDecoder(body)
	for {
		var event map[string]any
		if decoder.Decode(&event) != nil {
			break
		}
		h.events = append(h.events, event)
	}
	_, _ = io.WriteString(w, `{"text":"Success","code":0}`)
}

// values returns the values that events have in a field.
func (h *hec) values(field string) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	values := map[string]bool{}
	for _, event := range h.events {
		fields, _ := event["fields"].(map[string]any)
		values[fmt.Sprint(fields[field])] = true
	}
	return values
}

// sendOTLP sends a CPU profile as the eBPF profiler makes them, and an allocation profile as the receiver
// splunk_profiling does.
func sendOTLP(t *testing.T, address string) {
	t.Helper()
	build := profiletest.New()
	resource := []any{"service.name", "host", "server.port", 8080}
	for i := range 40 {
		resource = append(resource, fmt.Sprintf("a%02d", i), "x")
	}
	now := uint64(time.Now().UnixNano())
	allocation := profiletest.Observed([]uint64{now, now + 1}, "alloc", "main")
	allocation.Values = []int64{100, 200}
	build.Resource(resource...).Scope("otel-ebpf-profiler", "1").
		Profile("samples", "count").Time(now, 1e9).Period(50_000_000, "cpu", "nanoseconds").
		Sample(profiletest.Observed([]uint64{now, now + 1}, "leaf", "main")).
		Profile("allocated_space", "bytes").Time(now, 1e9).Period(1, "space", "bytes").Sample(allocation)
	require.NoError(t, export(dial(t, address), build.Build()))
}

// requireTypes waits until samples of all these types of a service have arrived.
func (b *backend) requireTypes(t *testing.T, service string, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		types := b.types(service)
		return !slices.ContainsFunc(want, func(one string) bool { return !types[one] })
	}, startTimeout, 50*time.Millisecond, want)
}

// backendCheck prepares a backend. It returns the variable that names it to the configuration, and what to do when the
// collector runs and the OTLP profiles are sent.
type backendCheck func(t *testing.T) (variable string, check func(*testing.T, *collector))

// TestBackendConfigsReceiveWhatStandaloneDoes compares receivers, their protocols, and what they scrape. Elastic is
// left out: there, everything but profiles of the eBPF profiler is an error.
func TestBackendConfigsReceiveWhatStandaloneDoes(t *testing.T) {
	t.Parallel()
	received := func(path string) map[string]any {
		data := profiletest.FileBytes(t, filepath.Join(repository, "config", path))
		var config struct {
			Receivers map[string]struct {
				Protocols map[string]any
				Scrape    struct{ Configs []any }
			}
			Service struct {
				Pipelines struct{ Profiles struct{ Receivers []string } }
			}
		}
		require.NoError(t, yaml.Unmarshal(data, &config))
		all := map[string]any{}
		for _, name := range config.Service.Pipelines.Profiles.Receivers {
			all[name] = map[string]any{
				"protocols": slices.Sorted(maps.Keys(config.Receivers[name].Protocols)),
				"scrape":    config.Receivers[name].Scrape.Configs,
			}
		}
		return all
	}
	want := received("standalone.yaml")
	require.Contains(t, want, "splunk_profiling")
	for _, name := range []string{"pyroscope", "pyroscope-otlp", "parca", "openobserve", "splunk", "clickhouse"} {
		assert.Equal(t, want, received(filepath.Join("backends", name+".yaml")), name)
	}
}

// TestBackendConfigs runs every file in config/backends, sends to it, and looks at what reaches the backend.
func TestBackendConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "config", "backends", "*.yaml"))
	require.NoError(t, err)
	// it receives nothing
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "-page.yaml") })
	heap := capturedPayloads(t)["go-heap.pb.gz"]
	overGRPC := func(check func(t *testing.T, c *collector, to *backend)) backendCheck {
		return func(t *testing.T) (string, func(*testing.T, *collector)) {
			to := startBackend(t)
			return "BACKEND_ENDPOINT=" + to.address, func(t *testing.T, c *collector) { check(t, c, to) }
		}
	}
	backends := map[string]backendCheck{
		"pyroscope": func(t *testing.T) (string, func(*testing.T, *collector)) {
			server := pyroscopetest.New(t)
			return "PYROSCOPE_URL=" + server.URL, func(t *testing.T, c *collector) {
				c.requirePush(t, "shop", heap)
				for _, record := range []string{"v4.11.0-001-cpu-snapshot", "v4.11.0-002-cpu-continuous"} {
					data, err := os.ReadFile(filepath.Join(repository, "testdata", "splunk", record+".otlp-logs.pb"))
					require.NoError(t, err)
					requirePost(t, "http://"+c.splunkHTTP+"/v1/logs", "application/x-protobuf", data)
				}
				require.Eventually(t, func() bool {
					names := map[string]bool{}
					for _, s := range server.Series() {
						assert.LessOrEqual(t, len(s.Labels), 30)
						names[s.Labels["service_name"]+" "+s.Labels["__name__"]] = true
						names[s.Labels["profiling_instrumentation_source"]] = true
					}
					return names["shop memory"] && names["host process_cpu"] && names["host memory"] &&
						names["otelcol-profiles memory"] && names["otelcol-profiles goroutine"] && names["snapshot"] &&
						names["continuous"]
				}, startTimeout, 50*time.Millisecond)
			}
		},
		"pyroscope-otlp": overGRPC(func(t *testing.T, c *collector, to *backend) {
			c.requirePush(t, "shop", heap)
			to.requireTypes(t, "shop", "alloc_space", "inuse_space")
			to.requireTypes(t, "host", "samples")
			for p := range to.profiles("host") {
				assert.NotEqual(t, "allocated_space", p.sampleType())
				assert.Equal(t, 20, p.resource.Len())
			}
		}),
		"parca": overGRPC(func(t *testing.T, c *collector, to *backend) {
			requirePost(t, "http://"+c.endpoint+"/ingest?name=web", "application/octet-stream", heap)
			to.requireTypes(t, "web", "alloc_space", "inuse_space")
			to.requireTypes(t, "host", "samples", "allocated_space")
			for p := range to.profiles("web") {
				assert.Equal(t, "memory", p.scope.Name())
			}
		}),
		"openobserve": overGRPC(func(t *testing.T, c *collector, to *backend) {
			c.requirePush(t, "shop", heap)
			to.requireTypes(t, "shop", "alloc_space", "inuse_space")
			to.requireTypes(t, "host", "samples", "allocated_space")
		}),
		"elastic": overGRPC(func(t *testing.T, _ *collector, to *backend) {
			to.requireTypes(t, "host", "samples")
			assert.Len(t, to.types("host"), 1)
		}),
		"clickhouse": func(t *testing.T) (string, func(*testing.T, *collector)) {
			server := clickhousetest.Start(t, nil)
			server.SetAway(true)
			return "CLICKHOUSE_ENDPOINT=" + server.ExporterEndpoint(), func(t *testing.T, c *collector) {
				c.requirePush(t, "shop", capturedPayloads(t)["go-mutex.pb.gz"])
				require.Eventually(t, func() bool { return strings.Contains(c.Log.String(), "the engine is away") },
					startTimeout, 50*time.Millisecond, "the log says what it waits for")
				server.SetAway(false)
				require.Eventually(t, func() bool {
					rows := server.Inserted()
					return strings.Contains(rows, "contentions") && strings.Contains(rows, "otel-ebpf-profiler")
				}, startTimeout, 50*time.Millisecond)
			}
		},
		"splunk": func(t *testing.T) (string, func(*testing.T, *collector)) {
			h := &hec{}
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			return "SPLUNK_HEC_URL=" + server.URL, func(t *testing.T, c *collector) {
				c.requirePush(t, "shop", capturedPayloads(t)["go-mutex.pb.gz"])
				require.Eventually(t, func() bool {
					return maps.Equal(map[string]bool{"cpu": true, "allocation": true}, h.values("profiling.data.type"))
				}, startTimeout, 50*time.Millisecond)
				require.Equal(t, map[string]bool{"host": true}, h.values("service.name"), "locks are left out")
			}
		},
	}
	require.Len(t, files, len(backends))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			require.Contains(t, backends, name)
			config := filepath.Join("config", "backends", name+".yaml")
			requireValid(t, config)
			variable, check := backends[name](t)
			c := launch(t, config, variable)
			sendOTLP(t, c.otlp)
			check(t, c)
			c.Terminate(t)
		})
	}
}

// capturedBySDK returns a pprof that pyroscope-go sent, and the name that Pyroscope has for such a profile.
func capturedBySDK(t *testing.T, n int) (name string, data []byte) {
	t.Helper()
	file := filepath.Join(repository, "testdata", "pyroscope", "go", fmt.Sprintf("request-%d", n))
	body := profiletest.FileBytes(t, file+".body")
	text := profiletest.FileBytes(t, file+".json")
	var request struct{ Headers http.Header }
	require.NoError(t, json.Unmarshal(text, &request))
	_, params, err := mime.ParseMediaType(request.Headers.Get("Content-Type"))
	require.NoError(t, err)
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
	require.NoError(t, err)
	part := func(name string) []byte {
		if len(form.File[name]) == 0 {
			return nil
		}
		f, err := form.File[name][0].Open()
		require.NoError(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		return data
	}
	data = part("profile")
	p := profiletest.ParsePprof(t, data)
	config := string(part("sample_type_config"))
	switch typ := p.SampleType[0].Type; {
	case typ == "samples":
		name = "process_cpu"
	case typ == "alloc_objects":
		name = "memory"
	case strings.Contains(config, "block_"):
		name = "block"
	case strings.Contains(config, "mutex_"):
		name = "mutex"
	default:
		name = typ
	}
	return name, data
}

// TestScrapedIsAsSentByTheSDK serves profiles as a Go program does, scrapes them, and sends them on. They are those
// that pyroscope-go sent of the same program, so Pyroscope must get the same: types, units, totals, labels of samples,
// functions.
func TestScrapedIsAsSentByTheSDK(t *testing.T) {
	t.Parallel()
	captured := map[string][]byte{}
	for n := 1; n <= 10; n++ {
		name, data := capturedBySDK(t, n)
		captured[name] = data
	}
	kinds := map[string]string{"process_cpu": "profile", "memory": "allocs", "goroutine": "goroutine", "mutex": "mutex",
		"block": "block"}
	require.Len(t, captured, len(kinds))
	mux := http.NewServeMux()
	for name, path := range kinds {
		mux.HandleFunc("/debug/pprof/"+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(captured[name]) })
	}
	target := httptest.NewServer(mux)
	t.Cleanup(target.Close)
	server := pyroscopetest.New(t)
	c := launch(t, fmt.Sprintf(`yaml:
receivers:
  pprof:
    scrape:
      configs:
        - job_name: shop
          scrape_interval: 2s
          static_configs: [{targets: [%q], labels: {region: eu-demo-1}}]
          # The client sends differences.
          profiles:
            memory: {delta: false, temporality: delta}
            mutex: {delta: false, temporality: delta}
            block: {delta: false, temporality: delta}
exporters:
  pyroscope: {endpoint: %q}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [pyroscope]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: "${env:METRICS_PORT}"}}}}]}}
`, target.Listener.Addr(), server.URL))
	got := map[string]pyroscopetest.Series{}
	require.Eventually(t, func() bool {
		for _, s := range server.Series() {
			got[s.Labels["__name__"]] = s
		}
		return len(got) == len(kinds)
	}, startTimeout, 50*time.Millisecond)
	c.Terminate(t)
	for name, data := range captured {
		want := profiletest.ParsePprof(t, data)
		require.Contains(t, got, name)
		if name != "goroutine" { // differences last 1 ns at least
			want.DurationNanos = max(want.DurationNanos, 1)
		}
		require.NoError(t, profiletest.EqualPprof(want, got[name].Pprof), name)
		require.Equal(t, "shop", got[name].Labels["service_name"])
		require.Equal(t, "eu-demo-1", got[name].Labels["region"])
		require.Equal(t, "false", got[name].Labels["__delta__"])
	}
}
