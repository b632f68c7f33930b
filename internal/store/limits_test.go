// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/querier"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/storetest"
)

// Of what is equally large, limits leave out the same, in whatever order it comes and whichever blocks have it.
func TestLimitsDoNotDependOnTheOrder(t *testing.T) {
	var profiles []pprofile.Profiles
	for i := range 24 {
		start := uint64(storetest.At(300 * i)) // two hours
		b := profiletest.New().Resource("service.name", "shop", "service.instance.id", fmt.Sprint(7*i%5)).
			Profile("cpu", "nanoseconds").Time(start, 1e9).
			Sample(profiletest.Value(10, fmt.Sprint("leaf", 11*i%24), fmt.Sprint("caller", 7*i%5)))
		event := profiletest.Value(1000, "wait").With(profiletest.Attr("thread.name", fmt.Sprint("thread ", 5*i%24)))
		event.Timestamps = []uint64{uint64(storetest.At(300*(i/2))) + 2000}
		b.Profile("off_cpu", "nanoseconds").Time(start, 1e9).Sample(event)
		profiles = append(profiles, b.Build())
	}
	now := storetest.Noon.Add(2 * time.Hour)
	answersOf := func(s *store.Store) (list []string) {
		for _, nodes := range []int{2, 4, 9, 17} {
			g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, nodes)
			require.NoError(t, err)
			for i := range g.Frame[1:] {
				list = append(list, fmt.Sprint(g.Frames[g.Frame[i+1]].Name, g.Parent[i+1], g.Total[i+1]))
			}
			e, err := s.Events(t.Context(), model.Selection{Service: "shop"}, nodes)
			require.NoError(t, err)
			for _, event := range e.List {
				list = append(list, fmt.Sprint(e.Lanes[event.Lane], event.Start))
			}
		}
		q := querier.Querier{Store: s.Querier, Now: func() time.Time { return now }}
		series, err := q.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
			ProfileTypeID: "process_cpu:cpu:nanoseconds::", LabelSelector: "{}", Start: storetest.Noon.UnixMilli(),
			End: now.UnixMilli(), Step: 7200, ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL,
		}))
		require.NoError(t, err)
		for _, p := range series.Msg.Series[0].Points {
			list = append(list, p.Exemplars[0].ProfileId)
		}
		return list
	}
	cfg := store.MemoryConfig()
	cfg.Window = 3 * time.Hour
	memory, disk := store.New(cfg), open(t, store.DirectoryConfig(t, t.TempDir()))
	for i, pd := range profiles {
		require.Zero(t, disk.Add(pd, storetest.Noon.Add(time.Duration(i)*5*time.Minute)).Refused)
		require.Zero(t, memory.Add(profiles[len(profiles)-1-i], now).Refused)
	}
	want := answersOf(memory)
	for _, hours := range []int{2, 3, 9, 40} {
		disk.Maintain(storetest.Noon.Add(time.Duration(hours) * time.Hour))
		require.Equal(t, want, answersOf(disk), "after %d hours", hours)
	}
	require.NoError(t, disk.Close())
}
