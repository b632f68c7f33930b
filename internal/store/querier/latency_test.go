// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// day returns CPU profiles of services for the day before end, one a minute and service. Each service has a fifth of
// the stacks of a large program, and each profile a few of them, mostly the same ones.
func day(t testing.TB, r *rand.Rand, end time.Time, services int) (list []pushed) {
	payload := profiletest.FileBytes(t, "../../../testdata/pprof/go-build-merged-cpu-large.pb.gz")
	all := profiletest.ParsePprof(t, payload)
	for service := range services {
		own := slices.Clone(all.Sample)
		r.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		own = own[:len(own)/5]
		for at := end.Add(-24*time.Hour + time.Minute); at.Before(end); at = at.Add(time.Minute) {
			p := &profile.Profile{
				SampleType: all.SampleType, PeriodType: all.PeriodType, Period: all.Period, Mapping: all.Mapping,
				Location: all.Location, Function: all.Function,
				TimeNanos: at.Add(time.Duration(service) * time.Millisecond).UnixNano(), DurationNanos: 10e9,
			}
			seen := map[int]bool{}
			for range 60 {
				hot := r.Float64()
				if i := int(hot * hot * hot * float64(len(own))); !seen[i] {
					seen[i] = true
					n := 1 + int64(r.ExpFloat64()*3)
					p.Sample = append(p.Sample, &profile.Sample{Location: own[i].Location, Value: []int64{n, n * all.Period}})
				}
			}
			var b bytes.Buffer
			require.NoError(t, p.Compact().Write(&b))
			list = append(list, pushed{name: "process_cpu", payload: b.Bytes(), labels: map[string]string{
				"service_name": fmt.Sprintf("service-%d", service), "region": []string{"eu", "us"}[service%2],
			}})
		}
	}
	return list
}

// TestLatencyBesidePyroscope asks a store that was just opened from its directory, and the Pyroscope that
// E2E_PYROSCOPE_SERVER names, the same queries of a day, and prints the medians: first at the last 00:50 UTC, when the
// day before is in more blocks than at any other time, then when it is one block. It takes minutes, hence it runs only
// with ORACLE_LATENCY, the number of services, set.
func TestLatencyBesidePyroscope(t *testing.T) {
	binary := os.Getenv("E2E_PYROSCOPE_SERVER")
	if binary == "" || os.Getenv("ORACLE_LATENCY") == "" {
		t.Skip("E2E_PYROSCOPE_SERVER names no server, or ORACLE_LATENCY is not set")
	}
	services, err := strconv.Atoi(os.Getenv("ORACLE_LATENCY"))
	require.NoError(t, err)
	const untilJoined = 50 * time.Minute
	now := time.Now().Add(-untilJoined).Truncate(24 * time.Hour).Add(untilJoined)
	list := day(t, rand.New(rand.NewPCG(8, 8)), now, services)
	t.Setenv("E2E_PYROSCOPE_FLAGS", "-validation.reject-older-than=0 -querier.max-query-length=0")
	address := startPyroscope(t, binary)
	begun := time.Now()
	push(t, address, list)
	t.Logf("%d profiles pushed to Pyroscope in %s", len(list), time.Since(begun))

	cfg := store.Config{
		Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20, MaxSeries: 10_000,
		Disk: store.DiskConfig{Directory: t.TempDir(), Retention: 14 * 24 * time.Hour, MaxBytes: 10 << 30,
			Report: func(message string, err error) { t.Log(message, err) }},
	}
	s := store.New(cfg)
	require.NoError(t, s.Open())
	list = withoutTypes(t, list)
	byTime := map[int64][]pushed{}
	for i, in := range list {
		minute := int64(i % (24*60 - 1))
		byTime[minute] = append(byTime[minute], in)
	}
	for minute := range int64(24*60 - 1) {
		at := now.Add(-24*time.Hour + time.Duration(minute+2)*time.Minute)
		keep(t, s, byTime[minute], at)
		if at.Minute() == 0 {
			s.Maintain(at)
		}
	}
	time.Sleep(30 * time.Second) // Pyroscope compacts what is new
	for _, at := range []time.Time{now, now.Add(2 * time.Hour)} {
		s.Maintain(at)
		require.NoError(t, s.Close())
		s = store.New(cfg)
		require.NoError(t, s.Open())
		t.Logf("the store has %d blocks of %d bytes, and %d series in memory", s.Stats().DiskBlocks, s.Stats().DiskBytes,
			s.Stats().Series)
		ours, _ := client(t, s.Querier, now)
		theirs := querierv1connect.NewQuerierServiceClient(http.DefaultClient, address)
		compareLatencies(t, now, []querierv1connect.QuerierServiceClient{theirs, ours})
	}
	require.NoError(t, s.Close())
}

// compareLatencies prints the medians of both.
func compareLatencies(t *testing.T, now time.Time, clients []querierv1connect.QuerierServiceClient) {
	const repeats = 9
	for _, of := range []struct {
		name, selector string
		from           time.Duration
	}{
		{"1 h of a service", `{service_name="service-3"}`, time.Hour}, {"1 h of all", "{}", time.Hour},
		{"24 h of a service", `{service_name="service-3"}`, 24 * time.Hour}, {"24 h of all", "{}", 24 * time.Hour},
	} {
		for _, q := range latencyQueries(of.selector, now.Add(-of.from).UnixMilli(), now.UnixMilli()) {
			var durations [2][]time.Duration
			var answers [2]any
			for range repeats {
				for side, c := range clients {
					begun := time.Now()
					answer, err := q.ask(t.Context(), c)
					durations[side] = append(durations[side], time.Since(begun))
					require.NoError(t, err, q.name)
					answers[side] = answer
				}
			}
			assert.Equal(t, answers[0], answers[1], "%s: %s", of.name, q.name)
			for side := range durations {
				slices.Sort(durations[side])
			}
			a, b := durations[0][repeats/2], durations[1][repeats/2]
			t.Logf("| %s | `%s` | %.1f ms | %.1f ms | %.1f |", of.name, q.name, a.Seconds()*1000, b.Seconds()*1000,
				a.Seconds()/b.Seconds())
		}
	}
}

// latencyQueries are those that Grafana asks of a time.
func latencyQueries(selector string, start, end int64) []question {
	step := max(15, float64(end-start)/1000/1000)
	names := []string{"service_name", "__profile_type__"}
	middle := (start + end) / 2
	return []question{
		asked(calls.ProfileTypes, &querierv1.ProfileTypesRequest{Start: start, End: end}, asJSON),
		asked(calls.LabelValues, &typesv1.LabelValuesRequest{Name: names[0], Matchers: []string{selector}, Start: start,
			End: end}, asJSON),
		asked(calls.Series, &querierv1.SeriesRequest{LabelNames: names, Matchers: []string{selector}, Start: start, End: end},
			func(out *querierv1.SeriesResponse) (any, error) { return len(out.LabelsSet), nil }),
		asked(calls.SelectSeries, &querierv1.SelectSeriesRequest{
			ProfileTypeID: cpuType, LabelSelector: selector, Start: start, End: end, Step: step, GroupBy: names[:1],
		}, pointsOf),
		asked(calls.SelectHeatmap, &querierv1.SelectHeatmapRequest{
			ProfileTypeID: cpuType, LabelSelector: selector, Start: start, End: end, Step: step,
			QueryType: querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_INDIVIDUAL,
		}, func(out *querierv1.SelectHeatmapResponse) (any, error) { return len(out.Series[0].Slots), nil }),
		asked(calls.SelectMergeStacktraces, &querierv1.SelectMergeStacktracesRequest{
			ProfileTypeID: cpuType, LabelSelector: selector, Start: start, End: end,
		}, func(out *querierv1.SelectMergeStacktracesResponse) (any, error) { return out.Flamegraph.Total, nil }),
		//nolint:staticcheck // Grafana's data source calls it
		asked(calls.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{
			ProfileTypeID: cpuType, LabelSelector: selector, Start: start, End: end,
		}, func(out *profilev1.Profile) (any, error) { return pprofTotal(out), nil }),
		asked(calls.Diff, &querierv1.DiffRequest{
			Left: &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: selector, Start: start,
				End: middle},
			Right: &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: selector, Start: middle + 1,
				End: end},
		}, func(out *querierv1.DiffResponse) (any, error) { return out.Flamegraph.Total, nil }),
	}
}
