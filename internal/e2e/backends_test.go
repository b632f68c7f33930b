// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// hec is a server of Splunk's that keeps the events that it accepts.
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

// field returns a field of each event.
func (h *hec) field(name string) (values []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		fields, _ := event["fields"].(map[string]any)
		values = append(values, fmt.Sprint(fields[name]))
	}
	return values
}

// toBackend is a running configuration of config/backends.
type toBackend struct {
	*collector
	otlp string
}

func (b *toBackend) pushFile(t *testing.T, name string) {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join(repository, "testdata", "pprof", name+".pb.gz"))
	require.NoError(t, err)
	status, answer, err := b.push("shop", payload)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, status, answer)
}

// sendOTLP sends a CPU profile as the eBPF profiler does, and an allocation profile as a Splunk agent's records become one.
func (b *toBackend) sendOTLP(t *testing.T) {
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
	require.NoError(t, export(t, b.otlp, pprofileotlp.NewExportRequestFromProfiles(build.Build())))
}

// typesOf lists the sample types that a gRPC backend has got for a service, and the scope's name and number of attributes
// that came with them.
func (b *backend) typesOf(service string) (types map[string]bool, scope string, attributes int) {
	types = map[string]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pd := range b.received {
		for _, rp := range pd.ResourceProfiles().All() {
			if name, _ := rp.Resource().Attributes().Get("service.name"); name.AsString() != service {
				continue
			}
			attributes = rp.Resource().Attributes().Len()
			for _, sp := range rp.ScopeProfiles().All() {
				scope = sp.Scope().Name()
				for _, p := range sp.Profiles().All() {
					types[pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))] = true
				}
			}
		}
	}
	return types, scope, attributes
}

// TestBackendConfigs runs every file in config/backends, sends to it, and looks at what reaches the backend.
func TestBackendConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "config", "backends", "*.yaml"))
	require.NoError(t, err)
	// A gRPC backend has got these types for the service host.
	overGRPC := func(variable string, check func(t *testing.T, b *toBackend, to *backend)) func(*testing.T) (string, func(*testing.T, *toBackend)) {
		return func(t *testing.T) (string, func(*testing.T, *toBackend)) {
			to := &backend{address: freeAddress(t)}
			to.start(t)
			t.Cleanup(to.server.Stop)
			return variable + "=" + to.address, func(t *testing.T, b *toBackend) { check(t, b, to) }
		}
	}
	has := func(t *testing.T, to *backend, service string, want ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			types, _, _ := to.typesOf(service)
			for _, one := range want {
				if !types[one] {
					return false
				}
			}
			return true
		}, startTimeout, 50*time.Millisecond, want)
	}
	backends := map[string]func(*testing.T) (string, func(*testing.T, *toBackend)){
		"pyroscope": func(t *testing.T) (string, func(*testing.T, *toBackend)) {
			server := pyroscopetest.New(t)
			return "PYROSCOPE_URL=" + server.URL, func(t *testing.T, b *toBackend) {
				b.pushFile(t, "go-heap")
				require.Eventually(t, func() bool {
					names := map[string]bool{}
					for _, s := range server.Series() {
						assert.LessOrEqual(t, len(s.Labels), 30)
						names[s.Labels["service_name"]+" "+s.Labels["__name__"]] = true
					}
					return names["shop memory"] && names["host process_cpu"] && names["host memory"] &&
						names["otelcol-profiles memory"] && names["otelcol-profiles goroutine"]
				}, startTimeout, 50*time.Millisecond)
			}
		},
		"pyroscope-otlp": overGRPC("PYROSCOPE_GRPC", func(t *testing.T, b *toBackend, to *backend) {
			b.pushFile(t, "go-heap")
			has(t, to, "shop", "alloc_space", "inuse_space")
			has(t, to, "host", "samples")
			types, _, attributes := to.typesOf("host")
			assert.NotContains(t, types, "allocated_space")
			assert.Equal(t, 20, attributes)
		}),
		"parca": overGRPC("PARCA_GRPC", func(t *testing.T, b *toBackend, to *backend) {
			status, answer := post(t, "http://"+b.endpoint+"/ingest?name=web", filepath.Join("testdata", "pprof", "go-heap.pb.gz"))
			require.Equal(t, http.StatusOK, status, answer)
			has(t, to, "web", "alloc_space", "inuse_space")
			has(t, to, "host", "samples", "allocated_space")
			_, scope, _ := to.typesOf("web")
			assert.Equal(t, "memory", scope)
		}),
		"openobserve": overGRPC("OPENOBSERVE_GRPC", func(t *testing.T, b *toBackend, to *backend) {
			b.pushFile(t, "go-heap")
			has(t, to, "shop", "alloc_space", "inuse_space")
			has(t, to, "host", "samples", "allocated_space")
		}),
		"elastic": overGRPC("EDOT_GRPC", func(t *testing.T, _ *toBackend, to *backend) {
			has(t, to, "host", "samples")
			types, _, _ := to.typesOf("host")
			assert.Len(t, types, 1)
		}),
		"splunk": func(t *testing.T) (string, func(*testing.T, *toBackend)) {
			h := &hec{}
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			return "SPLUNK_HEC_URL=" + server.URL, func(t *testing.T, b *toBackend) {
				b.pushFile(t, "go-mutex")
				require.Eventually(t, func() bool {
					types := h.field("profiling.data.type")
					return assert.ObjectsAreEqual(map[string]bool{"cpu": true, "allocation": true}, setOf(types))
				}, startTimeout, 50*time.Millisecond)
				require.Equal(t, map[string]bool{"host": true}, setOf(h.field("service.name")), "locks are left out")
			}
		},
	}
	require.Len(t, files, len(backends))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			require.Contains(t, backends, name)
			config := filepath.Join("config", "backends", name+".yaml")
			out, err := command(t, "validate", "--config", config)
			require.NoError(t, err, out)
			variable, check := backends[name](t)
			pprof, otlp := freeAddress(t), freeAddress(t)
			b := &toBackend{otlp: otlp, collector: launch(t, pprof, "", config, variable, "PPROF_ENDPOINT="+pprof,
				"OTLP_GRPC_ENDPOINT="+otlp, "OTLP_HTTP_ENDPOINT="+freeAddress(t), "SPLUNK_HEC_ENDPOINT="+freeAddress(t))}
			b.sendOTLP(t)
			check(t, b)
			b.Terminate(t)
		})
	}
}

func setOf(values []string) map[string]bool {
	set := map[string]bool{}
	for _, v := range values {
		set[v] = true
	}
	return set
}

func post(t *testing.T, url, file string) (status int, answer string) {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join(repository, file))
	require.NoError(t, err)
	response, err := client.Post(url, "application/octet-stream", bytes.NewReader(payload))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// capturedBySDK reads a pprof that pyroscope-go sent, and which profile it is to a Pyroscope.
func capturedBySDK(t *testing.T, n int) (name string, data []byte) {
	t.Helper()
	file := filepath.Join(repository, "testdata", "pyroscope", "go", fmt.Sprintf("request-%d", n))
	body, err := os.ReadFile(file + ".body")
	require.NoError(t, err)
	text, err := os.ReadFile(file + ".json")
	require.NoError(t, err)
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
	p, err := profile.ParseData(data)
	require.NoError(t, err)
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

// TestScrapedIsAsSentByTheSDK serves what pyroscope-go sent of a real program as that program would, scrapes it, and
// sends it on. Pyroscope gets the same profiles: types, units, totals, labels of samples, function names.
func TestScrapedIsAsSentByTheSDK(t *testing.T) {
	captured := map[string][]byte{}
	for n := 1; n <= 10; n++ {
		name, data := capturedBySDK(t, n)
		captured[name] = data
	}
	kinds := map[string]string{"process_cpu": "profile", "memory": "allocs", "goroutine": "goroutine", "mutex": "mutex", "block": "block"}
	require.Len(t, captured, len(kinds))
	mux := http.NewServeMux()
	for name, path := range kinds {
		mux.HandleFunc("/debug/pprof/"+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(captured[name]) })
	}
	target := httptest.NewServer(mux)
	t.Cleanup(target.Close)
	server := pyroscopetest.New(t)
	c := launch(t, freeAddress(t), "", fmt.Sprintf(`yaml:
receivers:
  pprof:
    scrape:
      configs:
        - job_name: shop
          scrape_interval: 2s
          static_configs: [{targets: [%q], labels: {region: eu-demo-1}}]
          # The client sends differences.
          profiles: {memory: {delta: false}, mutex: {delta: false}, block: {delta: false}}
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
		want, err := profile.ParseData(data)
		require.NoError(t, err)
		require.Contains(t, got, name)
		require.NoError(t, profiletest.EqualPprof(want, got[name].Pprof), name)
		require.Equal(t, "shop", got[name].Labels["service_name"])
		require.Equal(t, "eu-demo-1", got[name].Labels["region"])
		require.Equal(t, "false", got[name].Labels["__delta__"])
	}
}
