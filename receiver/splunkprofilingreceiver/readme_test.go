// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
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

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// tableRows returns the cells of the README's table under a header, without their code marks.
func tableRows(t *testing.T, header string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(readme(t), header+"\n")
	require.True(t, found, header)
	var rows [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "`", ""))
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

// Every code of HEC that the receiver can answer with is explained.
func TestReadmeHECCodes(t *testing.T) {
	var got []string
	for _, row := range tableRows(t, "| status | code | when |") {
		got = append(got, regexp.MustCompile(`\d+`).FindAllString(row[1], -1)...)
	}
	for code := range hec.Texts {
		assert.Contains(t, got, fmt.Sprint(int(code)))
	}
	for _, code := range got {
		assert.True(t, code == "404" ||
			slices.ContainsFunc(hecCodes(), func(c hec.Code) bool { return fmt.Sprint(int(c)) == code }), code)
	}
	assert.Contains(t, readme(t), fmt.Sprintf("more than %d events", hec.MaxEvents))
}

func hecCodes() (codes []hec.Code) {
	for code := range hec.Texts {
		codes = append(codes, code)
	}
	return codes
}

func allReasons() []string {
	reasons := []string{delivery.ReasonNotProfiling, delivery.ReasonRefused}
	for r := range records.NumReasons {
		reasons = append(reasons, records.Reason(r).String())
	}
	return reasons
}

func TestReadmeReasons(t *testing.T) {
	var got []string
	for _, row := range tableRows(t, "| `reason` of a rejected record | |") {
		got = append(got, row[0])
	}
	assert.ElementsMatch(t, allReasons(), got)
	assert.Contains(t, readme(t), "`"+delivery.FaultEventTime+"`")
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
