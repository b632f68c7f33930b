// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Source is where profiles are: a Store, in memory or in a directory, or a table of another engine. A Querier computes
// all answers from what it returns. The package comment has the rules for each kind of values.
type Source interface {
	// View returns the blocks that a query reads. Its Release ends it.
	View(ctx context.Context, q *Query) (*View, error)
	// Status describes what there is.
	Status(ctx context.Context) (Status, error)
}

// Status describes what a source has. What it does not know is 0.
type Status struct {
	model.Stats
	// Window is how long profiles are kept, Resolution the finest step of a timeline.
	Window, Resolution time.Duration
	MaxSeries          int
}

// Query is a selection, and which parts of its samples to read.
type Query struct {
	model.Selection
	// AllTypes selects all sample types of the profile if the selection names none. Otherwise that is its default type.
	AllTypes bool
	// TimedOnly selects the observations that have times of their own, of all profiles and types if the selection names
	// none. Profiles that are kept under another time have none.
	TimedOnly bool
	// Only has series of one sample type, and selects their profiles instead of by service, profile, type and attributes.
	// Each profile whose time lies in [From, Until) counts as it is, regardless of its kind; a baseline never counts.
	Only []Series
	Want Want
	// Reads is how much the query reads.
	Reads Reads
	// Keep, if it is set, chooses among the samples, of which only stacks and values are read then.
	Keep func(samples *Samples, row int) bool
	// Shorten, if it is set, changes the stacks of a pprof.
	Shorten Shorten
	Memory  *model.Memory
}

// Shorten replaces stacks, which have values, by others of the dictionary, to which it may add some.
type Shorten func(m *model.Memory, dict *dictionary.Dictionary, stacks []int32, values []int64) error

// Reads is how much a query reads of the profiles.
type Reads int

const (
	// ReadsSamples is of all of it.
	ReadsSamples Reads = iota
	// ReadsSeries is of the series alone.
	ReadsSeries
	// ReadsTypes is of the sample types alone.
	ReadsTypes
)

// Services returns the services of the query, or nil if it reads all of them.
func (q *Query) Services() (names []string) {
	if q.Only == nil && (q.Service != "" || q.Reads == ReadsSamples) {
		return []string{q.Service}
	}
	for i := range q.Only {
		names = append(names, q.Only[i].Service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (q *Query) allTypes() bool { return q.AllTypes && q.Type == "" }

// Want selects the columns of samples to read besides values. Samples that do not differ in it may be added up, except
// those with times. With Profiles, which needs Query.Only, samples of different profiles are not added up; if nothing
// else is wanted of a profile, it has one row: its total. With Ends, it has Samples.Start and End.
type Want struct{ Series, Stacks, Attributes, Links, Times, Profiles, Ends bool }

// columns returns the columns to read besides stacks and values.
func (w Want) columns() model.ColumnsWanted {
	return model.ColumnsWanted{Attributes: w.Attributes, Timestamps: w.Times, Links: w.Links}
}

// isCount reports whether samples are counted by their attributes.
func (w Want) isCount() bool { return w.Series && !w.Stacks && !w.Times && !w.Profiles }

// Selected has the samples of a query. It is valid until Close.
type Selected struct {
	// Types has the sample types that Samples.Type refers to, in the order of their pprof.
	Types []model.SampleType
	// Summary describes the first type.
	Summary
	// Time is the earliest start of the profiles of all types. Duration (the sum of their durations) and Count (their
	// number) describe the type that has the most. Newest describes the latest profile; nil if there is none. All are
	// known when the samples have been read.
	Time, Duration int64
	Count          int
	Newest         *ProfileFields
	// Samples is the number of samples of all types.
	Samples int

	scan *scan
	// latest becomes Newest. durations and counts are the sum of the durations and the number of the profiles of each
	// type.
	latest    newestProfile
	durations []int64
	counts    []int
	// ints and floats add up samples.
	ints, floats summer
	// out is what users of Read get, and total and count are its columns of a profile whose samples are not read.
	out          Samples
	total, count [1]int64
}

// ProfileFields are the fields of a profile other than its samples, over a dictionary.
type ProfileFields struct {
	Dict                   *dictionary.Dictionary
	PeriodType, PeriodUnit string
	Period                 int64
	// Attributes are the profile's own, except those of its series that not all selected series share. Scope holds the
	// attributes of its scope that describe a pprof.
	Attributes, Scope []int32
}

// Samples are samples, or sums of samples, of one type and one group over one dictionary, in columns. They are valid
// until use returns. A column is nil if it was not requested or if all of its values are 0.
type Samples struct {
	Dict *dictionary.Dictionary
	// Type is the index of the sample type in Selected.Types.
	Type int
	// Group is the value of the attribute that the selection is grouped by.
	Group string
	// Resource and Profile are sets of attributes of the series, if series are wanted.
	Resource, Profile dictionary.AttributeSetIndex
	// Weight is the factor to apply to Values. Sums are weighted already.
	Weight float64
	// IsTimed reports that Timestamps has the time of each sample, in Unix nanoseconds.
	IsTimed bool
	// Columns has the samples. A value is Values + Fractions, where there are both. A row is one sample unless Counts has
	// their number.
	model.Columns
	// Start and End are the time for which the profile counts: of a state, until the next one of its series.
	Start, End int64
	// Series is the index in Query.Only, and Time the time of the profile in Unix nanoseconds, if profiles are wanted.
	Series int
	Time   int64
}

// Len returns the number of rows.
func (s *Samples) Len() int { return max(len(s.Values), len(s.Fractions)) }

// Series is profiles of one resource, sample type and set of identifying attributes.
type Series struct {
	Service, Profile string
	Type             model.SampleType
	// PeriodType comes from the latest profile.
	PeriodType  model.SampleType
	Values      kind.Values
	From, Until int64
	Samples     int
	// HasAttributes and HasLinks report that some of its samples have some.
	HasAttributes, HasLinks bool
	// Labels are the attributes of the resource and of the profiles, by key.
	Labels []model.Attribute
	// TimesPeriod, in a Query, makes its values count × the period of their profile.
	TimesPeriod bool
	// ids are what a Store knows it by.
	ids []model.SeriesID
}

// Label returns a label, if the series has it.
func (s *Series) Label(key string) (string, bool) {
	i := slices.IndexFunc(s.Labels, func(a model.Attribute) bool { return a.Key == key })
	if i < 0 {
		return "", false
	}
	return s.Labels[i].Value, true
}

// Querier computes answers from a source.
type Querier struct{ Source }

// NewQuerier returns a querier of a source.
func NewQuerier(source Source) *Querier { return &Querier{source} }

// query begins a query.
func (s *Querier) query(ctx context.Context, sel model.Selection, want Want) *Query {
	return &Query{Selection: sel, Want: want, Memory: model.NewMemory(ctx, sel.Meter)}
}

// Services lists all services by name.
func (s *Querier) Services(ctx context.Context, meter *size.Meter) ([]ServiceInfo, error) {
	list, err := s.Catalog(ctx, "", meter)
	return servicesOf(list), err
}

// Catalog lists the profiles of a service, or of all if service is empty: by service and name, each pprof's sample
// types in their order.
func (s *Querier) Catalog(ctx context.Context, service string, meter *size.Meter) ([]ProfileInfo, error) {
	q := s.query(ctx, model.Selection{Service: service, Meter: meter}, Want{})
	q.Reads = ReadsTypes
	v, err := s.View(ctx, q)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	list, err := v.profiles(service, "")
	return list, cmp.Or(err, q.Memory.Keep(catalogBytes*len(list)))
}

// Series lists the series of a selection, in which any of service, profile and type may be empty, with their labels,
// which its attributes must match. Of blocks on disk, only that is read.
func (s *Querier) Series(ctx context.Context, sel model.Selection) ([]Series, error) {
	q := s.query(ctx, sel, Want{})
	q.Reads = ReadsSeries
	v, err := s.View(ctx, q)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	c := &seriesCollector{sel: &sel, memory: q.Memory, found: map[string]*Series{}}
	if err := v.eachSeries(v.Blocks, sel.Service, c.block); err != nil {
		return nil, err
	}
	return c.list()
}

// Select begins to read the samples of a query. The caller closes what it returns.
func (s *Querier) Select(ctx context.Context, q *Query) (*Selected, error) {
	v, err := s.View(ctx, q)
	if err != nil {
		return nil, err
	}
	selected, err := v.selected(q)
	if err != nil {
		v.Release()
	}
	return selected, err
}
