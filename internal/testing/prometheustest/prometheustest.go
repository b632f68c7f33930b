// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheustest is Prometheus' parser of rules and its query engine, over series in memory. Prometheus'
// database and its receiver need the clients of three clouds to compile, which this module is not to depend on.
package prometheustest

import (
	"log/slog"
	"slices"
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

// Prometheus has rules, and answers queries over series in memory.
type Prometheus struct {
	Groups []rulefmt.RuleGroup
	// Series are by their labels' String.
	Series map[string]*Series
	engine *promql.Engine
}

// Series is a series with its samples, oldest first.
type Series struct {
	Labels  labels.Labels
	Samples []chunks.Sample
}

// Start reads a file of rules. The engine ends with the test.
func Start(t *testing.T, rules []byte) *Prometheus {
	t.Helper()
	language := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.Parse(rules, false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	p := &Prometheus{Groups: groups.Groups, Series: map[string]*Series{}}
	p.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute,
		LookbackDelta: 5 * time.Minute, Parser: language})
	t.Cleanup(func() { require.NoError(t, p.engine.Close()) })
	return p
}

// Store adds a sample to a series. It must be newer than those that the series has.
func (p *Prometheus) Store(of labels.Labels, at time.Time, value float64) {
	s := p.Series[of.String()]
	if s == nil {
		s = &Series{Labels: of}
		p.Series[of.String()] = s
	}
	s.Samples = append(s.Samples, stored{at.UnixMilli(), value})
}

// Query evaluates an expression.
func (p *Prometheus) Query(t *testing.T, query string, at time.Time) promql.Vector {
	t.Helper()
	q, err := p.engine.NewInstantQuery(t.Context(), p, nil, query, at)
	require.NoError(t, err)
	defer q.Close()
	result := q.Exec(t.Context())
	require.NoError(t, result.Err, query)
	v, err := result.Vector()
	require.NoError(t, err)
	return slices.Clone(v)
}

// Querier returns what the engine selects series from.
func (p *Prometheus) Querier(mint, maxt int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints,
		matchers ...*labels.Matcher) storage.SeriesSet {
		return p.series(mint, maxt, matchers)
	}}, nil
}

// stored is a sample of a series.
type stored struct {
	at    int64
	value float64
}

func (s stored) T() int64                      { return s.at }
func (s stored) ST() int64                     { return 0 }
func (s stored) F() float64                    { return s.value }
func (s stored) H() *histogram.Histogram       { return nil }
func (s stored) FH() *histogram.FloatHistogram { return nil }
func (s stored) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s stored) Copy() chunks.Sample           { return s }

// series returns the series that match, with their samples between two times.
func (p *Prometheus) series(mint, maxt int64, matchers []*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range p.Series {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels.Get(m.Name)) }) {
			continue
		}
		at := func(t int64) int {
			i, _ := slices.BinarySearchFunc(s.Samples, t, func(s chunks.Sample, t int64) int { return int(s.T() - t) })
			return i
		}
		if samples := s.Samples[at(mint):at(maxt+1)]; len(samples) > 0 {
			found = append(found, storage.NewListSeries(s.Labels, samples))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &list{series: found, at: -1}
}

type list struct {
	series []storage.Series
	at     int
}

func (l *list) Next() bool                      { l.at++; return l.at < len(l.series) }
func (l *list) At() storage.Series              { return l.series[l.at] }
func (*list) Err() error                        { return nil }
func (*list) Warnings() annotations.Annotations { return nil }
