// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// The names of the files.
const (
	IndexFile        = "index.json"
	samplesFile      = "samples.parquet"
	profilesFile     = "profiles.parquet"
	seriesFile       = "series.parquet"
	stacksFile       = "stacks.parquet"
	attributesFile   = "attributes.parquet"
	dictionariesFile = "dictionaries.zst"
)

// Version is the version of the layout.
const Version = 2

// Index is the content of index.json. Times are Unix nanoseconds.
type Index struct {
	Version int `json:"version"`
	// Block is the name of the block and of its directory.
	Block string `json:"block"`
	// From and Until are the first start and the last end of its profiles.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
	// Step is the interval of a downsampled block, in nanoseconds: each series has one profile per step, without
	// timestamps. 0 means that the block has all profiles.
	Step         int64           `json:"step_nanos,omitempty"`
	ProfileCount int             `json:"profiles"`
	SampleCount  int             `json:"samples"`
	Services     []Service       `json:"services"`
	Files        map[string]File `json:"files"`
}

// checksumField begins the last field of a sealed object: the CRC-32 (Castagnoli) of what is before it.
const checksumField = `,"crc32c":`

// Seal returns an object as JSON with a checksum, which must have a field.
func Seal(object any) ([]byte, error) {
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-1]
	return fmt.Appendf(b, "%s%d}", checksumField, crc32.Checksum(b, castagnoli)), nil
}

// Unseal reads what Seal returned.
func Unseal(b []byte, object any) error {
	i := max(bytes.LastIndex(b, []byte(checksumField)), 0)
	if want := fmt.Sprintf("%s%d}", checksumField, crc32.Checksum(b[:i], castagnoli)); string(b[i:]) != want {
		return errors.New("checksum mismatch")
	}
	return json.Unmarshal(b, object)
}

// File is the size of a file and its CRC-32 (Castagnoli).
type File struct {
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

// Service describes what a block holds for one service. Its series are in series.parquet.
type Service struct {
	Name string `json:"service"`
	// Start and End are the time for which its profiles count.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// FirstSeries and SeriesCount are the rows of its series in series.parquet.
	FirstSeries int `json:"first_series"`
	SeriesCount int `json:"series"`
	// Dictionary is where its dictionary is in dictionaries.zst.
	Dictionary Range `json:"dictionary"`
	// FirstStack and FirstSet are the numbers in the Parquet files of the dictionary's stack and set of attributes 0.
	FirstStack int `json:"first_stack"`
	FirstSet   int `json:"first_attribute_set"`
}

// Range is a part of a file.
type Range struct {
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
	Plain  int    `json:"plain_bytes"`
	CRC    uint32 `json:"crc32c"`
}

// Series is a series: profiles of one resource and sample type. Times are Unix nanoseconds.
type Series struct {
	// ID is the hexadecimal hash that identifies the series in all blocks; Instance that of its resource.
	ID       string `parquet:"series_id"`
	Instance string `parquet:"instance,dict"`
	Profile  string `parquet:"profile,dict"`
	Type     string `parquet:"type,dict"`
	Unit     string `parquet:"unit,dict"`
	// PeriodType and PeriodUnit come from the latest profile.
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	// Kind is delta, gauge or cumulative, as the values arrived.
	Kind string `parquet:"kind,dict"`
	// Resource and Attributes are sets of attributes of the dictionary.
	Resource   int32 `parquet:"resource_set"`
	Attributes int32 `parquet:"attribute_set"`
	// Position is the position of the sample type in its pprof.
	Position int32 `parquet:"position"`
	From     int64 `parquet:"from,timestamp(nanosecond)"`
	Until    int64 `parquet:"until,timestamp(nanosecond)"`
	// Names are not those of columns of profiles.parquet, with which people join them. Start and End are the time for
	// which its profiles count.
	Start int64 `parquet:"first_start,timestamp(nanosecond)"`
	End   int64 `parquet:"last_end,timestamp(nanosecond)"`
	// FirstProfile and FirstSample are the first rows in profiles.parquet and samples.parquet, and Profiles and Samples
	// how many there are.
	FirstProfile int64 `parquet:"first_profile"`
	Profiles     int   `parquet:"profiles"`
	FirstSample  int64 `parquet:"first_sample"`
	Samples      int   `parquet:"sample_rows"`
	Total        int64 `parquet:"sum"`
	// Flags is the union of the flags of its profiles.
	Flags int32 `parquet:"flags"`
	// Moved counts the profiles that are stored under a time other than their own.
	Moved int `parquet:"moved"`
	// Timestamps reports that samples have times of their own.
	Timestamps bool `parquet:"timestamps"`
}

// Profile is a row of profiles.parquet. Times are Unix nanoseconds.
type Profile struct {
	Block  string `parquet:"block,dict"`
	Series int32  `parquet:"series,delta"`
	// Time and DurationNanos are as the profile states them. Start and End bound the time for which it counts.
	Time          int64  `parquet:"time,timestamp(nanosecond),delta"`
	DurationNanos int64  `parquet:"duration_nanos,delta"`
	Start         int64  `parquet:"start,timestamp(nanosecond),delta"`
	End           int64  `parquet:"end,timestamp(nanosecond),delta"`
	Samples       int32  `parquet:"samples,delta"`
	Total         int64  `parquet:"total,delta"`
	PeriodType    string `parquet:"period_type,dict"`
	PeriodUnit    string `parquet:"period_unit,dict"`
	Period        int64  `parquet:"period,delta"`
	// AttributeSet and ScopeSet are sets of attributes: the profile's, and those of its scope that a pprof needs.
	AttributeSet int32 `parquet:"attribute_set,delta"`
	ScopeSet     int32 `parquet:"scope_attribute_set,delta"`
	Position     int32 `parquet:"position,delta"`
	Kind         int32 `parquet:"kind,delta"`
	Flags        int32 `parquet:"flags,delta"`
}

// The flags of a profile.
const (
	HasAttributes int32 = 1 << iota
	HasLinks
	HasTimestamps
	// IsMoved marks a profile that is kept under its time of arrival.
	IsMoved
	// IsBaseline marks the first cumulative profile of a series, which has the totals since the process began.
	IsBaseline
	// IsReset marks a cumulative profile that has smaller values than the one before.
	IsReset
)

// first and last return the start and the end of the profile as lists have them: a gauge is of a moment, after its
// interval.
func (p *Profile) first() int64 {
	if kind.Values(p.Kind) == kind.Gauge {
		return p.Start - p.DurationNanos
	}
	return p.Start
}

func (p *Profile) last() int64 {
	if kind.Values(p.Kind) == kind.Gauge {
		return p.Start
	}
	return p.End
}

// sample is a row of samples.parquet.
type sample struct {
	Block         string `parquet:"block,dict"`
	Series        int32  `parquet:"series,delta"`
	Time          int64  `parquet:"time,timestamp(nanosecond),delta"`
	DurationNanos int64  `parquet:"duration_nanos,delta"`
	Stack         int32  `parquet:"stack,delta"`
	Value         int64  `parquet:"value"`
	AttributeSet  int32  `parquet:"attribute_set,delta"`
	// Timestamp is the time of the observation, or null.
	Timestamp int64  `parquet:"timestamp,optional,timestamp(nanosecond),delta"`
	TraceID   []byte `parquet:"trace_id,optional"`
	SpanID    []byte `parquet:"span_id,optional"`
}

// The columns of samples.parquet by position.
const (
	stackColumn     = 4
	valueColumn     = 5
	setColumn       = 6
	timestampColumn = 7
	traceColumn     = 8
	spanColumn      = 9
)

// seriesRow is a row of series.parquet, with the attributes of the resource and of the profiles, as strings.
type seriesRow struct {
	Block       string `parquet:"block,dict"`
	Number      int32  `parquet:"series"`
	ServiceName string `parquet:"service_name,dict"`
	Series
	Labels map[string]string `parquet:"labels"`
}

type labelsRow struct {
	Labels map[string]string `parquet:"labels"`
}

// stackRow is a row of stacks.parquet. Frames are leaf first, inlined ones before their callers, at most maxFrames.
type stackRow struct {
	Block         string   `parquet:"block,dict"`
	Stack         int32    `parquet:"stack,delta"`
	StackHash     string   `parquet:"stack_hash"`
	FunctionNames []string `parquet:"function_names,list" parquet-element:",dict"`
	FileNames     []string `parquet:"file_names,list" parquet-element:",dict"`
	LineNumbers   []int64  `parquet:"line_numbers,list" parquet-element:",delta"`
	Addresses     []uint64 `parquet:"addresses,list"`
	MappingNames  []string `parquet:"mapping_names,list" parquet-element:",dict"`
}

// attributeRow is a row of attributes.parquet.
type attributeRow struct {
	Block        string `parquet:"block,dict"`
	AttributeSet int32  `parquet:"attribute_set,delta"`
	Key          string `parquet:"key,dict"`
	Value        string `parquet:"value"`
}
