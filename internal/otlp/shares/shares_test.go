// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// simulate measures a share in clusters of 100 observations. In each cluster the true share is drawn anew around p:
// burst is its standard deviation.
func simulate(rnd *rand.Rand, clusters int, p, burst float64) Share {
	var w Whole
	var part Part
	for range clusters {
		own := min(max(p+burst*rnd.NormFloat64(), 0), 1)
		hits := 0.0
		for range 100 {
			if rnd.Float64() < own {
				hits++
			}
		}
		w.Add(100, 100)
		part.Add(hits, 100)
	}
	return w.Measure(part)
}

// TestPValueIsRight compares how often the test is wrong with the level that it states, and how often it sees 10
// points.
func TestPValueIsRight(t *testing.T) {
	const runs, level = 4000, 0.01
	for name, c := range map[string]struct {
		clusters           int
		p, burst, growth   float64
		atLeast, atMost    float64
		withoutClusterRule bool
	}{
		"independent":              {clusters: 20, p: 0.2, atMost: 0.015},
		"rare":                     {clusters: 20, p: 0.01, atMost: 0.015},
		"bursts":                   {clusters: 20, p: 0.2, burst: 0.1, atMost: 0.025},
		"bursts in few clusters":   {clusters: 10, p: 0.2, burst: 0.1, atMost: 0.04},
		"10 points more":           {clusters: 20, p: 0.2, growth: 0.1, atLeast: 0.99, atMost: 1},
		"10 points more in bursts": {clusters: 20, p: 0.2, burst: 0.1, growth: 0.1, atLeast: 0.6, atMost: 1},
		"a binomial test of bursts is wrong": {clusters: 20, p: 0.2, burst: 0.1, withoutClusterRule: true, atLeast: 0.1,
			atMost: 1},
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		found := 0
		for range runs {
			before, now := simulate(rnd, c.clusters, c.p, c.burst), simulate(rnd, c.clusters, c.p+c.growth, c.burst)
			if c.withoutClusterRule {
				for _, s := range []*Share{&before, &now} {
					s.Variance = s.Value * (1 - s.Value) / s.Observations
				}
			}
			if PValue(before, now) < level {
				found++
			}
		}
		rate := float64(found) / runs
		t.Logf("%s: %.4f", name, rate)
		assert.GreaterOrEqual(t, rate, c.atLeast, name)
		assert.LessOrEqual(t, rate, c.atMost, name)
	}
}

func TestPValueOfLittle(t *testing.T) {
	var none, few Whole
	few.Add(3, 3)
	assert.Greater(t, PValue(none.Measure(Part{}), few.Measure(Part{Sum: 3, Squares: 9, Cross: 9})), 0.1)
	assert.Greater(t, PValue(few.Measure(Part{}), few.Measure(Part{Sum: 3, Squares: 9, Cross: 9})), 0.01,
		"3 of 3 after 0 of 3")
	assert.InDelta(t, 1.0, PValue(Share{}, Share{}), 0)
	var many Whole
	many.Add(1e4, 1e4)
	assert.InDelta(t, 0.0, PValue(many.Measure(Part{}), many.Measure(Part{Sum: 1e3, Squares: 1e6, Cross: 1e7})), 1e-9)
}

func TestObservations(t *testing.T) {
	assert.InDelta(t, 7.0, WeightingOf("samples", "count", 10_000_000, "nanoseconds").Observations(7, 9), 0)
	assert.InDelta(t, 7.0, WeightingOf("cpu", "nanoseconds", 10_000_000, "nanoseconds").Observations(7e7, 9), 0)
	kish := WeightingOf("delay", "nanoseconds", 1, "count")
	assert.InDelta(t, 4.0, kish.Observations(40, 400), 1e-9, "four equal values")
	assert.InDelta(t, 1.0, kish.Observations(1003, 1e6+3), 0.01, "one that outweighs the others")
	assert.Zero(t, kish.Observations(0, 0))
	assert.False(t, math.IsNaN(WeightingOf("x", "", 0, "").Observations(0, 0)))
}
