// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
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

// ErrRange is of a profile whose index is out of range.
var ErrRange = fmt.Errorf("%w: a profile has an index that is out of range", blockfile.ErrDamaged)

// SeriesID identifies a series in all blocks: a hash of its names and attributes, which nobody can make collide.
type SeriesID [sha256.Size]byte

// BlockSeries is what a block has of a series: profiles of one service, profile, sample type, resource and attributes.
type BlockSeries struct {
	ID               SeriesID
	Service, Profile string
	// Type is its sample type. Period and Position, that of the type in its pprof, are those of its latest profile.
	Type, Period SampleType
	Position     int32
	Values       kind.Values
	// Instance is a part of the hash of its resource.
	Instance uint64
	// Resource and Attributes are those of its resource and of its profiles.
	Resource, Attributes dictionary.AttributeSetIndex
	// From and Until are the first start and the last end of its profiles, Start and End the time for which they count.
	From, Until, Start, End int64
	// Total is the sum of its values.
	Total                           int64
	Profiles, Samples, Bytes, Moved int
	// Flags is the union of those of its profiles. Timestamps reports that observations have times, which can be shown.
	Flags      Flags
	Timestamps bool
	// First and FirstSample are where its block has its profiles and their samples.
	First, FirstSample int64
}

// Profile is one profile without its samples. Times are Unix nanoseconds.
type Profile struct {
	// Time and Duration are those of the profile.
	Time, Duration int64
	// Start and End are the time for which the profile counts, which differs from its own if that is outside the window:
	// of a delta, when it happened; of what was cumulative, the time since the profile before; of a gauge, two intervals
	// (GaugeTimes.Hold).
	Start, End int64
	Total      int64
	// At is where its block has its samples.
	At      int64
	Samples int32
	Meta    int32
	Values  kind.Values
	Flags   Flags
}

// Meta has the fields of a pprof except its samples. Most profiles of a series share them.
type Meta struct {
	PeriodType, PeriodUnit dictionary.StringIndex
	Period                 int64
	// Attributes are the profile's, Scope those of its scope that describe a pprof.
	Attributes, Scope dictionary.AttributeSetIndex
	// Position is that of the profile in its scope.
	Position int32
}

// ColumnsWanted are the columns to read besides stacks and values.
type ColumnsWanted struct{ Attributes, Timestamps, Links bool }

// Columns are samples. A column is empty if it was not wanted, or if no profile that is read has it. Timestamps are
// Unix nanoseconds. Sums have Counts of samples, if these are wanted, and Fractions to add to the values, if there are
// some.
type Columns struct {
	Stacks, Attributes, Links  []int32
	Timestamps, Values, Counts []int64
	Fractions                  []float64
}

// Fraction returns what is added to a value.
func (c *Columns) Fraction(i int) float64 {
	if len(c.Fractions) == 0 {
		return 0
	}
	return c.Fractions[i]
}

// Slice returns a part of the rows.
func (c *Columns) Slice(from, until int) Columns {
	return Columns{
		Stacks: partOf(c.Stacks, from, until), Attributes: partOf(c.Attributes, from, until),
		Links: partOf(c.Links, from, until), Timestamps: partOf(c.Timestamps, from, until),
		Values: partOf(c.Values, from, until),
	}
}

func partOf[T any](list []T, from, until int) []T {
	if len(list) == 0 {
		return nil
	}
	return list[from:until]
}

// Flags are those of blockfile.
type Flags uint8

// The flags of a profile, as blockfile has them.
const (
	HasAttributes = Flags(blockfile.HasAttributes)
	HasLinks      = Flags(blockfile.HasLinks)
	HasTimestamps = Flags(blockfile.HasTimestamps)
	IsMoved       = Flags(blockfile.IsMoved)
	IsBaseline    = Flags(blockfile.IsBaseline)
	IsReset       = Flags(blockfile.IsReset)
)

// At returns an entry of a column, or 0 if nothing has one.
func At(column []int32, i int) int32 {
	if len(column) == 0 {
		return 0
	}
	return column[i]
}

// IsOutside reports whether an index is none of a table of n entries. Every table has entry 0.
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
