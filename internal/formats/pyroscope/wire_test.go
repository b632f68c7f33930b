// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscope

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The queries are captured from pyroscope-go 1.4.3 and @pyroscope/nodejs 0.6.4.
func TestParseQuery(t *testing.T) {
	now := time.Unix(1795167161, 500)
	for name, tt := range map[string]struct {
		query string
		want  Ingest
	}{
		"pyroscope-go": {
			"aggregationType=average&from=1795174275000000000&name=demo.go.shop%7B__session_id__%3D77e425ea48b3919f%2Cotel.scope.name%3Dcom.grafana.pyroscope%2Fgo%2Cotel.scope.version%3Dv1.4.3%2Cprocess.runtime.name%3Dgo%2Cregion%3Deu-demo-1%7D&sampleRate=0&spyName=gospy&units=goroutines&until=1795174282905099426",
			Ingest{
				Source: Source{
					Service: "demo.go.shop", ScopeName: "com.grafana.pyroscope/go", ScopeVersion: "v1.4.3",
					SessionID: "77e425ea48b3919f",
					Labels:    []Label{{"process.runtime.name", "go"}, {"region", "eu-demo-1"}},
				},
				From: time.Unix(1795174275, 0), Until: time.Unix(0, 1795174282905099426), Units: "goroutines",
				IsAverage: true,
			},
		},
		"node": {
			"format=pprof&from=1795167161&name=demo.node.shop%7Bregion%3Deu%7D&spyName=nodespy&until=1795167165&sampleRate=250",
			Ingest{
				Source: Source{Service: "demo.node.shop", Labels: []Label{{"region", "eu"}}},
				From:   time.Unix(1795167161, 0), Until: time.Unix(1795167165, 0), Format: "pprof", SampleRate: 250,
			},
		},
		"no labels":    {"name=app", Ingest{Source: Source{Service: "app"}}},
		"service_name": {"name=app%7Bservice_name%3Dshop%7D", Ingest{Source: Source{Service: "shop"}}},
		"milliseconds": {"name=app&from=1795167161123&until=1795167161123456",
			Ingest{Source: Source{Service: "app"}, From: time.UnixMilli(1795167161123),
				Until: time.UnixMicro(1795167161123456)}},
		"relative": {"name=app&from=now-1h30m&until=now",
			Ingest{Source: Source{Service: "app"}, From: now.Add(-90 * time.Minute), Until: now}},
		"fraction": {"name=app&from=1795167161.25&until=1795167161123.5", Ingest{Source: Source{Service: "app"},
			From: time.Unix(1795167161, 250e6), Until: time.Unix(1795167161, 123.5e6)}},
		"not relative": {"name=app&from=now-yesterday&until=nowhere", Ingest{Source: Source{Service: "app"}}},
		"spaces": {"name=+app+%7B+a+%3D+b+%7D+", Ingest{Source: Source{Service: "app",
			Labels: []Label{{"a", "b"}}}}},
		"no time":         {"name=app&from=0&until=-1", Ingest{Source: Source{Service: "app"}}},
		"1970 is no time": {"name=app&from=100&until=31535999000", Ingest{Source: Source{Service: "app"}}},
		"a name twice": {"name=app%7Ba%3D1,a%3D2,%7D",
			Ingest{Source: Source{Service: "app", Labels: []Label{{"a", "1"}}}}},
		"a comma in a value": {"name=app%7Bpods%3Da, b%2C,region%3Deu%7D",
			Ingest{Source: Source{Service: "app", Labels: []Label{{"pods", "a, b"}, {"region", "eu"}}}}},
		"an empty service": {"name=app%7Bservice_name%3D%7D", Ingest{Source: Source{Service: "app"}}},
		"the server's own": {"name=app%7B__period_type__%3Dcpu,__delta__%3Dtrue%7D", Ingest{Source: Source{Service: "app"}}},
		"a delta": {"name=app%7B__delta__%3Dfalse%7D",
			Ingest{Source: Source{Service: "app", Temporality: kind.StatedDelta}}},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(tt.query)
			require.NoError(t, err)
			got, err := ParseQuery(query, now)
			require.NoError(t, err)
			assert.True(t, tt.want.From.Equal(got.From) && tt.want.Until.Equal(got.Until), "%v %v", got.From, got.Until)
			assert.NotEmpty(t, got.application)
			got.application = ""
			got.From, got.Until, tt.want.From, tt.want.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			assert.Equal(t, tt.want, got)
		})
	}
	for query, want := range map[string]string{
		"":                       "no name=",
		"name=app%7Ba%3Db":       "closing brace",
		"name=app%7Ba%7D":        "without a value",
		"name=app&sampleRate=-1": "not a number",
		"name=app&temporality=x": "temporality must be delta, gauge or cumulative",
		"name=app%7B" + url.QueryEscape(strings.Repeat("a=b,", 300)) + "%7D": "at most",
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = ParseQuery(values, now)
		assert.ErrorContains(t, err, want)
	}
}

func TestSampleTypeConfig(t *testing.T) {
	for config, want := range map[string]SampleTypeConfig{
		`{"contentions":{"units":"lock_samples","display-name":"block_count"},"delay":{"display-name":"block_duration"}}`:             {ProfileName: "block", Temporality: kind.StatedDelta},
		`{"contentions":{"units":"lock_samples","display-name":"mutex_count"},"delay":{"display-name":"mutex_duration"}}`:             {ProfileName: "mutex", Temporality: kind.StatedDelta},
		`{"delay":{"display-name":"mutex_duration","cumulative":true}}`:                                                               {ProfileName: "mutex", Temporality: kind.StatedCumulative},
		`{"alloc_space":{"units":"bytes","cumulative":true},"inuse_space":{"units":"bytes","aggregation":"average"}}`:                 {Temporality: kind.StatedCumulative},
		`{"goroutine":{"units":"goroutines","aggregation":"average","display-name":"goroutines"},"x":{"cumulative":false,"more":[]}}`: {Temporality: kind.StatedDelta},
		`{"contentions":`: {}, "": {}, `[]`: {}, `{"a":{"cumulative":"yes"}}`: {},
	} {
		assert.Equal(t, want, ParseSampleTypeConfig([]byte(config)), config)
	}
}

func pushRequest() *pushv1.PushRequest {
	return &pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{{
		Labels: []*typesv1.LabelPair{{Name: "__name__", Value: "process_cpu"}, {Name: "service_name", Value: "shop"},
			{Name: "region", Value: "eu"}},
		Samples: []*pushv1.RawSample{{RawProfile: []byte("one"), ID: "1"}, {RawProfile: []byte("two")}},
	}, {Labels: []*typesv1.LabelPair{{Name: "service_name", Value: "cart"}}}}}
}

func TestParsePush(t *testing.T) {
	want := []Series{
		{Source{Service: "shop", ProfileName: "process_cpu", Labels: []Label{{"region", "eu"}}},
			[][]byte{[]byte("one"), []byte("two")}},
		{Source{Service: "cart"}, nil},
	}
	body, err := proto.Marshal(pushRequest())
	require.NoError(t, err)
	got, err := ParsePush(body)
	require.NoError(t, err)
	require.Equal(t, want, got)
	body, err = protojson.Marshal(pushRequest())
	require.NoError(t, err)
	got, err = ParsePushJSON(body)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, other := range [][]byte{[]byte("xx"), {0x0a, 4, 8, 1, 16, 2}} {
		_, err = ParsePush(other) // fields, but none of a PushRequest: the second is how a pprof begins
		require.ErrorContains(t, err, "not a PushRequest")
	}
	_, err = ParsePushJSON([]byte(`{"version": 1}`))
	require.ErrorContains(t, err, "not a PushRequest")
	for _, empty := range []string{"{}", "null", `{"series": []}`, `{"series": null}`} {
		series, err := ParsePushJSON([]byte(empty))
		require.NoError(t, err)
		require.Empty(t, series)
	}
	for _, text := range []string{"/+8=", "/+8", "_-8=", "_-8"} { // in JSON, protobuf allows each form of base64
		series, err := ParsePushJSON([]byte(`{"series": [{"samples": [{"rawProfile": "` + text + `"}]}]}`))
		require.NoError(t, err, text)
		require.Equal(t, [][]byte{{0xff, 0xef}}, series[0].Profiles, text)
	}
	series, err := ParsePush(nil)
	require.NoError(t, err)
	require.Empty(t, series)
	_, err = ParsePush([]byte("hello"))
	require.ErrorIs(t, err, errNotPush)
	_, err = ParsePushJSON([]byte("hello"))
	require.ErrorIs(t, err, errNotPush)
}

func TestParsePushIsBounded(t *testing.T) {
	for _, inputs := range []worst.Inputs{worst.PushV1, worst.PushV1JSON} {
		for _, body := range inputs.All(1 << 20) {
			requireBounded(t, body)
		}
	}
}

func requireBounded(t *testing.T, body []byte) {
	t.Helper()
	var kept []any
	profiletest.RequireCost(t, profiletest.BoundOf(len(body), 4<<20, 56), func() {
		a, err1 := ParsePush(body)
		profiles := 0
		for _, series := range a {
			profiles += len(series.Profiles)
		}
		require.LessOrEqual(t, profiles, maxSeries)
		b, err2 := ParsePushJSON(body)
		kept = []any{a, b, err1, err2, ParseSampleTypeConfig(body)}
	})
	_ = kept
}

func FuzzParse(f *testing.F) {
	body, err := proto.Marshal(pushRequest())
	require.NoError(f, err)
	f.Add(body, "name=app%7Ba%3Db%7D&from=1")
	text, err := json.Marshal(map[string]any{"series": []any{}})
	require.NoError(f, err)
	f.Add(text, "name=x")
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		requireBounded(t, body)
		if values, err := url.ParseQuery(query); err == nil {
			if in, err := ParseQuery(values, time.Unix(1e9, 0)); err == nil && len(in.Labels) > maxLabels {
				t.Fatal("too many labels")
			}
		}
	})
}

// A sample without a profile is an empty profile, in protobuf as in JSON: it counts towards the limit, and its bytes
// are empty.
func TestParsePushWithoutProfiles(t *testing.T) {
	push := func(samples int) []byte {
		message := func(number protowire.Number, content []byte) []byte {
			return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
		}
		id := message(2, message(2, []byte("id")))
		return message(1, bytes.Repeat(id, samples))
	}
	series, err := ParsePush(push(1))
	require.NoError(t, err)
	require.Len(t, series, 1)
	require.Len(t, series[0].Profiles, 1)
	require.Empty(t, series[0].Profiles[0])
	_, err = ParsePush(push(maxSeries + 1))
	require.ErrorContains(t, err, "profiles at most")
}
