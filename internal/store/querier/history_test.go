// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// pushed is a pprof as a client pushes it: with a name and labels.
type pushed struct {
	name    string
	labels  map[string]string
	payload []byte
}

// kindOf describes a profile that a program has.
type kindOf struct {
	name   string
	types  [][2]string
	period [2]string
}

var kinds = []kindOf{
	{"process_cpu", [][2]string{{"samples", "count"}, {"cpu", "nanoseconds"}}, [2]string{"cpu", "nanoseconds"}},
	{"memory", [][2]string{{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"},
		{"inuse_space", "bytes"}}, [2]string{"space", "bytes"}},
	{"mutex", [][2]string{{"contentions", "count"}, {"delay", "nanoseconds"}}, [2]string{"contentions", "count"}},
}

// typeIDs are the types of all kinds.
func typeIDs() (ids []string) {
	for _, k := range kinds {
		for _, t := range k.types {
			ids = append(ids, fmt.Sprintf("%s:%s:%s:%s:%s", k.name, t[0], t[1], k.period[0], k.period[1]))
		}
	}
	return ids
}

// history returns what a few services push in the half hour before end: two versions, two pods, sample labels, spans.
func history(r *rand.Rand, end time.Time, intervals int) (list []pushed) {
	for service := range 3 {
		for pod := range 2 {
			for i := range intervals {
				// No two pods share a millisecond: Pyroscope's heat maps add up what a span has in it.
				offset := time.Duration(r.IntN(160)+160*(2*service+pod)) * time.Millisecond
				at := end.Add(-time.Duration(intervals-i) * 15 * time.Second).Add(offset)
				for _, k := range kinds {
					list = append(list, pushed{name: k.name, payload: k.pprof(r, at), labels: map[string]string{
						"service_name": fmt.Sprintf("shop-%d", service), "pod": fmt.Sprintf("pod-%d-%d", service, pod),
						"region": []string{"eu", "us"}[service%2], "service_version": fmt.Sprintf("1.%d", 2*i/intervals),
					}})
				}
			}
		}
	}
	return list
}

// pprof returns a random profile.
func (k kindOf) pprof(r *rand.Rand, at time.Time) []byte {
	p := &profile.Profile{
		TimeNanos: at.UnixNano(), DurationNanos: 15e9, Period: 10_000_000,
		PeriodType: &profile.ValueType{Type: k.period[0], Unit: k.period[1]},
		Mapping:    []*profile.Mapping{{ID: 1, Start: 0x1000, Limit: 0x100000, File: "/bin/shop"}},
	}
	for _, t := range k.types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: t[0], Unit: t[1]})
	}
	const functions = 12
	for i := range functions {
		f := &profile.Function{ID: uint64(i + 1), Name: fmt.Sprintf("main.f%d", i), SystemName: fmt.Sprintf("main.f%d", i),
			Filename: fmt.Sprintf("/src/f%d.go", i%3)}
		p.Function = append(p.Function, f)
		l := &profile.Location{ID: uint64(i + 1), Mapping: p.Mapping[0], Address: 0x1000 + uint64(i)*16,
			Line: []profile.Line{{Function: f, Line: int64(10 + i)}}}
		if i%4 == 3 { // the function before is inlined in it
			l.Line = append([]profile.Line{{Function: p.Function[i-1], Line: 7}}, l.Line...)
		}
		p.Location = append(p.Location, l)
	}
	for range r.IntN(13) {
		s := &profile.Sample{Value: make([]int64, len(k.types))}
		for depth := 1 + r.IntN(6); depth > 0; depth-- {
			s.Location = append(s.Location, p.Location[r.IntN(functions)])
		}
		for i := range s.Value {
			s.Value[i] = int64(max(r.IntN(55)-4, 0)) * 10_000_000
		}
		if k.name == "process_cpu" {
			s.Label = map[string][]string{}
			if r.IntN(2) == 0 {
				s.Label["endpoint"] = []string{[]string{"/cart", "/pay"}[r.IntN(2)]}
			}
			if r.IntN(3) == 0 {
				n := r.IntN(4)
				s.Label["span_id"] = []string{fmt.Sprintf("%016x", n+1)}
				s.Label["trace_id"] = []string{fmt.Sprintf("%032x", n/2+1)}
			}
		}
		p.Sample = append(p.Sample, s)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// keep adds profiles to a store.
func keep(t testing.TB, s *store.Store, list []pushed, now time.Time) {
	t.Helper()
	for _, pd := range messages(t, list) {
		added := s.Add(pd, now)
		require.Zero(t, added.Refused)
		require.Zero(t, added.Moved)
	}
}

// messages returns what a receiver makes of profiles.
func messages(t testing.TB, list []pushed) (all []pprofile.Profiles) {
	t.Helper()
	for _, in := range list {
		pd, _, err := decode.Decode(in.payload, decode.Options{})
		require.NoError(t, err)
		rp := pd.ResourceProfiles().At(0)
		for key, value := range in.labels {
			if key == "service_name" {
				key = "service.name"
			}
			rp.Resource().Attributes().PutStr(key, value)
		}
		rp.ScopeProfiles().At(0).Scope().Attributes().PutStr("pprof.scope.profile_name", in.name)
		all = append(all, pd)
	}
	return all
}

func newStore() *store.Store {
	return store.New(store.Config{Window: 2 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20,
		MaxSeries: 10_000})
}

// captured returns real profiles of the repository, which are pushed a minute before end.
func captured(t testing.TB, end time.Time) (list []pushed) {
	for file, name := range map[string]string{
		"go-cpu-labels": "process_cpu", "go-heap": "memory", "go-mutex": "mutex", "go-goroutine": "goroutine",
		"go-block": "block",
	} {
		payload := profiletest.FileBytes(t, "../../../testdata/pprof/"+file+".pb.gz")
		p := profiletest.ParsePprof(t, payload)
		p.TimeNanos, p.DurationNanos = end.Add(-time.Minute).UnixNano(), 15e9
		var b bytes.Buffer
		require.NoError(t, p.Write(&b))
		list = append(list,
			pushed{name: name, payload: b.Bytes(), labels: map[string]string{"service_name": "captured-" + file}})
	}
	return list
}

// client returns a client of a store.
func client(t testing.TB, s *answers.Querier, now time.Time) (c querierv1connect.QuerierServiceClient, url string) {
	q := &Querier{Store: s, Now: func() time.Time { return now }}
	mux := http.NewServeMux()
	mux.Handle(querierv1connect.NewQuerierServiceHandler(q))
	mux.HandleFunc("GET /pyroscope/", func(w http.ResponseWriter, r *http.Request) {
		render := q.Render
		if r.URL.Path == "/pyroscope/render-diff" {
			render = q.RenderDiff
		}
		var b bytes.Buffer
		contentType, err := render(r.Context(), r.URL.Query(), &b)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(b.Bytes())
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return querierv1connect.NewQuerierServiceClient(server.Client(), server.URL), server.URL
}
