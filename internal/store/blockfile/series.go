// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// seriesRow is a row of series.parquet, with the attributes of the resource and of the profiles, as strings.
type seriesRow struct {
	Block  string `parquet:"block,dict"`
	Number int32  `parquet:"series"`
	seriesFields
	labelsField
}

type labelsField struct {
	Labels map[string]string `parquet:"labels"`
}

// seriesFields are a series with those of its fields that people read in another form. Hashes are hexadecimal.
type seriesFields struct {
	ID         string `parquet:"series_id"`
	Instance   string `parquet:"instance,dict"`
	Type       string `parquet:"type,dict"`
	Unit       string `parquet:"unit,dict"`
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	// Kind is delta, gauge or cumulative, as the values arrived.
	Kind string `parquet:"kind,dict"`
	model.BlockSeries
}

func fieldsOf(sr *model.BlockSeries) seriesFields {
	return seriesFields{
		ID: hex.EncodeToString(sr.ID[:]), Instance: fmt.Sprintf("%016x", sr.Instance), Type: sr.Type.Type,
		Unit: sr.Type.Unit, PeriodType: sr.Period.Type, PeriodUnit: sr.Period.Unit, Kind: sr.Values.String(),
		BlockSeries: *sr,
	}
}

// diskSampleBytes is about what a sample takes on disk.
const diskSampleBytes = 3

func (f *seriesFields) series() model.BlockSeries {
	sr := f.BlockSeries
	// Blocks of earlier versions have the names that producers use.
	sr.Type = model.SampleType{Type: f.Type, Unit: f.Unit}.Named()
	sr.Period = model.SampleType{Type: f.PeriodType, Unit: f.PeriodUnit}.Named()
	sr.Bytes = sr.Samples * diskSampleBytes
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
		sr := rows[i].series()
		sr.Service, sr.Resource, sr.Attributes = s.Name, set(s, sr.Resource), set(s, sr.Attributes)
		if slices.Min([]int64{int64(sr.Profiles), int64(sr.Samples), sr.First, sr.FirstSample}) < 0 {
			return nil, fmt.Errorf("%w: %s: a number is negative", ErrDamaged, seriesFile)
		}
		list[i] = sr
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
