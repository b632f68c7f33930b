// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// The states, outcomes and reasons are those that metadata.yaml lists.
func TestMetadata(t *testing.T) {
	t.Chdir("../..")
	declared := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, allStates, declared["state"].Enum)
	var reasons []string
	for why := range targets.NumDropReasons {
		reasons = append(reasons, why.String())
	}
	assert.Equal(t, reasons, declared["target_reason"].Enum)
	assert.Contains(t, declared["restart_reason"].Enum, restartTooManyStacks)
	for why := decode.RestartNone + 1; int(why) < decode.NumRestartReasons; why++ {
		assert.Contains(t, declared["restart_reason"].Enum, why.String())
	}
}

// The gauges follow what discovery reports. Targets that are not valid are logged once.
func TestScrapeGauges(t *testing.T) {
	entered := make(chan struct{}, 10)
	site := sourcetest.NewSite(t, hang(entered))
	f := newFixture(t, 0, nil).begin()
	target := scrapeTargetOf(t, site.URL, "/memory")
	report := targets.JobReport{Job: "shop", Discovered: 9}
	report.Dropped[targets.DropRelabelled], report.Dropped[targets.DropInvalid] = 5, 3
	report.Examples = []targets.Dropped{{Reason: targets.DropRelabelled}, {Reason: targets.DropInvalid, Detail: "the fault"}}
	for range 2 {
		f.report(targets.Update{Targets: []*targets.Target{target}, Jobs: []targets.JobReport{report}})
	}
	<-entered
	logged := f.Logs.FilterMessageSnippet("not valid, and not scraped").All()
	require.Len(t, logged, 1)
	assert.Equal(t, "the fault", logged[0].ContextMap()["error"])
	assert.Equal(t, "shop", logged[0].ContextMap()["job"])
	assert.Equal(t, int64(1), f.Sum(metricScrapeTargets, "job", "shop", "state", stateUnknown))
	assert.Equal(t, int64(5), f.Sum(metricScrapeDropped, "job", "shop", "reason", "relabelled"))
	assert.Equal(t, int64(3), f.Sum(metricScrapeDropped, "job", "shop", "reason", "invalid"))
	assert.Equal(t, int64(1), f.Sum(metricScrapeRequests, "job", "shop"))
	f.find()
	f.eventually(func() bool { return f.Sum(metricScrapeRequests, "job", "shop") == 0 })
	assert.Zero(t, f.Sum(metricScrapeTargets))
	assert.Zero(t, f.Sum(metricScrapeDropped))
}

func TestScrapeLogIsBounded(t *testing.T) {
	f := newFixture(t, 0, nil).begin()
	job := f.scraper.schedule.jobs["shop"]
	for range 2000 {
		job.note(stateChange{reason: "unreachable", begins: true, isLogged: true}, "memory", "u", assert.AnError)
	}
	job.note(stateChange{reason: "timeout", isLogged: true}, "memory", "u", nil)
	lines := f.Logs.FilterMessageSnippet("scrape failed").All()
	require.Len(t, lines, logLimits.Lines)
	assert.Contains(t, lines[logLimits.Lines-1].ContextMap(), "suppressing_more_for")
	assert.Zero(t, f.Logs.FilterMessageSnippet("succeeds again").Len())
}
