// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/prometheustest"
)

// Each alert on the store, refused clients or failed requests fires for the instance that has the fault, and for no
// other: one that leaves a type to another exporter, say, or drops profiles whose time is over, or refused a client
// long ago.
func TestAlertsFire(t *testing.T) {
	const store, until = "otelcol_exporter_profile_store_", 2 * time.Hour
	content := profiletest.FileBytes(t, "alerts.yaml")
	p := prometheustest.Start(t, content)
	// Metrics of an instance: what each is at first, and by how much it grows each minute.
	for _, m := range []struct {
		name, instance, reason string // or status
		first, grows           float64
	}{
		{store + "refused_items", "bad", "max_series", 0, 1}, {store + "refused_items", "good", "kept_elsewhere", 0, 7},
		{store + "refused_items", "good", "max_series", 3, 0},
		{store + "disk_failing", "bad", "", 1, 0}, {store + "disk_failing", "good", "", 0, 0},
		{store + "damaged_blocks", "bad", "", 2, 0}, {store + "damaged_blocks", "good", "", 0, 0},
		{store + "evicted_profiles", "bad", "bytes", 0, 5}, {store + "evicted_profiles", "good", "age", 0, 5},
		{store + "maintenance_age", "bad", "", 0, 60}, {store + "maintenance_age", "good", "", 10, 0},
		{"otelcol_process_refused_connections", "good", "address", 9, 0},
		{"otelcol_process_refused_requests", "good", "all", 9, 0},
		{"otelcol_process_refused_connections", "slow", "address", 0, 0},
		{"otelcol_process_refused_requests", "bad", "all", 0, 2},
		{"otelcol_process_failed_requests", "bad", "413", 0, 2}, {"otelcol_process_failed_requests", "good", "404", 0, 7},
	} {
		series := labels.FromStrings(model.MetricNameLabel, m.name, "instance", m.instance, "reason", m.reason, "status",
			m.reason)
		for at := time.Duration(0); at <= until; at += time.Minute {
			p.Store(series, time.UnixMilli(at.Milliseconds()), m.first+m.grows*at.Minutes())
		}
	}
	advice := profiletest.FileBytes(t, "README.md")
	alerts := 0
	for _, rule := range p.Groups[0].Rules {
		if !strings.HasPrefix(rule.Alert, "ProfileStore") && rule.Alert != "ClientsRefused" && rule.Alert != "RequestsFail" {
			continue
		}
		alerts++
		require.Contains(t, string(advice), "`"+rule.Alert+"`")
		firing := p.Query(t, rule.Expr, time.UnixMilli(until.Milliseconds()))
		require.Len(t, firing, 1, rule.Alert)
		require.Equal(t, "bad", firing[0].Metric.Get("instance"), rule.Alert)
	}
	require.Equal(t, 7, alerts)
}
