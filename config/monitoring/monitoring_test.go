// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const root = "../.."

// metric is the declaration of a metric.
type metric struct {
	labels    map[string][]string // with their values, where these are listed
	histogram bool
}

// coreLabels are the labels that the Collector's helpers and Prometheus add. Metadata does not list them.
var coreLabels = []string{"instance", "job", "exported_job", "receiver", "exporter", "processor", "transport",
	"data_type"}

// profileMetrics are those of the connector profile_metrics, by their names in Prometheus. The connector's TestRules
// produces them.
var profileMetrics = []string{
	"profile_cpu_time_seconds_total", "profile_memory_used_bytes", "profile_memory_allocated_bytes_total",
	"profile_lock_wait_time_seconds_total",
	"profile_function_share_ratio", "profile_function_share_change_ratio", "profile_function_share_change_p_value",
	"job:profile_cpu_time_seconds:rate10m", "job:profile_memory_used_bytes:min1h",
}

// declared returns all metrics of this repository's components, and of the Collector's helpers and service.
func declared(t *testing.T) map[string]metric {
	files := profiletest.Glob(t, filepath.Join(root, "*", "*", "metadata.yaml"))
	require.Greater(t, len(files), 8)
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "go.opentelemetry.io/collector/service",
		"go.opentelemetry.io/collector/receiver/receiverhelper", "go.opentelemetry.io/collector/exporter/exporterhelper")
	list.Dir = filepath.Join(root, "cmd", "otelcol-profiles")
	dirs, err := list.Output()
	require.NoError(t, err)
	for dir := range strings.FieldsSeq(string(dirs)) {
		files = append(files, filepath.Join(dir, "metadata.yaml"))
	}
	all := map[string]metric{}
	for _, file := range files {
		content := profiletest.FileBytes(t, file)
		var metadata struct {
			Attributes map[string]struct {
				NameOverride string `yaml:"name_override"`
				Enum         []string
			}
			Telemetry struct {
				Metrics map[string]struct {
					Attributes []string
					Histogram  *struct{}
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(content, &metadata), file)
		for name, declaration := range metadata.Telemetry.Metrics {
			m := metric{labels: map[string][]string{}, histogram: declaration.Histogram != nil}
			for _, label := range coreLabels {
				m.labels[label] = nil
			}
			for _, key := range declaration.Attributes {
				attribute := metadata.Attributes[key]
				if attribute.NameOverride != "" {
					key = attribute.NameOverride
				}
				m.labels[key] = attribute.Enum
			}
			all["otelcol_"+name] = m
		}
	}
	for _, name := range profileMetrics {
		all[name] = metric{labels: map[string][]string{
			"job": nil, "code_function_name": nil, "profile_type": nil, "profile_share_of": {"self", "total"},
			"profile_baseline": nil,
		}}
	}
	for name := range budget.Metrics {
		m := metric{labels: map[string][]string{"part": budget.Parts}}
		for _, label := range coreLabels {
			m.labels[label] = nil
		}
		all[name] = m
	}
	for name, refusal := range httpserver.RefusalMetrics {
		m := metric{labels: maps.Clone(refusal.Attributes)}
		for _, label := range coreLabels {
			m.labels[label] = nil
		}
		all[name] = m
	}
	return all
}

// requireExists parses an expression and compares the metrics and labels in it with what is declared.
func requireExists(t *testing.T, all map[string]metric, expression string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err, expression)
	var used []metric
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, ok := all[selector.Name]
		if !ok {
			m, ok = all[strings.TrimSuffix(selector.Name, "_bucket")]
			ok = ok && m.histogram
		}
		if assert.True(t, ok, "%s in %s", selector.Name, expression) {
			used = append(used, m)
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && assert.Contains(t, m.labels, matcher.Name, expression) {
				requireValues(t, m.labels[matcher.Name], matcher.Value, expression)
			}
		}
		return nil
	})
	require.NotEmpty(t, used, expression)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				for _, m := range used {
					_, ok := m.labels[label]
					assert.True(t, ok || m.histogram && label == "le", "%s in %s", label, expression)
				}
			}
		}
		return nil
	})
}

// requireValues compares the values of a matcher with those that a label can have, if these are listed.
func requireValues(t *testing.T, values []string, pattern, expression string) {
	for value := range strings.SplitSeq(pattern, "|") {
		if len(values) > 0 {
			assert.Contains(t, values, value, expression)
		}
	}
}

func TestAlerts(t *testing.T) { requireRules(t, "alerts.yaml", "| alert | severity | what to do |") }

func TestProfileRules(t *testing.T) {
	requireRules(t, "profiles.yaml", "| alert on services | severity | what to do |")
}

// requireRules reads a file of rules, and compares its alerts with a table of the README.
func requireRules(t *testing.T, file, table string) {
	t.Helper()
	content := profiletest.FileBytes(t, file)
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	all := declared(t)
	readme := profiletest.ReadmeTable(t, "README.md", table)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			requireExists(t, all, rule.Expr)
			if rule.Record != "" {
				continue
			}
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			assert.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"], rule.Alert)
			// The result must still have the labels that a summary uses.
			for _, match := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"], -1) {
				assert.True(t, keeps(t, rule.Expr, match[1]), "%s: %s", rule.Alert, match[1])
			}
			if assert.Contains(t, readme, rule.Alert) {
				assert.Equal(t, rule.Labels["severity"], readme[rule.Alert][1], rule.Alert)
				delete(readme, rule.Alert)
			}
		}
	}
	assert.Empty(t, readme)
}

// keeps reports whether the result of an expression still has a label.
func keeps(t *testing.T, expression, label string) bool {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err)
	kept := true
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok && !slices.Contains(aggregate.Grouping, label) {
			kept = false
		}
		return nil
	})
	return kept
}

func TestDashboard(t *testing.T) {
	content := profiletest.FileBytes(t, "dashboard.json")
	var dashboard struct {
		Title, UID string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(content, &dashboard))
	all := declared(t)
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		assert.False(t, ids[panel.ID], panel.Title)
		ids[panel.ID] = true
		assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			expression := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(target.Expr)
			requireExists(t, all, expression)
			for _, match := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.True(t, keeps(t, expression, match[1]), "%s: %s", panel.Title, match[1])
			}
		}
	}
	for _, variable := range dashboard.Templating.List {
		if variable.Definition != "" {
			name := regexp.MustCompile(`^label_values\((\w+), \w+\)$`).FindStringSubmatch(variable.Definition)
			require.Len(t, name, 2, variable.Definition)
			assert.Contains(t, all, name[1])
		}
	}
}
