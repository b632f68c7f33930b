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
	// Catalog lists the profiles of a service, or of all if service is empty: by service and name, each pprof's sample
	// types in their order.
	Catalog(ctx context.Context, service string, meter *size.Meter) ([]ProfileInfo, error)
	// Series lists the series of a selection, in which any of service, profile and type may be empty, with their labels.
	Series(ctx context.Context, sel model.Selection) ([]Series, error)
	// Select begins to read the samples of a selection. The caller closes what it returns.
	Select(ctx context.Context, q *Query) (*Selected, error)
	// Timeline adds up the selected values over time, in about points steps. What happened in a time is spread over it; a
	// gauge holds until the next one.
	Timeline(ctx context.Context, sel model.Selection, points int, now time.Time) (*Timeline, error)
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
	// Keep, if it is set, chooses among the samples, of which only stacks and values are read then.
	Keep func(samples *Samples, row int) bool
	// Shorten, if it is set, changes the stacks of a pprof.
	Shorten Shorten
	Memory  *model.Memory
	// asTime counts samples × their period, as if the periods differed.
	asTime bool
}

// Shorten replaces stacks, which have values, by others of the dictionary, to which it may add some.
type Shorten func(m *model.Memory, dict *dictionary.Dictionary, stacks []int32, values []int64) error

// services returns the services of the query.
func (q *Query) services() (names []string) {
	if q.Only == nil {
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

// isCount reports whether samples are counted by their attributes.
func (w Want) isCount() bool { return w.Series && !w.Stacks && !w.Times && !w.Profiles }

// Selected describes the samples of a query. It is valid until Close.
type Selected struct {
	// Types has the sample types that Samples.Type refers to, in the order of their pprof.
	Types []model.SampleType
	// Summary describes the first type.
	Summary
	// Time is the earliest start of the profiles of all types. Duration (the sum of their durations) and Count (their
	// number) describe the type that has the most.
	Time, Duration int64
	Count          int
	// Samples is the number of samples of all types.
	Samples int
	// Newest describes the latest profile; nil if there is none.
	Newest *ProfileFields
	SampleReader
}

// SampleReader reads the samples of a query.
type SampleReader interface {
	// Read calls use with all samples, part by part: dictionaries are not the same in all parts.
	Read(use func(*Samples) error) error
	Close()
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
	// IsTimed reports that Times has the time of each sample, in Unix nanoseconds.
	IsTimed                   bool
	Stacks, Attributes, Links []int32
	Times                     []int64
	// Values has a value for each sample, unless Fractions has: sums of weighted values, which are rounded in the end.
	Values    []int64
	Fractions []float64
	// Start and End are the time for which the profile counts: of a state, until the next one of its series.
	Start, End int64
	// Count is the number of samples; 0 means one for each value.
	Count int
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

// Views is where blocks are.
type Views interface {
	// View returns the blocks that may have profiles of some services, or of all if none is given. Its release ends it.
	View(m *model.Memory, services ...string) *View
	Status(ctx context.Context) (Status, error)
}

// blockSource is a Source of blocks.
type blockSource struct {
	Views
	bounds lineBounds
}

// Over returns a source of blocks. Window is how long profiles are kept in memory, and resolution the finest step of a
// timeline.
func Over(v Views, window, resolution time.Duration) Source {
	return &blockSource{v, lineBounds{window, resolution}}
}

// viewOf is View of one service, or of all if it is empty.
func (s *blockSource) viewOf(memory *model.Memory, service string) *View {
	if service == "" {
		return s.View(memory)
	}
	return s.View(memory, service)
}

// Catalog lists the profiles of a service, or of all if service is empty: by service and name, each pprof's sample
// types in their order.
func (s *blockSource) Catalog(ctx context.Context, service string, meter *size.Meter) ([]ProfileInfo, error) {
	memory := model.NewMemory(ctx, meter)
	status, err := s.Status(ctx)
	if err = cmp.Or(err, memory.Grow(catalogBytes*status.Series)); err != nil {
		return nil, err
	}
	v := s.viewOf(memory, service)
	defer v.Release()
	type instance struct {
		of *ProfileInfo
		id uint64
	}
	seen := map[instance]bool{}
	list, err := v.profiles(service, "", func(p *ProfileInfo, sr *model.BlockSeries) {
		if in := (instance{p, sr.Instance}); !seen[in] {
			seen[in] = true
			p.Instances++
		}
	})
	return list, cmp.Or(err, memory.Check())
}

// Series lists the series of a selection with their labels, which its attributes must match. Of blocks on disk, only
// that is read.
func (s *blockSource) Series(ctx context.Context, sel model.Selection) ([]Series, error) {
	memory := model.NewMemory(ctx, sel.Meter)
	v := s.viewOf(memory, sel.Service)
	defer v.Release()
	c := &seriesCollector{sel: &sel, memory: memory, found: map[string]*Series{}}
	err := v.eachSeries(sel.Service, c.block)
	if err != nil {
		return nil, err
	}
	return c.list()
}

// Select begins to read the samples of a selection.
func (s *blockSource) Select(ctx context.Context, q *Query) (*Selected, error) {
	v := s.View(q.Memory, q.services()...)
	selected, err := v.selected(q)
	if err != nil {
		v.Release()
	}
	return selected, err
}

// Timeline adds up the selected values over time, in about points steps. What happened in a time is spread over it;
// a gauge holds until the next one.
func (s *blockSource) Timeline(ctx context.Context, sel model.Selection, points int, now time.Time) (*Timeline, error) {
	v := s.View(model.NewMemory(ctx, sel.Meter), sel.Service)
	defer v.Release()
	return v.timeline(&sel, points, now, s.bounds)
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

// Services lists all services by name.
func (s *Querier) Services(ctx context.Context, meter *size.Meter) ([]ServiceInfo, error) {
	list, err := s.Catalog(ctx, "", meter)
	return servicesOf(list), err
}

// query begins a query.
func (s *Querier) query(ctx context.Context, sel model.Selection, want Want) *Query {
	return &Query{Selection: sel, Want: want, Memory: model.NewMemory(ctx, sel.Meter)}
}
