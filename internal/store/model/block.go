// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Block is what a query reads: a snapshot of what is in memory, a block on disk, or what an engine lists. It does not
// change.
type Block interface {
	// Span returns the time in which profiles of a service may count, or those of all services if it is empty. ok is false
	// if the block has none of the service.
	Span(service string) (start, end int64, ok bool)
	// Series calls use with the series of a service, or of one service after the other if it is empty. They are in the
	// order of their profile, type and ID, and valid until use returns.
	Series(service string, m *Memory, use func([]BlockSeries) error) error
	// Labels returns the attributes of the series of a service, in their order.
	Labels(service string) ([]map[string]string, error)
	// Starts calls use with the starts of the profiles of series, which are in their order.
	Starts(list []*BlockSeries, use func(in int, starts []int64) error) error
	// Open begins to read the profiles of a service. Without its dictionary, these have no attributes, and their samples
	// refer to nothing.
	Open(service string, withDictionary bool, m *Memory) (Part, error)
}

// Part reads what a block has of a service. It is for one goroutine.
type Part interface {
	// Dict returns the dictionary.
	Dict() *dictionary.Dictionary
	// Resources returns the sets of attributes that are of resources of other services.
	Resources() iter.Seq[dictionary.AttributeSetIndex]
	// Meta returns what a profile has that was read with its fields.
	Meta(p *Profile) *Meta
	// Profiles calls use with the profiles of series that wants chooses by their Start, End and Total: with the index of
	// the series, the number of the profile in it, and the profile, which is valid until use returns.
	Profiles(list []*BlockSeries, withFields bool, wants func(*BlockSeries, *Profile) bool,
		use func(in, number int, p *Profile) error) error
	// Rows calls use with the samples of n profiles, which are in the order of Profiles: in one or more parts for each.
	Rows(n int, at func(i int) (*BlockSeries, *Profile), want ColumnsWanted, use func(i int, c *Columns) error) error
	// Close ends the reading.
	Close()
}

// DamagedError is of a block whose bytes are wrong.
type DamagedError struct {
	Block Block
	Err   error
}

func (e *DamagedError) Error() string { return e.Err.Error() }
func (e *DamagedError) Unwrap() error { return e.Err }

// ErrDamaged is wrapped by errors for a block whose files are not what was written. ErrRange is of an index that is out
// of range.
var (
	ErrDamaged = errors.New("the block is damaged")
	ErrRange   = fmt.Errorf("%w: an index is out of range", ErrDamaged)
)

// SeriesID identifies a series in all blocks: a hash of its names and attributes, which nobody can make collide.
type SeriesID [sha256.Size]byte

// BlockSeries is what a block has of a series: profiles of one service, profile, sample type, resource and attributes.
// Its fields with names are columns of series.parquet, which has the others in another form.
type BlockSeries struct {
	ID      SeriesID `parquet:"-"`
	Service string   `parquet:"service_name,dict"`
	Profile string   `parquet:"profile,dict"`
	// Type is its sample type. Period and Position, that of the type in its pprof, are those of its latest profile.
	Type     SampleType  `parquet:"-"`
	Period   SampleType  `parquet:"-"`
	Position int32       `parquet:"position"`
	Values   kind.Values `parquet:"-"`
	// Instance is a part of the hash of its resource.
	Instance uint64 `parquet:"-"`
	// Resource and Attributes are those of its resource and of its profiles.
	Resource   dictionary.AttributeSetIndex `parquet:"resource_set"`
	Attributes dictionary.AttributeSetIndex `parquet:"attribute_set"`
	// From and Until are the first start and the last end of its profiles, Start and End the time for which they count. No
	// name is that of a column of profiles.parquet, with which people join them.
	From  int64 `parquet:"from,timestamp(nanosecond)"`
	Until int64 `parquet:"until,timestamp(nanosecond)"`
	Start int64 `parquet:"first_start,timestamp(nanosecond)"`
	End   int64 `parquet:"last_end,timestamp(nanosecond)"`
	// Total is the sum of its values.
	Total    int64 `parquet:"sum"`
	Profiles int   `parquet:"profiles"`
	Samples  int   `parquet:"sample_rows"`
	Bytes    int   `parquet:"-"`
	Moved    int   `parquet:"moved"`
	// Flags is the union of those of its profiles. Timestamps reports that observations have times, which can be shown.
	Flags      Flags `parquet:"flags"`
	Timestamps bool  `parquet:"timestamps"`
	// First and FirstSample are where its block has its profiles and their samples.
	First       int64 `parquet:"first_profile"`
	FirstSample int64 `parquet:"first_sample"`
}

// Count adds a profile to what the series knows of its profiles.
func (sr *BlockSeries) Count(p *Profile, m *Meta) {
	if sr.Profiles == 0 {
		sr.From, sr.Until, sr.Start, sr.End = p.First(), p.Last(), p.Start, p.End
	}
	sr.From, sr.Until = min(sr.From, p.First()), max(sr.Until, p.Last())
	sr.Start, sr.End = min(sr.Start, p.Start), max(sr.End, p.End)
	sr.Period, sr.Position = SampleType{Type: m.PeriodType, Unit: m.PeriodUnit}, m.Position
	sr.Values, sr.Flags, sr.Timestamps = p.Values, sr.Flags|p.Flags, sr.Timestamps || p.IsTimed()
	sr.Profiles, sr.Samples, sr.Total = sr.Profiles+1, sr.Samples+int(p.Samples),
		otlp.SaturatingAdd(sr.Total, p.Total)
	if p.Flags&IsMoved != 0 {
		sr.Moved++
	}
	if p.Values == kind.Gauge {
		sr.Flags |= hasStates
	}
}

// HasStates reports whether some of its profiles are states. Blocks of earlier versions know it of the latest alone.
func (sr *BlockSeries) HasStates() bool { return sr.Values == kind.Gauge || sr.Flags&hasStates != 0 }

// IsOutside reports whether one of the two sets of attributes is beyond the n sets of a dictionary.
func (sr *BlockSeries) IsOutside(n int) bool {
	return IsOutside(int32(sr.Resource), n) || IsOutside(int32(sr.Attributes), n)
}

// Profile is one profile without its samples. Times are Unix nanoseconds. Its fields with names are columns of
// profiles.parquet, and are in the log.
type Profile struct {
	// Time and Duration are those of the profile.
	Time     int64 `parquet:"time,timestamp(nanosecond),delta"`
	Duration int64 `parquet:"duration_nanos,delta"`
	// Start and End are the time for which the profile counts, which differs from its own if that is outside the window:
	// of a delta, when it happened; of what was cumulative, the time since the profile before; of a gauge, two intervals
	// (GaugeTimes.Hold).
	Start int64 `parquet:"start,timestamp(nanosecond),delta"`
	End   int64 `parquet:"end,timestamp(nanosecond),delta"`
	Total int64 `parquet:"total,delta"`
	// At is where its block has its samples, MetaAt where it has its Meta.
	At      int64       `parquet:"-"`
	MetaAt  int32       `parquet:"-"`
	Samples int32       `parquet:"samples,delta"`
	Values  kind.Values `parquet:"kind,delta"`
	Flags   Flags       `parquet:"flags,delta"`
}

// Meta has the fields of a pprof except its samples. Most profiles of a series share them. They are columns of
// profiles.parquet, and are in the log.
type Meta struct {
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	Period     int64  `parquet:"period,delta"`
	// Attributes are the profile's, Scope those of its scope that describe a pprof.
	Attributes dictionary.AttributeSetIndex `parquet:"attribute_set,delta"`
	Scope      dictionary.AttributeSetIndex `parquet:"scope_attribute_set,delta"`
	// Position is that of the profile in its scope.
	Position int32 `parquet:"position,delta"`
}

// Sets returns the fields that are sets of attributes.
func (m *Meta) Sets() [2]*dictionary.AttributeSetIndex {
	return [...]*dictionary.AttributeSetIndex{&m.Attributes, &m.Scope}
}

// IsOutside reports whether one of the sets of attributes is beyond the n sets of a dictionary.
func (m *Meta) IsOutside(n int) bool {
	return IsOutside(int32(m.Attributes), n) || IsOutside(int32(m.Scope), n)
}

// Flags are those of a profile.
type Flags int32

// The flags of a profile.
const (
	HasAttributes Flags = 1 << iota
	HasLinks
	HasTimestamps
	// IsMoved marks a profile that is kept under its time of arrival.
	IsMoved
	// IsBaseline marks the first cumulative profile of a series, which has the totals since the process began.
	IsBaseline
	// IsReset marks a cumulative profile that has smaller values than the one before.
	IsReset
	// hasStates marks a series of which some profiles are states. Those of an unknown type are, if they have no duration.
	hasStates
)

// IsOutside reports whether an index is beyond the n entries of a table. Every table has entry 0.
func IsOutside(i int32, n int) bool { return i < 0 || i > 0 && int(i) >= n }

// CompareSeries orders the series of a service.
func CompareSeries(a, b BlockSeries) int {
	return cmp.Or(strings.Compare(a.Profile, b.Profile), strings.Compare(a.Type.Type, b.Type.Type),
		slices.Compare(a.ID[:], b.ID[:]))
}

// LabelsOf returns the attributes of a series' resource and profiles as strings. If both have a key, the profile's
// value wins.
func LabelsOf(dict *dictionary.Dictionary, sr *BlockSeries) map[string]string {
	labels := map[string]string{}
	for _, set := range []dictionary.AttributeSetIndex{sr.Resource, sr.Attributes} {
		for _, i := range dict.AttributeSets.At(set) {
			a := dict.Attributes.At(dictionary.AttributeIndex(i))
			labels[dict.Strings.At(a.Key)] = a.Value.AsString()
		}
	}
	return labels
}
