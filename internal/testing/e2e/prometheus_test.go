// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The live test has a day of a minute, an hour of six seconds, and six seconds for the range of a rate.
const (
	shortDay  = time.Minute
	shortHour = 6 * time.Second
)

// otlpReceiver is the flag by which Prometheus takes OTLP; versions before 2.47 do not.
const otlpReceiver = "web.enable-otlp-receiver"

var shortTimes = strings.NewReplacer(
	"[10m]", "[6s]", "[1h:2m]", "[6s:1s]", "offset 1d", "offset 60s", `"24h"`, `"1m"`,
	"offset 1h", "offset 6s", "offset 2h", "offset 12s", "offset 3h", "offset 18s", "offset 4h", "offset 24s", "offset 5h",
	"offset 30s",
	"for: 10m", "for: 3s", "for: 15m", "for: 4s",
	// The shipped rules are loaded, too.
	"job:profile", "short:profile", "name: otelcol-profiles-services", "name: short",
)

// TestPrometheus runs Prometheus with the shipped rules, config/agent.yaml with its lines of profile_metrics, which
// sends to Prometheus' OTLP receiver, and three services. Prometheus evaluates all shipped rules, and those of
// profiles.yaml once more with short times: each alert must fire for the service that causes it, and only for that.
func TestPrometheus(t *testing.T) {
	ifPossible := collectortest.WantedBy(t, "E2E_PROMETHEUS")
	program := collectortest.PrometheusTool(t, "prometheus")
	if help, _ := run("", nil, program, "--help"); ifPossible && !strings.Contains(help, otlpReceiver) {
		t.Skipf("SKIPPED: %s has no flag %s; `make e2e-prometheus` builds one that has", program, otlpReceiver)
	}
	rules := shortRules(t)
	to := startBackend(t)
	address, metrics := freeAddress(t), freeAddress(t)
	startPrometheus(t, program, address, metrics, rules)
	_, port, err := net.SplitHostPort(metrics)
	require.NoError(t, err)
	agent := startBatching(t, withMetrics(t, address), "BACKEND_ENDPOINT="+to.address, "METRICS_PORT="+port)

	alerts := []string{"FunctionTakesMore shop cart.Add", "LiveHeapGrows leaky ", "ServiceCPUDoubled shop "}
	const ever = `count by (alertname, job, code_function_name) (max_over_time(ALERTS{alertstate="firing"}[10m]))`
	began, last := time.Now(), time.Now()
	var fired []string
	client := dial(t, agent.otlp)
	for len(fired) < len(alerts) || time.Since(began) < shortDay+5*shortHour {
		require.Less(t, time.Since(began), 3*shortDay, "of %q only %q have fired", alerts, fired)
		time.Sleep(time.Until(last.Add(time.Second)))
		now := time.Now()
		pushServices(t, client, now.Sub(began), now.Sub(last))
		last = now
		fired = queryPrometheus(t, address, ever)
		if now.Sub(began) < shortDay {
			require.Empty(t, slices.DeleteFunc(slices.Clone(fired), func(alert string) bool {
				return strings.HasPrefix(alert, "LiveHeapGrows leaky")
			}))
		}
	}
	require.Equal(t, alerts, fired)
	t.Logf("fired after %s: %q", time.Since(began).Round(time.Second), fired)

	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(requireGet(t, "http://"+address+"/api/v1/rules")), &answer))
	evaluated := 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			require.Equal(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			evaluated++
		}
	}
	t.Logf("%d rules are evaluated without an error", evaluated)
	require.Greater(t, evaluated, 2*len(alerts))
}

// pushServices pushes what three services did in the time since the last push. After a short day, shop takes five times
// as many processors, and a quarter of them in a function that had a tenth. After a half, leaky begins to leak.
func pushServices(t *testing.T, client pprofileotlp.GRPCClient, since, elapsed time.Duration) {
	t.Helper()
	const heap = 100 << 20
	calm := map[string]float64{"cart.Add": 0.1, "json.Marshal": 0.9}
	busy, leak := calm, int64(heap)
	if since > shortDay {
		busy = map[string]float64{"cart.Add": 1.25, "json.Marshal": 3.75}
	}
	if since > shortDay/2 {
		leak += int64((since - shortDay/2).Seconds() * (3 << 20))
	}
	send := func(service string, processors map[string]float64, heap int64) {
		now := uint64(time.Now().UnixNano())
		b := profiletest.New().Resource("service.name", service).Profile("cpu", "nanoseconds").Period(10_000_000, "cpu",
			"nanoseconds").
			Time(now-uint64(elapsed), uint64(elapsed))
		for _, name := range []string{"cart.Add", "json.Marshal"} {
			b.Sample(profiletest.Value(int64(processors[name]*float64(elapsed)), name, "main.main"))
		}
		b.Profile("inuse_space", "bytes").Time(now, 0).Sample(profiletest.Value(heap, "cache.Get", "main.main"))
		require.NoError(t, export(client, b.Build()))
	}
	send("calm", calm, heap)
	send("shop", busy, heap)
	send("leaky", calm, leak)
}

// shortRules writes profiles.yaml with short times.
func shortRules(t *testing.T) string {
	t.Helper()
	content := profiletest.FileBytes(t, filepath.Join(repository, "config", "monitoring", "profiles.yaml"))
	short := shortTimes.Replace(string(content))
	require.NotRegexp(t, `[^"]\b\d+[mhd]\b`,
		regexp.MustCompile(`#.*|(summary|description):.*`).ReplaceAllString(short, ""), "times that are not short")
	return newFile(t, "short.yaml", []byte(short))
}

// withMetrics writes config/agent.yaml with its lines of profile_metrics, short times, and Prometheus at an address.
func withMetrics(t *testing.T, address string) string {
	t.Helper()
	short := strings.NewReplacer("  profile_metrics:\n", "  profile_metrics:\n    interval: 1s\n",
		"compare: {to: 24h}", fmt.Sprintf("window: %s, compare: {to: %s}", shortHour, shortDay), "localhost:9090", address)
	return newFile(t, "agent.yaml",
		[]byte(short.Replace(collectortest.Uncommented(t, agentConfig, collectortest.Metrics))))
}

// startPrometheus starts Prometheus at an address with the shipped rules and other ones. It scrapes the collector's own
// metrics.
func startPrometheus(t *testing.T, program, address, metrics, rules string) {
	t.Helper()
	monitoring, err := filepath.Abs(filepath.Join(repository, "config", "monitoring"))
	require.NoError(t, err)
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q, %q, %q]
scrape_configs: [{job_name: collector, static_configs: [{targets: [%q]}]}]
`, filepath.Join(monitoring, "alerts.yaml"), filepath.Join(monitoring, "profiles.yaml"), rules, metrics)
	collectortest.Start(t, exec.Command(program, "--config.file="+newFile(t, "prometheus.yaml", []byte(config)),
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address, "--"+otlpReceiver, "--query.lookback-delta=5s"), "prometheus")
	require.Eventually(t, func() bool {
		_, err := get("http://" + address + "/-/ready")
		return err == nil
	}, startTimeout, 50*time.Millisecond, "Prometheus is ready")
}

// queryPrometheus returns the alerts, services and functions of a query's results.
func queryPrometheus(t *testing.T, address, query string) (list []string) {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	body := requireGet(t, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query))
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	for _, r := range answer.Data.Result {
		list = append(list, fmt.Sprintf("%s %s %s", r.Metric["alertname"], r.Metric["job"], r.Metric["code_function_name"]))
	}
	slices.Sort(list)
	return list
}
