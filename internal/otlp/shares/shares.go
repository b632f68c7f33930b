// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package shares measures which share of a profile a function has, and whether two shares differ by more than chance.
//
// A profile is a sample of what a program does, so that a share has a variance. There are two estimates of it, and the
// larger one counts:
//
//   - that of a binomial distribution, p(1−p)/n over n observations, with Agresti and Caffo's addition of one
//     observation of each kind; - that between clusters: profiles of one service, whose observations depend on each
//     other since a program does different things at different times. For a share p = Σx/ΣN over clusters it is
//     k/(k−1) · Σ(x−pN)² / (ΣN)², as for a ratio of sums.
//
// PValue is the two-sided z-test of the difference of two shares. A function's share is compared with its own, so
// nothing is corrected for the number of functions.
package shares

import "math"

// Whole sums up the clusters of one side of a comparison.
type Whole struct {
	// Total is the sum of all values, Squares that of the squares of the clusters' totals.
	Total, Squares float64
	// Observations is how many samples the profiler has taken.
	Observations float64
	Clusters     int
}

// Add adds a cluster.
func (w *Whole) Add(total, observations float64) {
	w.Total += total
	w.Squares += total * total
	w.Observations += observations
	w.Clusters++
}

// Part sums up what the same clusters have of one function.
type Part struct {
	// Sum is the sum of its values, Squares that of their squares, Cross that of their products with the clusters' totals.
	Sum, Squares, Cross float64
}

// Add adds what a cluster of a total has.
func (p *Part) Add(value, total float64) {
	p.Sum += value
	p.Squares += value * value
	p.Cross += value * total
}

// Share is a measured share.
type Share struct {
	Value, Variance, Observations float64
}

// Measure returns the share of a part.
func (w *Whole) Measure(p Part) Share {
	if w.Total <= 0 {
		return Share{Variance: 1}
	}
	s := Share{Value: p.Sum / w.Total, Observations: w.Observations}
	adjusted := s.adjusted()
	s.Variance = adjusted * (1 - adjusted) / (max(s.Observations, 0) + 2)
	if k := float64(w.Clusters); k > 1 {
		between := k / (k - 1) * (p.Squares - 2*s.Value*p.Cross + s.Value*s.Value*w.Squares) / (w.Total * w.Total)
		s.Variance = max(s.Variance, between)
	}
	return s
}

// adjusted returns the share with one observation more of each kind.
func (s Share) adjusted() float64 {
	n := max(s.Observations, 0)
	return (s.Value*n + 1) / (n + 2)
}

// PValue returns the probability of a difference as large as that of two shares, up or down, if they were the same.
func PValue(a, b Share) float64 {
	variance := a.Variance + b.Variance
	if variance <= 0 {
		return 1
	}
	return math.Erfc(math.Abs(a.adjusted()-b.adjusted()) / math.Sqrt(2*variance))
}

// Weighting is how many observations the values of a profile are.
type Weighting struct {
	// Each is the value of one observation. 0 means that it is not known.
	Each float64
}

// WeightingOf returns the weighting of a profile: values that are counts of samples, or multiples of a period in their
// own unit.
func WeightingOf(sampleType, unit string, period int64, periodUnit string) Weighting {
	switch {
	case sampleType == "samples", sampleType == "sample":
		return Weighting{Each: 1}
	case period > 1 && periodUnit == unit:
		return Weighting{Each: float64(period)}
	default:
		return Weighting{}
	}
}

// Observations returns how many observations values are, by their sum and the sum of their squares. Where the value of
// one is not known, this is Kish's effective size: the number of equal values that would have this variance.
func (w Weighting) Observations(sum, squares float64) float64 {
	if w.Each > 0 {
		return sum / w.Each
	}
	if squares <= 0 {
		return 0
	}
	return sum * sum / squares
}
