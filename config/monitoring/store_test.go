// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// sample is a value at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// scraped is a metric of an instance: what it is at first, and by how much it grows each minute.
type scraped struct {
	name, instance, reason string
	first, grows           float64
}

func (m scraped) series(until time.Duration) storage.Series {
	var samples []chunks.Sample
	for at := time.Duration(0); at <= until; at += time.Minute {
		samples = append(samples, sample{at.Milliseconds(), m.first + m.grows*at.Minutes()})
	}
	return storage.NewListSeries(labels.FromStrings(model.MetricNameLabel, "otelcol_exporter_profile_store_"+m.name,
		"instance", m.instance, "reason", m.reason), samples)
}

// selected is the series that a query selects.
type selected struct {
	series []storage.Series
	next   int
}

func (s *selected) Next() bool                      { s.next++; return s.next <= len(s.series) }
func (s *selected) At() storage.Series              { return s.series[s.next-1] }
func (*selected) Err() error                        { return nil }
func (*selected) Warnings() annotations.Annotations { return nil }

// Each alert on the store fires for the instance whose store has the fault, and for no other: one that leaves a type to another
// exporter, say, or drops profiles whose time is over.
func TestStoreAlertsFire(t *testing.T) {
	const until = 2 * time.Hour
	var all []storage.Series
	for _, m := range []scraped{
		{"refused_items", "bad", "max_series", 0, 1}, {"refused_items", "good", "kept_elsewhere", 0, 7}, {"refused_items", "good", "max_series", 3, 0},
		{"disk_failing", "bad", "", 1, 0}, {"disk_failing", "good", "", 0, 0},
		{"damaged_blocks", "bad", "", 2, 0}, {"damaged_blocks", "good", "", 0, 0},
		{"evicted_profiles", "bad", "bytes", 0, 5}, {"evicted_profiles", "good", "age", 0, 5},
		{"maintenance_age", "bad", "", 0, 60}, {"maintenance_age", "good", "", 10, 0},
	} {
		all = append(all, m.series(until))
	}
	stored := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &selected{series: slices.DeleteFunc(slices.Clone(all), func(s storage.Series) bool {
				return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) })
			})}
		},
	}}

	advice, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	content, err := os.ReadFile("alerts.yaml")
	require.NoError(t, err)
	language := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: time.Minute, Parser: language})
	defer func() { require.NoError(t, engine.Close()) }()
	alerts := 0
	for _, rule := range groups.Groups[0].Rules {
		if !strings.HasPrefix(rule.Alert, "ProfileStore") {
			continue
		}
		alerts++
		require.Contains(t, string(advice), "| `"+rule.Alert+"` |")
		query, err := engine.NewInstantQuery(t.Context(), stored, nil, rule.Expr, time.UnixMilli(until.Milliseconds()))
		require.NoError(t, err)
		firing, err := query.Exec(t.Context()).Vector()
		require.NoError(t, err)
		require.Len(t, firing, 1, rule.Alert)
		require.Equal(t, "bad", firing[0].Metric.Get("instance"), rule.Alert)
		query.Close()
	}
	require.Equal(t, 5, alerts)
}
