// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Every code of HEC that the receiver can answer with is explained.
func TestReadmeHECCodes(t *testing.T) {
	readme := string(profiletest.ReadFile(t, "README.md"))
	got := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| [\d, ]+ \| ([^|]+) \|`).FindAllStringSubmatch(readme, -1) {
		for _, code := range regexp.MustCompile(`\d+`).FindAllString(row[1], -1) {
			got[code] = true
		}
	}
	want := map[string]bool{"404": true}
	for code := range hec.Texts {
		want[fmt.Sprint(int(code))] = true
	}
	assert.Equal(t, want, got)
	assert.Contains(t, readme, fmt.Sprintf("more than %d events", hec.MaxEvents))
}

func allReasons() []string {
	reasons := []string{delivery.ReasonNotProfiling, delivery.ReasonRefused}
	for r := range records.NumReasons {
		reasons = append(reasons, records.Reason(r).String())
	}
	return reasons
}

func TestReadmeReasons(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| `reason` of a rejected record | |")
	assert.ElementsMatch(t, allReasons(), slices.Collect(maps.Keys(rows)))
	assert.Contains(t, string(profiletest.ReadFile(t, "README.md")), "`"+delivery.FaultEventTime+"`")
}

// TestMetadata compares the values of attributes with the code, and counts a request that has something of everything.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t)
	for attribute, names := range map[string][]string{
		"format": names(records.NumFormats, func(i int) string { return records.Format(i).String() }),
		"type":   names(records.NumTypes, func(i int) string { return records.Type(i).String() }),
		"source": names(records.NumSources, func(i int) string { return records.Source(i).String() }),
	} {
		assert.Equal(t, names, declared.Attributes[attribute].Enum)
	}

	f := newFixture(t, allOfThem+"\nlimits: {max_stack_depth: 1}", false)
	path, err := f.receiver.Shared.newPath("test")
	require.NoError(t, err)
	send := func(ld plog.Logs) {
		reservation := path.Budget.Begin()
		defer reservation.Release()
		_, err := path.Deliver(context.Background(), ld, reservation)
		require.NoError(t, err)
	}
	send(mixed())
	for _, body := range captured(t) {
		send(requestOf(t, body).Logs())
	}
	bad := mixed()
	bad.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr("source.event.period", "often")
	send(plogotlp.NewExportRequestFromLogs(bad).Logs())

	for name := range declared.Telemetry.Metrics {
		assert.Positive(t, f.sum("otelcol_"+name), name)
	}
	assert.ElementsMatch(t, allReasons(), declared.Attributes["record_reason"].Enum)
	assert.EqualValues(t, 1, f.sum("otelcol_receiver_splunk_profiling_repaired", "fault", "event_time"))
	assert.Positive(t, f.sum("otelcol_receiver_splunk_profiling_dropped_samples", "reason", "stack_too_deep"))
}

func names(n int, name func(int) string) (list []string) {
	for i := range n {
		list = append(list, name(i))
	}
	return list
}
