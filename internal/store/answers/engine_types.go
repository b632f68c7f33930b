// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

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

// typ returns its type, with the name of the unit: it can be that of several types of an engine.
func (t *EngineType) typ() model.SampleType { return t.Type.Named() }

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

// EngineQuery asks for sums of samples by span and by what is wanted, of which observations with times are not added
// up.
type EngineQuery struct {
	// Types are those of the samples, of one service.
	Types []EngineType
	// From and Until are the times of the first and of the last profile.
	From, Until int64
	// WholeFrom and WholeUntil are the bounds of hours in which all profiles of a series are in one span or in none, so
	// that sums by hour serve. They are equal if there are none.
	WholeFrom, WholeUntil int64
	// Spans do not overlap.
	Spans []EngineSpan
	model.SumsWanted
}

// EngineSpan selects the profiles of a series whose time lies in [From, Until], and how they count: Whole + Part times
// for Sum.
type EngineSpan struct {
	Series      EngineID
	From, Until int64
	Sum         int32
	Whole       int64
	Part        float64
}

// EngineRow is a sum of samples. It has what is wanted, and otherwise zeros.
type EngineRow struct {
	// Sum is that of its span.
	Sum        int32
	Stack      EngineID
	Attributes []model.Attribute
	// Trace and Span are hexadecimal.
	Trace, Span string
	// Time is that of the observation, or of its profile if it has none.
	Time int64
	// Value + Fraction is the sum of the values, or the number of observations if that is wanted.
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
