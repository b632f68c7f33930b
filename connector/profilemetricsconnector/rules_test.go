// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/prometheustest"
)

// prometheus evaluates rules over series that have the names of Prometheus' OTLP receiver.
type prometheus struct {
	*prometheustest.Prometheus
	// since has when alerts began to be pending.
	since map[string]time.Time
}

// promName returns the name of a metric in Prometheus' OTLP receiver, which adds the unit, and `total` to what is
// monotonic.
func promName(m pmetric.Metric) string {
	name := strings.ReplaceAll(m.Name(), ".", "_")
	switch {
	case m.Unit() == "s":
		name += "_seconds"
	case m.Unit() == "By":
		name += "_bytes"
	case m.Unit() == "1" && m.Type() == pmetric.MetricTypeGauge:
		name += "_ratio"
	}
	if m.Type() == pmetric.MetricTypeSum {
		name += "_total"
	}
	return name
}

// deliver ends an interval of the connector, and stores what it has made.
func (p *prometheus) deliver(t *testing.T, f *fixture) {
	t.Helper()
	f.flush(t.Context())
	for _, md := range f.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			service, _ := rm.Resource().Attributes().Get("service.name")
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range dataPoints(m).All() {
					b := labels.NewBuilder(labels.EmptyLabels()).Set(model.MetricNameLabel, promName(m)).Set("job", service.Str())
					for key, v := range dp.Attributes().All() {
						b.Set(strings.ReplaceAll(key, ".", "_"), v.AsString())
					}
					p.Store(b.Labels(), dp.Timestamp().AsTime(), valueOf(dp))
				}
			}
		}
	}
	f.sink.Reset()
}

// evaluate evaluates all rules, and returns the alerts that fire: their names, services and functions.
func (p *prometheus) evaluate(t *testing.T, at time.Time) (firing []string) {
	t.Helper()
	for _, group := range p.Groups {
		for _, rule := range group.Rules {
			result := p.Query(t, rule.Expr, at)
			pending := map[string]bool{}
			for _, sample := range result {
				if rule.Record != "" {
					p.Store(labels.NewBuilder(sample.Metric).Set(model.MetricNameLabel, rule.Record).Labels(), at, sample.F)
					continue
				}
				alert := fmt.Sprintf("%s %s %s", rule.Alert, sample.Metric.Get("job"), sample.Metric.Get("code_function_name"))
				pending[alert] = true
				if _, ok := p.since[alert]; !ok {
					p.since[alert] = at
				}
				if at.Sub(p.since[alert]) >= time.Duration(rule.For) {
					firing = append(firing, alert)
				}
			}
			for alert := range p.since {
				if strings.HasPrefix(alert, rule.Alert+" ") && rule.Alert != "" && !pending[alert] {
					delete(p.since, alert)
				}
			}
		}
	}
	return firing
}

// TestRules sends 33 hours of profiles of three services through the connector to Prometheus, which evaluates the
// shipped rules: each fires for the service that gives a reason, after its change, and nothing fires for the calm one.
func TestRules(t *testing.T) {
	profiletest.SkipLarge(t)
	content := profiletest.FileBytes(t, "../../config/monitoring/profiles.yaml")
	const step = 5 * time.Minute
	f := start(t, "{interval: 5m, top_functions: [{profile: process_cpu/cpu, count: 5, compare: {to: 24h}}]}")
	p := &prometheus{prometheustest.Start(t, content), map[string]time.Time{}}
	f.clock.at = f.clock.at.Truncate(time.Hour)
	began := f.clock.at
	fired := map[string]time.Duration{}
	for n := range int(33 * time.Hour / step) {
		since := f.clock.at.Sub(began)
		wobble := int64(n%7) * 40
		calm := map[string]int64{"cart.Add": 3000 + wobble, "json.Marshal": 27_000 - wobble}
		busy := calm
		if since >= 27*time.Hour { // 2.4 processors in place of one, and a quarter of them in a function that had a tenth
			busy = map[string]int64{"cart.Add": 18_000, "json.Marshal": 54_000}
		}
		heap := int64(100<<20) + int64(n%5)<<20
		leak := heap
		if since >= 20*time.Hour {
			leak += int64(since/time.Hour-20) * 10 << 20
		}
		f.consume(t, serviceProfiles("shop", f.clock.at, busy, heap), serviceProfiles("calm", f.clock.at, calm, heap),
			serviceProfiles("leaky", f.clock.at, calm, leak))
		f.clock.at = f.clock.at.Add(step)
		p.deliver(t, f)
		for _, alert := range p.evaluate(t, f.clock.at) {
			if _, ok := fired[alert]; !ok {
				fired[alert] = f.clock.at.Sub(began)
			}
		}
	}
	for alert, after := range map[string]time.Duration{
		"ServiceCPUDoubled shop ": 27 * time.Hour, "FunctionTakesMore shop cart.Add": 27 * time.Hour,
		"LiveHeapGrows leaky ": 25 * time.Hour,
	} {
		if assert.Contains(t, fired, alert) {
			assert.Greater(t, fired[alert], after, alert)
			assert.Less(t, fired[alert], after+100*time.Minute, alert)
			delete(fired, alert)
		}
	}
	assert.Empty(t, fired, "other alerts")
	cpu := p.Query(t, `sum by (job) (rate(profile_cpu_time_seconds_total{job="shop"}[10m]))`, f.clock.at)
	require.Len(t, cpu, 1)
	assert.InDelta(t, 2.4, cpu[0].F, 1e-6)
	share := p.Query(t,
		`sum(profile_function_share_ratio{job="shop", profile_type="process_cpu/cpu", profile_share_of="self"})`, f.clock.at)
	require.Len(t, share, 1)
	assert.InDelta(t, 1, share[0].F, 1e-6)
	if os.Getenv("E2E_PROMETHEUS") != "" { // `make e2e-prometheus`
		p.requirePromtool(t, began, step)
	}
}

// requirePromtool has promtool evaluate the shipped rules for the series, as its tests of rules do.
func (p *prometheus) requirePromtool(t *testing.T, began time.Time, step time.Duration) {
	t.Helper()
	rules, err := filepath.Abs("../../config/monitoring/profiles.yaml")
	require.NoError(t, err)
	type series struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	var input []series
	for _, s := range p.Series {
		if strings.Contains(s.Labels.Get(model.MetricNameLabel), ":") {
			continue // recorded by a rule
		}
		values, next := []string{}, began
		for _, sample := range s.Samples {
			for ; next.UnixMilli() < sample.T(); next = next.Add(step) {
				values = append(values, "_")
			}
			values = append(values, strconv.FormatFloat(sample.F(), 'g', -1, 64))
			next = next.Add(step)
		}
		input = append(input, series{s.Labels.String(), strings.Join(values, " ")})
	}
	type sample struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	}
	firing := func(at string, alerts ...string) map[string]any {
		samples := []sample{}
		for _, labels := range alerts {
			samples = append(samples, sample{"{" + labels + "}", 1})
		}
		return map[string]any{"expr": `count by (alertname, job, code_function_name) (ALERTS{alertstate="firing"})`,
			"eval_time": at, "exp_samples": samples}
	}
	shop, function, leaky := `alertname="ServiceCPUDoubled",job="shop"`,
		`alertname="FunctionTakesMore",job="shop",code_function_name="cart.Add"`, `alertname="LiveHeapGrows",job="leaky"`
	content, err := yaml.Marshal(map[string]any{
		"rule_files": []string{rules}, "evaluation_interval": step.String(),
		"tests": []any{map[string]any{
			"interval": step.String(), "input_series": input,
			"promql_expr_test": []any{firing("26h"), firing("26h50m", leaky), firing("28h30m", shop, function, leaky),
				firing("33h", shop, function, leaky)},
		}},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	out, err := exec.Command(collectortest.PrometheusTool(t, "promtool"), "test", "rules", file).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Logf("promtool, %d series: %s", len(input), out)
}

func serviceProfiles(service string, at time.Time, samples map[string]int64, heap int64) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", service).Profile("cpu", "nanoseconds").Period(10_000_000, "cpu",
		"nanoseconds")
	for _, name := range []string{"cart.Add", "json.Marshal"} {
		b.Sample(profiletest.Value(samples[name]*10_000_000, name, "main.main"))
	}
	b.Profile("inuse_space", "bytes").Time(uint64(at.UnixNano()), 0).
		Sample(profiletest.Value(heap, "cache.Get", "main.main"))
	return b.Build()
}
