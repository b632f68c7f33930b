// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// EngineID identifies a series or a stack in an engine: 128 bits of a hash of all that it has.
type EngineID [16]byte

// Engine is a database of samples. Its methods call use for each row of the answer, and return its error. What use gets
// is valid until it returns. Times are Unix nanoseconds; 0 as until means no bound.
type Engine interface {
	// Types lists what profiles there are whose time lies in [from, until), of a service, or of all if service is empty.
	Types(ctx context.Context, service string, from, until int64, use func(*EngineType) error) error
	// Series lists the series of a service that have profiles on the days of [from, until).
	Series(ctx context.Context, service string, from, until int64,
		use func(id EngineID, resource, profile []model.Attribute) error) error
	// Profiles lists the profiles of the types whose time lies in [from, until), in the order of their times.
	Profiles(ctx context.Context, types []EngineType, from, until int64, use func(*EngineProfile) error) error
	// HasAttribute reports whether samples of the types, which are of one service, have an attribute of a key, with one
	// of some values; nil means any.
	HasAttribute(ctx context.Context, types []EngineType, from, until int64, key string, values []string) (bool, error)
	// Rows adds up samples.
	Rows(ctx context.Context, q *EngineQuery, use func(*EngineRow) error) error
	// Stacks resolves stacks of a service that have samples on the days of [from, until).
	Stacks(ctx context.Context, service string, from, until int64, ids []EngineID, use func(*EngineStack) error) error
}

// EngineType is one sample type of a service.
type EngineType struct {
	Service string
	// Stated is the name that the producer gave the profile, or empty.
	Stated           string
	Type, PeriodType model.SampleType
	// Temporality is what its profiles state about their values (kind.TemporalityAttribute), or empty.
	Temporality string
	// From and Until are the first start and the last end of the profiles, Duration is their longest one.
	From, Until, Duration int64
	Samples, Instances    int
	// IsTimed reports that observations have times.
	IsTimed bool
}

// profile returns the name of the profile that the type belongs to.
func (t *EngineType) profile() string {
	return kind.Name(kind.CutName(t.Stated), t.Type.Type, t.PeriodType.Type)
}

// valuesOf returns what the values of one of its profiles are, which states a temporality or none. Observations with
// times are events, as in kind.DeclaredOf.
func (t *EngineType) valuesOf(temporality string, duration int64, isTimed bool) kind.Values {
	if isTimed {
		duration = max(duration, 1)
	}
	return kind.StatedValues(temporality, kind.Declared{
		SampleType: t.Type.Type, Unit: t.Type.Unit, PeriodType: t.PeriodType.Type, DurationNanos: uint64(max(duration, 0)),
	})
}

// EngineProfile is a profile without its samples. First and Last are the times of its observations, if it has some.
type EngineProfile struct {
	// Type is the index of its type in the query.
	Type                                int
	Series                              EngineID
	Time, Duration, Period, First, Last int64
	Total                               int64
	Samples                             int
	IsTimed, HasAttributes, HasLinks    bool
}

// EngineQuery selects samples that an engine adds up. Samples are equal if they do not differ in what is wanted.
type EngineQuery struct {
	Service string
	// Types are those of the samples, which all have one sample type; nil means that Chosen decides.
	Types []EngineType
	Type  model.SampleType
	// From and Until are the times of the first and of the last profile.
	From, Until int64
	// Chosen are series, or profiles if IsListed, and how they count. If it is empty all series count.
	Chosen   []EngineChosen
	IsListed bool
	// CutFrom and CutUntil select observations that have times. If the profiles are not listed, each of the others counts
	// by the part of its time that lies there. 0 means no bound.
	CutFrom, CutUntil int64
	// WholeFrom and WholeUntil are the bounds of hours in which all profiles count as a whole, so that an engine can take
	// them from sums by hour, if it has some of what is wanted. They are equal if there are none.
	WholeFrom, WholeUntil int64
	// IsTimed reports that some of the profiles have observations with times. TimesOnly leaves out the others.
	IsTimed, TimesOnly bool
	// Filters are attributes that samples must have, as far as EngineChosen.Required has their bits.
	Filters []EngineFilter
	// GroupBy is the key of an attribute of samples, if EngineChosen.Group is negative.
	GroupBy string
	Want    Want
	// IsFractional makes values float64, otherwise they are int64.
	IsFractional bool
}

// EngineChosen is a series, or a profile, and how it counts.
type EngineChosen struct {
	Series EngineID
	// Time is that of the profile. Into is the time of the profile for which it counts: totals count for the next one,
	// too.
	Time, Into  int64
	Coefficient float64
	// Group is that of its samples. If it is negative, samples with an attribute of the key GroupBy are of OwnGroup
	// instead.
	Group    int32
	Required uint64
}

// OwnGroup is the group of samples that have an attribute of the key EngineQuery.GroupBy themselves.
const OwnGroup = -1

// EngineFilter is a key and the values of which a sample must have one.
type EngineFilter struct {
	Key    string
	Values []string
}

// EngineRow is a sum of samples. It has what is wanted, and otherwise zeros.
type EngineRow struct {
	Group int32
	// GroupName is the value of the attribute that divides the answer, if Group is OwnGroup.
	GroupName  string
	Series     EngineID
	Into       int64
	Stack      EngineID
	Attributes []model.Attribute
	// Trace and Span are hexadecimal.
	Trace, Span string
	// Time is that of the observation; 0 if it has none.
	Time int64
	// Samples is the number of observations.
	Samples  int64
	Value    int64
	Fraction float64
}

// EngineStack is a stack, the leaf first. Frames with one address follow each other from the innermost inlined one.
type EngineStack struct {
	ID     EngineID
	Frames []EngineFrame
}

// EngineFrame is a line of a stack.
type EngineFrame struct {
	Function, File, Mapping string
	Line                    int64
	Address                 uint64
}
