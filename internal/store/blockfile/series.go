// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// seriesRow is a row of series.parquet, with the attributes of the resource and of the profiles, as strings.
type seriesRow struct {
	Block       string `parquet:"block,dict"`
	Number      int32  `parquet:"series"`
	ServiceName string `parquet:"service_name,dict"`
	seriesFields
	labelsField
}

type labelsField struct {
	Labels map[string]string `parquet:"labels"`
}

// seriesFields are those of a model.BlockSeries. Hashes are hexadecimal.
type seriesFields struct {
	ID         string `parquet:"series_id"`
	Instance   string `parquet:"instance,dict"`
	Profile    string `parquet:"profile,dict"`
	Type       string `parquet:"type,dict"`
	Unit       string `parquet:"unit,dict"`
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	// Kind is delta, gauge or cumulative, as the values arrived.
	Kind       string                       `parquet:"kind,dict"`
	Resource   dictionary.AttributeSetIndex `parquet:"resource_set"`
	Attributes dictionary.AttributeSetIndex `parquet:"attribute_set"`
	Position   int32                        `parquet:"position"`
	From       int64                        `parquet:"from,timestamp(nanosecond)"`
	Until      int64                        `parquet:"until,timestamp(nanosecond)"`
	// Names are not those of columns of profiles.parquet, with which people join them.
	Start        int64       `parquet:"first_start,timestamp(nanosecond)"`
	End          int64       `parquet:"last_end,timestamp(nanosecond)"`
	FirstProfile int64       `parquet:"first_profile"`
	Profiles     int         `parquet:"profiles"`
	FirstSample  int64       `parquet:"first_sample"`
	Samples      int         `parquet:"sample_rows"`
	Total        int64       `parquet:"sum"`
	Flags        model.Flags `parquet:"flags"`
	Moved        int         `parquet:"moved"`
	Timestamps   bool        `parquet:"timestamps"`
}

func fieldsOf(sr *model.BlockSeries) seriesFields {
	return seriesFields{
		ID: hex.EncodeToString(sr.ID[:]), Instance: fmt.Sprintf("%016x", sr.Instance), Profile: sr.Profile,
		Type: sr.Type.Type, Unit: sr.Type.Unit, PeriodType: sr.Period.Type, PeriodUnit: sr.Period.Unit,
		Kind: sr.Values.String(), Resource: sr.Resource, Attributes: sr.Attributes, Position: sr.Position,
		From: sr.From, Until: sr.Until, Start: sr.Start, End: sr.End, Total: sr.Total, Flags: sr.Flags, Moved: sr.Moved,
		FirstProfile: sr.First, Profiles: sr.Profiles, FirstSample: sr.FirstSample, Samples: sr.Samples,
		Timestamps: sr.Timestamps,
	}
}

// diskSampleBytes is about what a sample takes on disk.
const diskSampleBytes = 3

func (f *seriesFields) series(service string) model.BlockSeries {
	sr := model.BlockSeries{
		Service: service, Profile: f.Profile, Type: model.SampleType{Type: f.Type, Unit: f.Unit},
		Period:   model.SampleType{Type: f.PeriodType, Unit: f.PeriodUnit},
		Position: f.Position, Resource: f.Resource, Attributes: f.Attributes,
		From: f.From, Until: f.Until, Start: f.Start, End: f.End, Total: f.Total, Flags: f.Flags, Moved: f.Moved,
		First: f.FirstProfile, Profiles: f.Profiles, FirstSample: f.FirstSample, Samples: f.Samples,
		Bytes: f.Samples * diskSampleBytes, Timestamps: f.Timestamps,
	}
	_, _ = hex.Decode(sr.ID[:], []byte(f.ID[:min(len(f.ID), 2*len(sr.ID))]))
	sr.Instance, _ = strconv.ParseUint(f.Instance, 16, 64)
	for _, v := range []kind.Values{kind.Gauge, kind.Cumulative} { // or else kind.Delta
		if v.String() == f.Kind {
			sr.Values = v
		}
	}
	return sr
}

// Series reads the series of a service.
func (r *Reader) Series(s *Service) ([]model.BlockSeries, error) {
	rows, err := readSeries[seriesFields](r, s.FirstSeries, s.SeriesCount)
	list := make([]model.BlockSeries, len(rows))
	for i := range rows {
		in := &rows[i]
		in.Resource, in.Attributes = set(s, in.Resource), set(s, in.Attributes)
		if slices.Min([]int64{int64(in.Profiles), int64(in.Samples), in.FirstProfile, in.FirstSample}) < 0 {
			return nil, fmt.Errorf("%w: %s: a number is negative", ErrDamaged, seriesFile)
		}
		list[i] = in.series(s.Name)
	}
	return list, err
}

// Labels reads the labels of the series of a service.
func (r *Reader) Labels(s *Service) (list []map[string]string, err error) {
	rows, err := readSeries[labelsField](r, s.FirstSeries, s.SeriesCount)
	for _, row := range rows {
		list = append(list, row.Labels)
	}
	return list, err
}
