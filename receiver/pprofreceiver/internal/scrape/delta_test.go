// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"bytes"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// withValues returns a block profile of two stacks, or of none.
func withValues(t testing.TB, values []int64) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "contentions", Unit: "count"}, {Type: "delay", Unit: "nanoseconds"}},
		TimeNanos:  time.Now().UnixNano(),
	}
	for i, v := range values {
		function := &profile.Function{ID: uint64(i) + 1, Name: string(rune('a' + i))}
		location := &profile.Location{ID: uint64(i) + 1, Address: uint64(i) + 1, Line: []profile.Line{{Function: function}}}
		p.Function, p.Location = append(p.Function, function), append(p.Location, location)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{location}, Value: []int64{v, 10 * v}})
	}
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return b.Bytes()
}

// total adds up the values of a sample type.
func total(pd pprofile.Profiles, sampleType string) (sum int64) {
	for o := range profiletest.Observations(pd) {
		if o.SampleType == sampleType {
			sum += o.Value
		}
	}
	return sum
}

// counting serves totals: 100 for the first request, and 5 more for each further one.
func counting(t *testing.T) (*sourcetest.Site, *atomic.Int64) {
	count := new(atomic.Int64)
	count.Store(95)
	return sourcetest.NewSite(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(withValues(t, []int64{count.Add(5), 7}))
	}), count
}

func TestScrapeDelta(t *testing.T) {
	site, _ := counting(t)
	target := scrapeTargetOf(t, site.URL, "/block")
	target.Endpoints[0].Profile.Delta = true
	f := newFixture(t, 0, nil).begin(target)
	for _, pd := range f.Await(5)[:5] {
		assert.Equal(t, int64(5), total(pd, "contentions"),
			"the first scrape delivers nothing, the others deliver what is new")
		assert.Equal(t, int64(50), total(pd, "delay"))
		profile := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		assert.Positive(t, profile.DurationNano())
		assert.WithinDuration(t, time.Now(), profile.Time().AsTime(), sourcetest.Patience)
	}
	assert.Positive(t, f.Sum(metricScrapeBaseline, "job", "shop"))
	assert.Equal(t, int64(1), f.Sum(metricScrapes, "outcome", outcomeNoSamples))

	// The state of a target is dropped when it vanishes.
	f.find()
	f.eventually(func() bool { return f.Sum(metricScrapeBaseline, "job", "shop") == 0 })
	// When it is back, it has no baseline.
	f.find(target)
	f.eventually(func() bool { return f.Sum(metricScrapes, "outcome", outcomeNoSamples) == 2 })
	assert.Zero(t, f.Sum(metricScrapeRestarts))
}

// What a target serves as differences is not subtracted again, and what it says about states, neither.
func TestScrapeOfDifferences(t *testing.T) {
	const recording = 20 * time.Millisecond
	for name, tc := range map[string]struct {
		path      string
		change    func(*targets.Endpoint)
		want      kind.Values
		isWhole   bool
		wantState kind.Values
	}{
		"godeltaprof": {"/delta_heap", func(*targets.Endpoint) {}, kind.Delta, true, kind.Gauge},
		"totals":      {"/heap", func(*targets.Endpoint) {}, kind.Delta, false, kind.Gauge},
		"stated": {"/heap", func(e *targets.Endpoint) { e.Profile.Temporality = kind.StatedDelta }, kind.Delta,
			true, kind.Gauge},
		"stated as states": {"/heap", func(e *targets.Endpoint) { e.Profile.Temporality = kind.StatedGauge }, kind.Gauge,
			true, kind.Gauge},
		"?seconds=": {"/heap?seconds=", func(e *targets.Endpoint) {
			e.Recording, e.Profile.Delta = recording, false
		}, kind.Delta, true, kind.Delta},
		"?seconds=, which the target ignores": {"/heap", func(e *targets.Endpoint) {
			e.Recording, e.Profile.Delta = time.Minute, false
		}, kind.Cumulative, true, kind.Gauge},
	} {
		t.Run(name, func(t *testing.T) {
			site := sourcetest.NewSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("seconds") {
					time.Sleep(recording)
				}
				heap := &profile.Profile{
					SampleType: []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
					TimeNanos:  time.Now().UnixNano(),
					Sample:     []*profile.Sample{{Value: []int64{100, 10}}},
				}
				_ = heap.Write(w)
			})
			target := scrapeTargetOf(t, site.URL, tc.path)
			target.Endpoints[0].Profile.Delta = true
			tc.change(&target.Endpoints[0])
			f := newFixture(t, 0, nil).begin(target)
			for _, pd := range f.Await(3)[:3] {
				assert.Equal(t, tc.isWhole, total(pd, "alloc_space") == 100, "totals of 100 each are a difference of 0")
				for p := range otlp.Profiles(pd) {
					want := tc.want
					if pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) == "inuse_space" {
						want = tc.wantState
					}
					assert.Equal(t, want, kind.ValuesOfProfile(p, pd.Dictionary()))
				}
			}
		})
	}
}

// A difference that the pipeline refuses for now is a part of the next one; one that it refuses permanently is not.
func TestScrapeDeltaOfRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int64
	}{
		"for now":  {errors.New("full"), 20},
		"for good": {consumererror.NewPermanent(errors.New("never")), 5},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := counting(t)
			target := scrapeTargetOf(t, site.URL, "/block")
			target.Endpoints[0].Profile.Delta = true
			f := newFixture(t, 0, nil)
			f.Next.Err = func(n int) error {
				if n < 3 {
					return tc.err
				}
				return nil
			}
			f.begin(target)
			assert.Equal(t, tc.want, total(f.Await(1)[0], "contentions"))
		})
	}
}

func TestScrapeDeltaOfARestart(t *testing.T) {
	site, count := counting(t)
	target := scrapeTargetOf(t, site.URL, "/block")
	target.Endpoints[0].Profile.Delta = true
	f := newFixture(t, 0, nil).begin(target)
	f.Await(2)
	count.Store(1)
	f.eventually(func() bool { return f.Sum(metricScrapeRestarts, "profile", "block", "reason", "value_fell") == 1 })
	n := len(f.Next.All())
	for _, pd := range f.Await(n + 2) {
		assert.Equal(t, int64(5), total(pd, "contentions"))
	}
}

// Totals of several processes behind one address are told, a restart is not.
func TestScrapeDeltaOfSeveralProcesses(t *testing.T) {
	const line = "totals of a target fall again and again"
	var asked, several atomic.Int64
	site := sourcetest.NewSite(t, func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		_, _ = w.Write(withValues(t, []int64{n + 1000*(n%2)*several.Load(), 7}))
	})
	target := scrapeTargetOf(t, site.URL, "/block")
	target.Endpoints[0].Profile.Delta = true
	f := newFixture(t, 0, nil).begin(target)
	f.Await(2)
	asked.Store(0)
	f.eventually(func() bool { return f.Sum(metricScrapeRestarts) == 1 })
	f.Await(len(f.Next.All()) + 2)
	assert.Zero(t, f.Logs.FilterMessageSnippet(line).Len())
	several.Store(1)
	lines := f.AwaitLog(1, line)
	assert.Equal(t, "block", lines[0].ContextMap()["profile"])
	assert.Equal(t, "value_fell", lines[0].ContextMap()["reason"])
}

// A target that vanishes while it is scraped leaves no baseline.
func TestScrapeDeltaOfAVanishedTarget(t *testing.T) {
	var asked atomic.Int64
	entered := make(chan struct{}, 10)
	hangs := hang(entered)
	site := sourcetest.NewSite(t, func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); n > 2 {
			hangs(w, r)
			return
		}
		_, _ = w.Write(withValues(t, []int64{5}))
	})
	target := scrapeTargetOf(t, site.URL, "/block")
	target.Endpoints[0].Profile.Delta = true
	f := newFixture(t, 0, nil).begin(target)
	<-entered
	assert.Positive(t, f.Sum(metricScrapeBaseline, "job", "shop"))
	f.find()
	f.eventually(func() bool { return f.Sum(metricScrapeBaseline, "job", "shop") == 0 })
}
