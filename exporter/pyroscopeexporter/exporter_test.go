// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	splunklog "github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func refuse(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func newTestExporter(t testing.TB, s *pyroscopetest.Server, change func(*Config)) *pyroscopeExporter {
	return newTestExporterWith(t, s, exportertest.NewNopSettings(NewFactory().Type()), change)
}

func settingsOf(telemetry *componenttest.Telemetry) exporter.Settings {
	set := exportertest.NewNopSettings(NewFactory().Type())
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	return set
}

func newTestExporterWith(t testing.TB, s *pyroscopetest.Server, set exporter.Settings,
	change func(*Config)) *pyroscopeExporter {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Client.Endpoint = s.URL
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	e, err := newExporter(set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.client.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, e.shutdown(context.Background())) })
	return e
}

// A pprof of a Go program arrives as it was, with its name and labels, but for differences below 0, which Pyroscope
// does not take.
func TestPprofArrivesAsItWas(t *testing.T) {
	for file, name := range map[string]string{
		"go-cpu-labels": "process_cpu", "go-heap": "memory", "go-goroutine": "goroutine", "go-mutex": "mutex",
		"go-block":      "block",
		"go-heap-delta": "memory",
	} {
		t.Run(file, func(t *testing.T) {
			data := profiletest.FileBytes(t, filepath.Join("..", "..", "testdata", "pprof", file+".pb.gz"))
			want := profiletest.ParsePprof(t, data)
			pd, _, err := decode.Decode(data, decode.Options{})
			require.NoError(t, err)
			rp := pd.ResourceProfiles().At(0)
			rp.Resource().Attributes().PutStr("service.name", "shop")
			rp.Resource().Attributes().PutInt("server.port", 6060)
			rp.ScopeProfiles().At(0).Scope().Attributes().PutStr(profilekind.NameAttribute, name)

			s := pyroscopetest.New(t)
			e := newTestExporter(t, s, func(c *Config) { c.Tenant = "team"; c.ExternalLabels["cluster"] = "eu" })
			require.NoError(t, e.push(t.Context(), pd))
			require.Len(t, s.Series(), 1, "all sample types are one series")
			got := s.Series()[0]
			labels := map[string]string{"__name__": name, "service_name": "shop", "server_port": "6060", "cluster": "eu"}
			switch file {
			case "go-heap": // totals beside states
			case "go-mutex", "go-block":
				labels["__delta__"] = "true"
			default:
				labels["__delta__"] = "false"
			}
			require.Equal(t, labels, got.Labels)
			require.Equal(t, "team", got.Tenant)
			require.Len(t, got.ID, 36)
			for _, sample := range want.Sample { // Pyroscope refuses a profile for a label that Prometheus does not allow
				if values, ok := sample.Label["größe"]; ok {
					delete(sample.Label, "größe")
					sample.Label["gr__e"] = values
				}
			}
			want.Sample = slices.DeleteFunc(want.Sample, func(sample *profile.Sample) bool {
				isNegative := slices.Min(sample.Value) < 0
				for i := range sample.Value {
					sample.Value[i] = max(sample.Value[i], 0)
				}
				return isNegative && slices.Max(sample.Value) == 0
			})
			require.NoError(t, profiletest.EqualPprof(want, got.Pprof))
		})
	}
}

// Observations become what Pyroscope counts: CPU time by the period, spans by their id, no series for each thread.
func TestObservationsBecomeCPUTime(t *testing.T) {
	sample := profiletest.Observed([]uint64{1000, 2000, 3000}, "leaf", "main")
	sample.Attributes = []profiletest.Attribute{profiletest.Attr("thread.id", 7), profiletest.Attr("region", "eu")}
	sample.TraceID, sample.SpanID = [16]byte{1}, [8]byte{0xab}
	other := profiletest.Observed([]uint64{4000}, "leaf", "main")
	other.Attributes = []profiletest.Attribute{profiletest.Attr("thread.id", 8)}
	third := profiletest.Observed([]uint64{5000}, "leaf", "main")
	third.Attributes = []profiletest.Attribute{profiletest.Attr("thread.id", 9)}
	pd := profiletest.New().Resource("service.name", "shop").
		Profile("samples", "count").Period(50_000_000, "cpu", "nanoseconds").Sample(sample).Sample(other).Sample(third).
		Build()
	before := profiletest.Render(pd)
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), pd))
	require.Equal(t, before, profiletest.Render(pd), "what is exported stays as it is")
	require.Len(t, s.Series(), 1)
	got := s.Series()[0]
	require.Equal(t, "process_cpu", got.Labels["__name__"])
	var types []string
	for _, st := range got.Pprof.SampleType {
		types = append(types, st.Type+"/"+st.Unit)
	}
	require.Equal(t, []string{"samples/count", "cpu/nanoseconds"}, types)
	require.Len(t, got.Pprof.Sample, 2, "the threads' samples are one")
	byRegion := map[string][]int64{}
	for _, one := range got.Pprof.Sample {
		byRegion[strings.Join(one.Label["region"], "")] = one.Value
		assert.NotContains(t, one.NumLabel, "thread.id")
		assert.NotContains(t, one.Label, "trace_id")
		if one.Label["region"] != nil {
			assert.Equal(t, []string{"ab00000000000000"}, one.Label["span_id"])
		}
	}
	require.Equal(t, map[string][]int64{"eu": {3, 150_000_000}, "": {2, 100_000_000}}, byRegion)
}

// A profile above the server's limits arrives in several that add up, each with an id and a time of its own: Pyroscope
// keeps one profile of a series and time. A message that comes again has the same ones.
func TestLargeProfilesAreSplit(t *testing.T) {
	const n, began = 5000, int64(1_700_000_000e9)
	build := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(began), 10e9)
	for i := range n {
		build.Sample(profiletest.Value(int64(i+1), fmt.Sprint("leaf", i), "main"))
	}
	s := pyroscopetest.New(t)
	for range 2 {
		exporter := newTestExporter(t, s, func(c *Config) { c.MaxProfileSamples = 1000 })
		require.NoError(t, exporter.push(t.Context(), build.Build()))
	}
	list := s.Series()
	list, again := list[:len(list)/2], list[len(list)/2:]
	require.GreaterOrEqual(t, len(list), 5)
	require.Less(t, len(list), 20)
	samples, total, ids, times := 0, int64(0), map[string]bool{}, map[int64]bool{}
	for i, one := range list {
		assert.Equal(t, again[i].ID, one.ID)
		assert.Equal(t, "shop", one.Labels["service_name"])
		assert.LessOrEqual(t, len(one.Pprof.Sample), 1000)
		assert.Equal(t, began/1e9, one.Pprof.TimeNanos/1e9)
		times[one.Pprof.TimeNanos] = true
		samples += len(one.Pprof.Sample)
		for _, sample := range one.Pprof.Sample {
			total += sample.Value[0]
		}
		ids[one.ID] = true
	}
	require.Equal(t, n, samples)
	require.EqualValues(t, n*(n+1)/2, total)
	require.Len(t, ids, len(list))
	require.Len(t, times, len(list))
}

func twoServices() pprofile.Profiles {
	return profiletest.New().
		Resource("service.name", "a").Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "f")).
		Resource("service.name", "b").Profile("cpu", "nanoseconds").Sample(profiletest.Value(2, "g")).Build()
}

// Only what was not accepted is sent again, with the same ids.
func TestRetriesOnlyWhatIsLeft(t *testing.T) {
	s := pyroscopetest.New(t)
	s.Answer(nil, refuse(503, ""), refuse(429, "", "Retry-After", "1"))
	cfg := createDefaultConfig().(*Config)
	cfg.Client.Endpoint = s.URL
	cfg.Retry = configretry.NewDefaultBackOffConfig()
	cfg.Retry.InitialInterval = 10 * time.Millisecond
	cfg.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	e, err := createProfiles(t.Context(), exportertest.NewNopSettings(NewFactory().Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, e.ConsumeProfiles(t.Context(), twoServices()))
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, 4, s.Calls())
	require.Len(t, s.Series(), 2)
	require.Equal(t, "a", s.Series()[0].Labels["service_name"])
	require.Equal(t, "b", s.Series()[1].Labels["service_name"])
}

// A page of a login answers 200, but did not get the data.
func TestRedirectsToAPageAreRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, "/login", http.StatusFound)
		}
	}))
	defer s.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Client.Endpoint = s.URL
	cfg.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	e, err := createProfiles(t.Context(), exportertest.NewNopSettings(NewFactory().Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	err = e.ConsumeProfiles(t.Context(), twoServices())
	require.ErrorContains(t, err, "302")
	require.True(t, consumererror.IsPermanent(err))
	require.NoError(t, e.Shutdown(t.Context()))
}

func TestUnknownKeysAreRefused(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"endpont": "http://localhost"})
	require.ErrorContains(t, conf.Unmarshal(createDefaultConfig()), "endpont")
}

// A series that the server never accepts does not keep the others of its message from arriving.
func TestOneSeriesThatIsAlwaysRetriedLeavesTheOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		answers         []http.HandlerFunc
		arrived, failed int
	}{
		"one":      {[]http.HandlerFunc{nil, refuse(429, "")}, 4, 1},
		"too many": {[]http.HandlerFunc{refuse(429, ""), refuse(500, ""), nil, refuse(429, "")}, 1, 4},
		"away":     {[]http.HandlerFunc{nil, refuse(503, "")}, 1, 4},
	} {
		for kind, sample := range map[string]profiletest.Sample{"as is": profiletest.Value(1, "f"),
			"prepared": profiletest.Observed([]uint64{7}, "f")} {
			t.Run(name+" "+kind, func(t *testing.T) {
				build := profiletest.New()
				for i := range 5 {
					build.Resource("service.name", fmt.Sprint("s", i)).Profile("cpu", "nanoseconds").Sample(sample)
				}
				s := pyroscopetest.New(t)
				s.Answer(tt.answers...)
				err := newTestExporter(t, s, nil).push(t.Context(), build.Build())
				var left xconsumererror.Profiles
				require.ErrorAs(t, err, &left)
				require.False(t, consumererror.IsPermanent(err))
				require.Len(t, s.Series(), tt.arrived)
				require.Equal(t, tt.failed, left.Data().SampleCount())
			})
		}
	}
}

func TestAnswersOfTheServer(t *testing.T) {
	for name, tt := range map[string]struct {
		answer    http.HandlerFunc
		permanent bool
		message   string
	}{
		"bad labels": {refuse(400, `{"code":"invalid_argument","message":"too many labels"}`), true,
			"invalid_argument: too many labels"},
		"no token":     {refuse(401, "who are you"), true, "who are you"},
		"too large":    {refuse(413, ""), true, "413"},
		"rate limited": {refuse(429, "slow down", "Retry-After", "86400"), false, "slow down"},
		"away":         {refuse(503, ""), false, "503"},
		"huge answer":  {refuse(400, strings.Repeat("\xff", 1<<20)), true, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pyroscopetest.New(t)
			s.Answer(tt.answer)
			err := newTestExporter(t, s, func(c *Config) {
				c.Client.Endpoint = strings.Replace(s.URL, "http://", "http://user:secret@", 1)
			}).push(t.Context(), profiletest.New().Resource("service.name", "a").Profile("cpu",
				"nanoseconds").Sample(profiletest.Value(1, "f")).Build())
			require.ErrorContains(t, err, tt.message)
			assert.Equal(t, tt.permanent, consumererror.IsPermanent(err))
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "24h", "the delay is capped")
			assert.Less(t, len(err.Error()), 6000)
		})
	}
}

// services makes a message of a service for each number, with so many samples.
func services(samples ...int) pprofile.Profiles {
	build := profiletest.New()
	for i, n := range samples {
		build.Resource("service.name", fmt.Sprint("s", i)).Profile("cpu", "nanoseconds")
		for k := range n {
			build.Sample(profiletest.Value(1, fmt.Sprint("f", k)))
		}
	}
	return build.Build()
}

// Each sample counts as sent or as failed by the answer to its own series, in the Collector's own metrics: with a queue
// and without, for series that are refused at once or after a retry, and for those that were never accepted.
func TestSentAndFailedSamplesAreExact(t *testing.T) {
	ten := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10} // 55 samples
	bad, later := refuse(400, "bad"), refuse(429, "slow down")
	for name, tt := range map[string]struct {
		answers []http.HandlerFunc
		failed  int64
		// lines are what is logged as an error.
		lines []string
	}{
		"all accepted": {},
		"one refused": {[]http.HandlerFunc{nil, nil, bad}, 3, []string{
			`refused 1 series (3 samples), process_cpu of s2: URL answered 400 Bad Request: "bad"`,
		}},
		"two reasons": {[]http.HandlerFunc{bad, bad, nil, refuse(401, "who are you")}, 7, []string{
			`refused 2 series (3 samples), such as process_cpu of s0: URL answered 400 Bad Request: "bad"; ` +
				`1 series (4 samples), process_cpu of s3: URL answered 401 Unauthorized: "who are you"`,
		}},
		"all refused": {slices.Repeat([]http.HandlerFunc{bad}, 10), 55, []string{
			`Permanent error: refused 10 series (55 samples), such as process_cpu of s0: URL answered 400 Bad Request: "bad"`,
		}},
		// The retry has s0 and s4.
		"refused after a retry": {append([]http.HandlerFunc{later, nil, nil, nil, later},
			append(make([]http.HandlerFunc, 5), nil, bad)...), 5, []string{
			`refused 1 series (5 samples), process_cpu of s4: URL answered 400 Bad Request: "bad"`,
		}},
		"refused, then retried": {append([]http.HandlerFunc{later, bad}, make([]http.HandlerFunc, 8)...), 2, []string{
			`refused 1 series (2 samples), process_cpu of s1: URL answered 400 Bad Request: "bad"`,
		}},
		"given up": {[]http.HandlerFunc{nil, bad, nil, refuse(503, "away")}, 51, nil},
	} {
		for queue, enabled := range map[string]bool{"with a queue": true, "without": false} {
			for kind, prepared := range map[string]bool{"as it is": false, "prepared": true} {
				t.Run(name+" "+queue+" "+kind, func(t *testing.T) {
					s := pyroscopetest.New(t)
					s.Answer(tt.answers...)
					cfg := createDefaultConfig().(*Config)
					cfg.Client.Endpoint = s.URL
					cfg.Retry.InitialInterval, cfg.Retry.MaxInterval, cfg.Retry.MaxElapsedTime = time.Millisecond, time.Millisecond, 0
					if name == "given up" {
						cfg.Retry.MaxElapsedTime = 1
					}
					if !enabled {
						cfg.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
					}
					telemetry := componenttest.NewTelemetry()
					core, logs := observer.New(zapcore.ErrorLevel)
					set := exporter.Settings{ID: component.NewID(NewFactory().Type()),
						TelemetrySettings: telemetry.NewTelemetrySettings()}
					set.Logger = zap.New(core)
					e, err := createProfiles(t.Context(), set, cfg)
					require.NoError(t, err)
					require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
					pd := services(ten...)
					if prepared {
						pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SampleType().
							SetUnitStrindex(int32(pd.Dictionary().StringTable().Len()))
						pd.Dictionary().StringTable().Append("nano:seconds")
					}
					err = e.ConsumeProfiles(t.Context(), pd)
					count := func(name string, attributes ...string) int64 {
						return collectortest.Sum(t, telemetry, "otelcol_exporter_"+name+"_profile_samples", attributes...)
					}
					require.Eventually(t, func() bool { return count("sent")+count("send_failed") == 55 }, time.Minute,
						time.Millisecond)
					require.Equal(t, tt.failed, count("send_failed"))
					require.Equal(t, tt.failed, count("send_failed", "exporter", "pyroscope"))
					require.Equal(t, 55-tt.failed, count("sent", "exporter", "pyroscope"))
					require.NoError(t, e.Shutdown(t.Context()))
					require.NoError(t, telemetry.Shutdown(t.Context()))
					assert.Equal(t, !enabled && (name == "all refused" || name == "given up"), err != nil)
					if tt.lines != nil {
						lines := logs.All()
						require.Len(t, lines, len(tt.lines))
						for i, line := range lines {
							text := strings.ReplaceAll(line.ContextMap()["error"].(string), s.URL+pushPath, "URL")
							assert.Equal(t, tt.lines[i], strings.TrimPrefix(text, "not retryable error: "))
						}
					}
				})
			}
		}
	}
}

// What a Splunk agent samples all the time, and what it samples during requests, differ only by an attribute of the
// profile: they are series of their own, whose totals are those of the records.
func TestSplunkSourcesAreSeries(t *testing.T) {
	s := pyroscopetest.New(t)
	e := newTestExporter(t, s, nil)
	want := map[string]int64{}
	for _, source := range []string{"snapshot", "continuous"} {
		files := profiletest.Glob(t, filepath.Join("..", "..", "testdata", "splunk", "v4.*-cpu-"+source+".otlp-logs.pb"))
		for _, file := range files {
			data := profiletest.FileBytes(t, file)
			records, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
			require.NoError(t, err)
			translated := splunklog.Translate(records, splunklog.Options{})
			require.NoError(t, e.push(t.Context(), translated.Profiles))
			for profile := range otlp.Profiles(translated.Profiles) {
				for _, sample := range profile.Samples().All() {
					want["process_cpu "+source] += int64(sample.TimestampsUnixNano().Len())
				}
			}
		}
	}
	require.Len(t, want, 2)
	got := map[string]int64{}
	for _, one := range s.Series() {
		require.Equal(t, []string{"samples", "cpu"}, []string{one.Pprof.SampleType[0].Type, one.Pprof.SampleType[1].Type})
		for _, sample := range one.Pprof.Sample {
			got[one.Labels["__name__"]+" "+one.Labels["profiling_instrumentation_source"]] += sample.Value[0]
		}
	}
	require.Equal(t, want, got)
}

// Attributes of a profile that distinguish it are labels, within the same bounds as others. Those of pprof's header are
// not.
func TestProfileAttributesAreLabels(t *testing.T) {
	var attributes []profiletest.Attribute
	for i := range 40 {
		attributes = append(attributes, profiletest.Attr(fmt.Sprintf("a.%02d", i), i))
	}
	for name, tt := range map[string]struct {
		attributes []profiletest.Attribute
		want       map[string]string
		dropped    int64
		change     func(*Config)
	}{
		"header": {attributes: []profiletest.Attribute{profiletest.Attr("pprof.profile.comment", "x"),
			profiletest.Attr("pprof.profile.doc_url", "x")}, want: map[string]string{"host_name": "h", "region": "eu"}},
		"numbers": {attributes: []profiletest.Attribute{profiletest.Attr("cpu.number", 3), profiletest.Attr("empty", "")},
			want: map[string]string{"host_name": "h", "region": "eu", "cpu_number": "3"}},
		"same": {attributes: []profiletest.Attribute{profiletest.Attr("region", "us"),
			profiletest.Attr("service.name", "other")}, want: map[string]string{"host_name": "h", "region": "us"}},
		"excluded": {attributes: []profiletest.Attribute{profiletest.Attr("secret", "x")},
			want: map[string]string{"host_name": "h", "region": "eu"}, change: func(c *Config) {
				c.Labels.Exclude = []string{"secret"}
			}},
		"too long": {attributes: []profiletest.Attribute{profiletest.Attr(strings.Repeat("k", 1025), "x"),
			profiletest.Attr("v", strings.Repeat("v", 3000))}, want: map[string]string{"host_name": "h", "region": "eu",
			"v": strings.Repeat("v", 2048)}, dropped: 1},
		"too many": {attributes: attributes, want: map[string]string{"a_00": "0"}, dropped: 41, change: func(c *Config) {
			c.Labels.Max = 4
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := pyroscopetest.New(t)
			telemetry := componenttest.NewTelemetry()
			pd := profiletest.New().Resource("service.name", "shop", "host.name", "h", "region", "eu").
				Profile("cpu", "nanoseconds").Attributes(tt.attributes...).Sample(profiletest.Value(1, "f")).Build()
			require.NoError(t, newTestExporterWith(t, s, settingsOf(telemetry), tt.change).push(t.Context(), pd))
			require.Len(t, s.Series(), 1)
			labels := s.Series()[0].Labels
			for _, fixed := range []string{"__name__", "__delta__", "service_name"} {
				delete(labels, fixed)
			}
			assert.Equal(t, tt.want, labels)
			assert.Equal(t, tt.dropped, collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_labels"))
			require.NoError(t, telemetry.Shutdown(t.Context()))
		})
	}
}

// A server that can must subtract totals since a process began from each other, and nothing else.
func TestTotalsAreNotDeltas(t *testing.T) {
	for name, tt := range map[string]struct {
		sampleType, stated string
		duration           uint64
		want               string
	}{
		"allocations":      {"alloc_space", "", 5, "false"},
		"totals":           {"alloc_space", "", 0, "true"},
		"stated totals":    {"my_type", "cumulative", 5, "true"},
		"stated to be new": {"alloc_space", "delta", 0, "false"},
		"a state":          {"inuse_space", "", 0, "false"},
	} {
		s := pyroscopetest.New(t)
		pd := profiletest.New().Profile(tt.sampleType, "bytes").Time(1, tt.duration).Attributes(
			profiletest.Attr(profilekind.TemporalityAttribute, tt.stated)).Sample(profiletest.Value(1, "f")).Build()
		require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), pd))
		assert.Equal(t, tt.want, s.Series()[0].Labels["__delta__"], name)
	}
}

func TestLabels(t *testing.T) {
	pd := profiletest.New().Resource("service.name", "shop", "k8s.pod.name", "p", "z", "1", "a/b", "2", "9", "3",
		"host.name", "h", "empty", "").Build()
	attributes := pd.ResourceProfiles().At(0).Resource().Attributes()
	names := func(change func(*Config), sampleLabels int) (string, int) {
		cfg := createDefaultConfig().(*Config)
		change(cfg)
		l := newLabeler(cfg)
		resource := l.ofResource(attributes, &budget{limit: minBytes})
		own := []label{{labelProfileName, "memory"}, {labelDelta, "false"}}
		labels, dropped := l.labels(&resource, own, nil, sampleLabels)
		var all []string
		for _, l := range labels {
			all = append(all, l.name+"="+l.value)
		}
		return strings.Join(all, " "), dropped
	}
	for name, tt := range map[string]struct {
		change       func(*Config)
		want         string
		dropped      int
		sampleLabels int
	}{
		"defaults": {func(*Config) {},
			"_9=3 __delta__=false __name__=memory a_b=2 host_name=h k8s_pod_name=p service_name=shop z=1", 0, 0},
		"dots": {func(c *Config) { c.Labels.Dots = dotsKeep },
			"_9=3 __delta__=false __name__=memory a_b=2 host.name=h k8s.pod.name=p service_name=shop z=1", 0, 0},
		"four": {func(c *Config) { c.Labels.Max = 4 }, "__delta__=false __name__=memory k8s_pod_name=p service_name=shop",
			4, 0},
		"include": {func(c *Config) { c.Labels.Include = []string{"z", "host.name"}; c.Labels.Max = 4 },
			"__delta__=false __name__=memory service_name=shop z=1", 1, 0},
		"exclude": {func(c *Config) { c.Labels.Exclude = []string{"z", "9", "a/b"} },
			"__delta__=false __name__=memory host_name=h k8s_pod_name=p service_name=shop", 0, 0},
		"external": {func(c *Config) { c.ExternalLabels = map[string]string{"z": "mine"}; c.Labels.Include = []string{"z"} },
			"__delta__=false __name__=memory service_name=shop z=mine", 0, 0},
		"samples": {func(c *Config) { c.Labels.Max = 6 }, "__delta__=false __name__=memory k8s_pod_name=p service_name=shop",
			4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, dropped := names(tt.change, tt.sampleLabels)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.dropped, dropped)
		})
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"`endpoint` must be an http or https URL with a host, found \"\"": func(c *Config) {
			c.Client.Endpoint = ""
		},
		"`endpoint` must be the address of the server, without /push.v1": func(c *Config) {
			c.Client.Endpoint = "http://pyroscope:4040" + pushPath + "/"
		},
		"`endpoint` must be an http or https URL with a host, found \"pyroscope:4040\"": func(c *Config) {
			c.Client.Endpoint = "pyroscope:4040"
		},
		"`labels.max` must be at least 4": func(c *Config) { c.Labels.Max = 3; c.ExternalLabels["a"] = "b" },
		"`labels.dots` must be keep or":   func(c *Config) { c.Labels.Dots = "both" },
		"`external_labels` must have names of letters, digits and _, or . if `labels.dots` is keep, that do not begin with a digit, found \"a.b\"": func(c *Config) { c.ExternalLabels["a.b"] = "x" },
		"`max_profile_samples` must be":    func(c *Config) { c.MaxProfileSamples = 0 },
		"`max_profile_bytes` must be at l": func(c *Config) { c.MaxProfileBytes = 1 },
		"`timeout` must not be negative":   func(c *Config) { c.Client.Timeout = -1 },
		"`max_retry_after` must be posit":  func(c *Config) { c.MaxRetryAfter = 0 },
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Client.Endpoint = "http://localhost:4040"
		require.NoError(t, cfg.Validate())
		change(cfg)
		assert.ErrorContains(t, cfg.Validate(), want)
	}
}
