// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestStatic(t *testing.T) {
	w := watch(t, `
job_name: shop
static_configs:
  - targets: ["localhost:6060"]
    labels: {service_name: shop, deployment.environment.name: dev}
`)
	u := w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, []string{
		"process_cpu http://localhost:6060/debug/pprof/profile?seconds=14",
		"memory http://localhost:6060/debug/pprof/allocs",
		"goroutine http://localhost:6060/debug/pprof/goroutine",
		"block http://localhost:6060/debug/pprof/block",
		"mutex http://localhost:6060/debug/pprof/mutex",
	}, urls(u))
	assert.Equal(t, map[string]any{
		"service.name": "shop", "service.instance.id": "localhost:6060", "server.address": "localhost",
		"server.port":                 int64(6060),
		"deployment.environment.name": "dev",
	}, u.Targets[0].Resource.AsRaw())
}

// Jobs do not mix, and one that finds nothing is reported all the same. The same target of two jobs is two targets.
func TestJobsInOneManager(t *testing.T) {
	w := watch(t, onlyMemory, "job_name: k"+onlyMemory[len("\njob_name: j"):], `
job_name: l
file_sd_configs: [{files: [`+t.TempDir()+`/*.json]}]
`)
	u := w.await(func(u Update) bool { return len(u.Targets) == 2 })
	require.Len(t, u.Jobs, 3)
	assert.Equal(t, []string{"j", "k", "l"}, []string{u.Jobs[0].Job, u.Jobs[1].Job, u.Jobs[2].Job})
	assert.Equal(t, []string{"j", "k"}, []string{u.Targets[0].Job, u.Targets[1].Job})
	assert.NotEqual(t, u.Targets[0].Key, u.Targets[1].Key)
	assert.Equal(t, 0, u.Jobs[2].Discovered)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	// A file is replaced, as who writes it should do: half of one would be read as a fault.
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.yaml")
	writeFile(t, path, "[{targets: ['a:1'], labels: {team: shop}}]")
	w := watch(t, `
job_name: files
file_sd_configs: [{files: [`+path+`], refresh_interval: 100ms}]
profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
`)
	u := w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, "shop", u.Targets[0].Resource.AsRaw()["team"])
	first := u.Targets[0]

	writeFile(t, path, "[{targets: ['a:1'], labels: {team: shop}}, {targets: ['b:1']}]")
	u = w.await(func(u Update) bool { return len(u.Targets) == 2 })
	assert.True(t, first.Equal(u.Targets[0]))
	assert.Equal(t, []string{"memory http://a:1/debug/pprof/allocs", "memory http://b:1/debug/pprof/allocs"}, urls(u))

	writeFile(t, path, "[{targets: ['b:1']}]")
	u = w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, []string{"memory http://b:1/debug/pprof/allocs"}, urls(u))

	writeFile(t, path, "[]")
	w.await(func(u Update) bool { return len(u.Targets) == 0 })
}

func TestHTTP(t *testing.T) {
	var answer atomic.Value
	answer.Store(`[{"targets": ["a:1"], "labels": {"service_name": "shop", "__meta_datacenter": "x"}}]`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "p" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer.Load())
	}))
	t.Cleanup(server.Close)
	w := watch(t, `
job_name: http
http_sd_configs: [{url: "`+server.URL+`", refresh_interval: 100ms, basic_auth: {username: u, password: p}}]
relabel_configs: [{source_labels: [__meta_datacenter], target_label: cloud.availability_zone}]
profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
`)
	u := w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, "shop", u.Targets[0].Resource.AsRaw()["service.name"])
	assert.Equal(t, "x", u.Targets[0].Resource.AsRaw()["cloud.availability_zone"])

	answer.Store(`[{"targets": ["b:1"]}]`)
	w.await(func(u Update) bool { return len(u.Targets) == 1 && u.Targets[0].Labels.Get("instance") == "b:1" })
	answer.Store(`[]`)
	w.await(func(u Update) bool { return len(u.Targets) == 0 })
}

// A discovery that fails keeps what it found, and says so once, not at every refresh.
func TestFailingDiscovery(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) > 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `[{"targets": ["a:1"]}]`)
	}))
	t.Cleanup(server.Close)
	core, logs := observer.New(zapcore.DebugLevel)
	w := watchWith(t, zap.New(core), `
job_name: http
http_sd_configs: [{url: "`+server.URL+`", refresh_interval: 20ms}]
`)
	w.await(func(u Update) bool { return len(u.Targets) == 1 && requests.Load() > 10 })
	w.stop()
	assert.Len(t, w.now().Targets, 1)
	assert.Zero(t, logs.FilterLevelExact(zapcore.DebugLevel).Len())
	failures := logs.FilterMessageSnippet("Unable to refresh").All()
	require.Len(t, failures, 1)
	assert.Equal(t, zapcore.ErrorLevel, failures[0].Level)
	fields := failures[0].ContextMap()
	assert.Equal(t, "http", fields["job"])
	assert.Contains(t, fields["err"], "500")
}

// An address that nobody listens at is logged without the secrets in its query.
func TestFailingDiscoveryHidesSecrets(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	w := watchWith(t, zap.New(core), `
job_name: http
http_sd_configs: [{url: "http://user:hunter2@127.0.0.1:1/targets?token=hunter3", refresh_interval: 20ms}]
`)
	failures := func() []observer.LoggedEntry { return logs.FilterMessageSnippet("Unable to refresh").All() }
	require.Eventually(t, func() bool { return len(failures()) > 0 }, 30*time.Second, 5*time.Millisecond)
	w.stop()
	assert.NotContains(t, fmt.Sprint(failures()[0].ContextMap()), "hunter")
	assert.Contains(t, failures()[0].ContextMap()["err"], "127.0.0.1:1/targets?token=REDACTED")
}

// A job that finds nothing says so once. Kubernetes' discovery would not even say that nobody answers.
func TestNothingFound(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	dir := t.TempDir()
	m, err := NewManager([]*Config{
		mustLoad(t, "job_name: files\nfile_sd_configs: [{files: ["+dir+"/*.json]}]"),
		mustLoad(t, "job_name: both\nfile_sd_configs: [{files: ["+dir+
			"/*.yml]}]\ndns_sd_configs: [{names: [shop.invalid], type: A, port: 6060}]"),
	}, zap.New(core))
	require.NoError(t, err)
	m.firstLook = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx, func(Update) {}) })
	find := func() []observer.LoggedEntry { return logs.FilterMessageSnippet("no targets yet").All() }
	require.Eventually(t, func() bool { return len(find()) == 2 }, patience, 5*time.Millisecond)
	cancel()
	running.Wait()
	assert.Equal(t, "files", find()[0].ContextMap()["job"])
	assert.Equal(t, zapcore.InfoLevel, find()[0].Level, "programs may only push")
	assert.Equal(t, []any{dir + "/*.json"}, find()[0].ContextMap()["files"])
	assert.Equal(t, "both", find()[1].ContextMap()["job"])
	assert.Equal(t, zapcore.WarnLevel, find()[1].Level)

	core, logs = observer.New(zapcore.DebugLevel)
	m.logger = newLogger(zap.New(core))
	m.warnOfNothing(Update{Jobs: []JobReport{{Discovered: 1}, {Discovered: 0}}})
	require.Len(t, find(), 1)
	assert.Equal(t, "both", find()[0].ContextMap()["job"])
}

// What can never work is an error before anything starts.
func TestNewManagerFaults(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := NewManager([]*Config{
		mustLoad(t, "job_name: pods\nkubernetes_sd_configs: [{role: pod}]"),
		mustLoad(t, "job_name: tls\nhttp_sd_configs: [{url: 'https://h', tls_config: {ca_file: /nowhere}}]"),
	}, zap.NewNop())
	assert.ErrorContains(t, err, "job \"pods\": `kubernetes_sd_configs`: ")
	assert.ErrorContains(t, err, "job \"tls\": `http_sd_configs`: ")
	assert.ErrorContains(t, err, "/nowhere")
}

// Two jobs with the same discovery share it, as two of one Prometheus do.
func TestSharedDiscovery(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `[{"targets": ["a:1"]}]`)
	}))
	t.Cleanup(server.Close)
	discovery := "\nhttp_sd_configs: [{url: '" + server.URL + "', refresh_interval: 1h}]\n"
	w := watch(t, "job_name: a"+discovery, "job_name: b"+discovery)
	w.await(func(u Update) bool { return len(u.Targets) == 2 })
	w.stop()
	assert.Equal(t, int64(1), requests.Load())
}

// A discovery that fails again and again does not fill the log.
func TestLogIsSampled(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	handler := newLogger(onceIn(logEvery, zap.New(core))).With("job", "pods").Handler()
	at := time.Unix(1e9, 0)
	write := func(message string, fields ...any) {
		record := slog.NewRecord(at, slog.LevelError, message, 0)
		record.Add(fields...)
		require.NoError(t, handler.Handle(t.Context(), record))
	}
	for range 100 {
		write("again")
	}
	write("another")
	require.Len(t, logs.All(), 2)
	assert.Equal(t, map[string]any{"job": "pods"}, logs.All()[0].ContextMap())
	assert.Empty(t, logs.All()[0].Stack)
	at = at.Add(logEvery)
	write("again")
	assert.Len(t, logs.All(), 3)
	for i := range 3 {
		write("no file", "path", "a", "err", i)
		write("no file", "path", "b", "err", i)
	}
	assert.Len(t, logs.All(), 5)
	for i := range 2 * maxSubjects { // more than are told apart
		write("no pod", "pod", i)
	}
	assert.LessOrEqual(t, len(logs.All()), 5+maxSubjects)
	at = at.Add(logEvery)
	write("no file", "path", "b")
	assert.Equal(t, "no file", logs.All()[len(logs.All())-1].Message)
}

// fake is a discovery that finds what a test sends to it.
type fake chan []*targetgroup.Group

func (fake) Name() string { return "fake" }

func (f fake) NewDiscoverer(discovery.DiscovererOptions) (discovery.Discoverer, error) { return f, nil }

func (fake) NewDiscovererMetrics(prometheus.Registerer,
	discovery.RefreshMetricsInstantiator) discovery.DiscovererMetrics {
	return &discovery.NoopDiscovererMetrics{}
}

func (f fake) Run(ctx context.Context, found chan<- []*targetgroup.Group) {
	for {
		select {
		case <-ctx.Done():
			return
		case groups := <-f:
			found <- groups
		}
	}
}

func group(source string, addresses ...string) *targetgroup.Group {
	g := &targetgroup.Group{Source: source}
	for _, a := range addresses {
		g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(a)})
	}
	return g
}

// The first change after a quiet time is applied soon, and those that follow less and less often. Discoveries can send
// one source of many, nil groups, and a group without targets when a source is gone.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the test has it except while time passes
		mu.Lock()
		pass := func(d time.Duration) {
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
		}
		cfg := mustLoad(t, strings.TrimPrefix(onlyMemory, "\n"))
		found := make(fake)
		cfg.Discovery = discovery.Configs{found, found}
		m, err := NewManager([]*Config{cfg}, zap.NewNop())
		require.NoError(t, err)
		require.Len(t, m.providers, 1)
		var handed []time.Duration
		var last Update
		start := time.Now()
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		running.Go(func() {
			m.Run(ctx, func(u Update) {
				mu.Lock()
				defer mu.Unlock()
				handed, last = append(handed, time.Since(start)), u
			})
		})
		found <- []*targetgroup.Group{nil, group("a", "a:1"), group("b", "b:1")}
		pass(time.Second)
		assert.Equal(t, []time.Duration{settle}, handed)
		assert.Len(t, last.Targets, 2)

		pass(time.Hour)
		start, handed = time.Now(), nil
		found <- []*targetgroup.Group{group("a"), nil}
		pass(settle)
		assert.Equal(t, []time.Duration{settle}, handed)
		require.Len(t, last.Targets, 1)
		assert.Equal(t, "b:1", last.Targets[0].Labels.Get("instance"))
		assert.Len(t, m.providers[0].groups, 1, "sources that are gone would accumulate")

		for i := range 600 { // a minute without a quiet moment
			pass(settle)
			found <- []*targetgroup.Group{group("c", fmt.Sprintf("c:%d", i))}
		}
		assert.Less(t, len(handed), 20)
		assert.GreaterOrEqual(t, handed[1], 3*settle)
		assert.Less(t, handed[1], m.every)
		n := len(handed)
		assert.Equal(t, m.every, handed[n-1]-handed[n-2])
		pass(m.every)
		assert.Equal(t, "c:599", last.Targets[len(last.Targets)-1].Labels.Get("instance"))
		mu.Unlock()
		cancel()
		running.Wait()
	})
}

// A folder that is created after the start is noticed, and so is one that is created again. That is no error.
func TestFoldersThatComeAndGo(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	folder := filepath.Join(t.TempDir(), "later", "targets")
	w := watchWith(t, zap.New(core),
		"job_name: files\nfile_sd_configs: [{files: ["+folder+"/*.json, "+folder+"/*.yaml], refresh_interval: 1h}]")
	for range 2 {
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`[{"targets": ["a:1"]}]`), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "b.yaml"), []byte(`[{targets: ["b:1"]}]`), 0o600))
		w.await(func(u Update) bool { return len(u.Targets) == 2 })
		require.Empty(t, logs.FilterMessageSnippet("file watch").All())
		require.NoError(t, os.RemoveAll(folder))
		w.await(func(u Update) bool { return len(u.Targets) == 0 })
		logs.TakeAll() // the folder was watched when it went
	}
}

// Targets beyond the limit are counted, whatever finds them, and the others stay the same.
func TestTargetLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.json")
	text := `[{"targets": ["h1:1", "h2:1"]}, {"labels": {"a": "b"}, "targets": ["h3:1", "h4:1", "h5:1"]}, {"targets": []}]`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	server := serve(t, text)
	for _, discovery := range []string{
		"static_configs: [{targets: ['h1:1', 'h2:1', 'h3:1']}, {targets: ['h4:1', 'h5:1']}]",
		"file_sd_configs: [{files: ['" + file + "']}]",
		"http_sd_configs: [{url: '" + server + "', refresh_interval: 10ms}]",
	} {
		core, logs := observer.New(zap.InfoLevel)
		w := watchWith(t, zap.New(core),
			"job_name: j\ntarget_limit: 3\nprofiles: {process_cpu: {enabled: false}, goroutine: {enabled: false},"+
				" block: {enabled: false}, mutex: {enabled: false}}\n"+discovery)
		u := w.await(func(u Update) bool { return len(u.Targets) == 3 })
		assert.Equal(t, []string{"memory http://h1:1/debug/pprof/allocs", "memory http://h2:1/debug/pprof/allocs",
			"memory http://h3:1/debug/pprof/allocs"}, urls(u))
		assert.Equal(t, 5, u.Jobs[0].Discovered, discovery)
		assert.Equal(t, 2, u.Jobs[0].Dropped[DropLimit], discovery)
		assert.Equal(t, 1, logs.FilterMessageSnippet("more targets than `target_limit`").Len())
		w.stop()
	}
}

// serve answers every request with a text as JSON.
func serve(t *testing.T, text string) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// What a server lists takes memory for the targets within the limit, not for the others, and not for labels that all of
// them share.
func TestHTTPIsBounded(t *testing.T) {
	var many strings.Builder
	const count = 400_000
	for n := range count {
		fmt.Fprintf(&many, `%q,`, fmt.Sprintf("10.0.0.1:%d", n%65536))
	}
	targets := strings.TrimSuffix(many.String(), ",")
	for name, text := range map[string]string{
		"targets":       `[{"targets": [` + targets + `]}]`,
		"shared labels": `[{"labels": {"a": "` + strings.Repeat("x", 1<<20) + `"}, "targets": [` + targets + `]}]`,
		"labels last":   `[{"targets": [` + targets + `], "labels": {"a": "` + strings.Repeat("x", 1<<20) + `"}}]`,
		"groups": `[` + strings.ReplaceAll(`{"targets": [`+targets+`]}`, ",",
			`]}, {"labels": {"a": "b"}, "targets": [`) + `]`,
	} {
		url := serve(t, text)
		before := profiletest.HeapBytes()
		bound := profiletest.Bound{AllocatedBytes: len(text)*40 + 4*maxLabelBytes}
		profiletest.RequireCost(t, bound, func() {
			w := watch(t, "job_name: j\ntarget_limit: 1000\nhttp_sd_configs: [{url: '"+url+"', refresh_interval: 1h}]")
			u := w.await(func(u Update) bool { return len(u.Jobs) > 0 && u.Jobs[0].Discovered > 0 })
			assert.Equal(t, count, u.Jobs[0].Discovered, name)
			assert.GreaterOrEqual(t, u.Jobs[0].Dropped[DropLimit], count-1000, name)
			assert.Less(t, profiletest.HeapBytes(), before+maxLabelBytes+32<<20, name)
			w.stop()
		})
	}
}

func TestHTTPFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                               "must be a list",
		`[null]`:                           "must be an object",
		`[{"targets": ["a:1"]}`:            "EOF",
		`[{"targets": "a:1"}]`:             "must be a list",
		`[{"targets": [1]}]`:               "must be a string",
		`[{"labels": {"a": 1}}]`:           "must be a string",
		`[{"labels": {"": "a"}}]`:          "label name",
		`[{"targets": ["a:1"]}]x`:          "after the list",
		`["` + strings.Repeat("x", 34<<20): "larger than",
	} {
		core, logs := observer.New(zap.InfoLevel)
		w := watchWith(t, zap.New(core), "job_name: j\nhttp_sd_configs: [{url: '"+serve(t, text)+"', refresh_interval: 1h}]")
		require.Eventually(t, func() bool { return logs.Len() > 0 }, patience, time.Millisecond, text[:min(len(text), 30)])
		assert.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()["err"]), want)
		w.stop()
	}
}

// What is not known in a group is left alone, as Prometheus does.
func TestHTTPGroups(t *testing.T) {
	url := serve(t, `[{"more": [{"a": {}}], "targets": ["a:1"], "labels": {"x": "y"}}, {"targets": null, "labels": null}]`)
	u := watch(t, "job_name: j\nhttp_sd_configs: [{url: '"+url+"', refresh_interval: 1h}]").await(func(u Update) bool {
		return len(u.Targets) > 0
	})
	assert.Equal(t, "y", u.Targets[0].Labels.Get("x"))
	assert.Equal(t, url, u.Targets[0].Discovered.Get("__meta_url"))
}
