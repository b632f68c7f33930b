// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package selection decides which samples belong to which metric. A Set is built once, by Add. Regular expressions of
// functions, and conditions on attributes of samples, have a bit each, so that what an entry of a message matches is
// one number.
package selection

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Type is a sample type of a profile, by the names of otlp/kind.
type Type struct{ Profile, Type string }

// ParseType reads process_cpu/cpu.
func ParseType(s string) (Type, error) {
	profile, typ, ok := strings.Cut(s, "/")
	if !ok || profile == "" || typ == "" || strings.Contains(typ, "/") {
		return Type{}, fmt.Errorf("%q must be a profile and a sample type, such as process_cpu/cpu", s)
	}
	return Type{kind.Canonical(profile), kind.PlainType(typ)}, nil
}

// String returns the type as it is written in a configuration.
func (t Type) String() string { return t.Profile + "/" + t.Type }

// IsGauge reports whether the values of the type are a state.
func (t Type) IsGauge() bool {
	return kind.ValuesOf(kind.Declared{SampleType: t.Type, DurationNanos: 1}) == kind.Gauge
}

// Frame is how functions distinguish series.
type Frame uint8

// The choices: functions do not distinguish series, or their packages or names do.
const (
	NoFrame Frame = iota
	ByPackage
	ByFunction
)

// Frames are the words for the choices.
var Frames = [...]string{"none", "package", "function"}

// Definition defines a metric.
type Definition struct {
	Name, Description, Unit string
	Types                   []Type
	// IsGauge means that the values are a state.
	IsGauge bool
	// Resource and Sample are conditions: a regular expression for the value of an attribute.
	Resource, Sample map[string]*regexp.Regexp
	// Functions and Below are patterns; one of each must match. Leaf means that the leaf must match Functions.
	Functions, Below []*regexp.Regexp
	Leaf             bool
	// ResourceKeys and SampleKeys are the attributes that distinguish series.
	ResourceKeys, SampleKeys []string
	Frame                    Frame
}

// Metric is a definition in the numbers of a Set.
type Metric struct {
	Definition
	// functions and below are bits of patterns, conditions those of conditions.
	FunctionBits, BelowBits, ConditionBits uint64
	// BelowBit is the metric's own bit if it has Below without Leaf.
	BelowBit uint64
	// SampleValues are the numbers of SampleKeys.
	SampleValues []int
}

// IsSimple reports whether all samples of a profile are in one series.
func (m *Metric) IsSimple() bool {
	return m.FunctionBits|m.BelowBits|m.ConditionBits == 0 && len(m.SampleKeys) == 0 && m.Frame == NoFrame
}

// Condition is a condition on an attribute of a sample.
type Condition struct {
	Key     string
	Pattern *regexp.Regexp
}

// MaxBits bounds the different regular expressions of functions, the conditions on attributes of samples, and the
// metrics with `below`.
const MaxBits = 64

// Set has all metrics.
type Set struct {
	Metrics    []*Metric
	Patterns   []*regexp.Regexp
	Conditions []Condition
	// SampleKeys are the attributes of samples that distinguish series of any metric.
	SampleKeys []string
	// Below are the metrics that have a BelowBit.
	Below  []*Metric
	byType map[Type][]int
}

// Of returns the numbers of the metrics of a type.
func (s *Set) Of(t Type) []int { return s.byType[t] }

// Add adds a metric.
func (s *Set) Add(d Definition) error {
	m := &Metric{Definition: d}
	var err error
	if m.FunctionBits, err = s.patterns(d.Functions); err != nil {
		return err
	}
	if m.BelowBits, err = s.patterns(d.Below); err != nil {
		return err
	}
	if m.BelowBits != 0 && !m.Leaf {
		if len(s.Below) == MaxBits {
			return fmt.Errorf("more than %d metrics have `below`", MaxBits)
		}
		m.BelowBit = 1 << len(s.Below)
		s.Below = append(s.Below, m)
	}
	for key, pattern := range d.Sample {
		if len(s.Conditions) == MaxBits {
			return fmt.Errorf("there are more than %d conditions on attributes of samples", MaxBits)
		}
		m.ConditionBits |= 1 << len(s.Conditions)
		s.Conditions = append(s.Conditions, Condition{key, pattern})
	}
	for _, key := range d.SampleKeys {
		i := slices.Index(s.SampleKeys, key)
		if i < 0 {
			i = len(s.SampleKeys)
			s.SampleKeys = append(s.SampleKeys, key)
		}
		m.SampleValues = append(m.SampleValues, i)
	}
	if s.byType == nil {
		s.byType = map[Type][]int{}
	}
	for _, t := range d.Types {
		s.byType[t] = append(s.byType[t], len(s.Metrics))
	}
	s.Metrics = append(s.Metrics, m)
	return nil
}

func (s *Set) patterns(list []*regexp.Regexp) (bits uint64, err error) {
	for _, pattern := range list {
		i := slices.IndexFunc(s.Patterns, func(other *regexp.Regexp) bool { return other.String() == pattern.String() })
		if i < 0 {
			if len(s.Patterns) == MaxBits {
				return 0, fmt.Errorf("there are more than %d different regular expressions of functions", MaxBits)
			}
			i = len(s.Patterns)
			s.Patterns = append(s.Patterns, pattern)
		}
		bits |= 1 << i
	}
	return bits, nil
}
