// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
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
	// timestamps, and others only if they came late. 0 means that the block has all profiles.
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

// set returns the index in the dictionary of a set of attributes by its number in the Parquet files. 0 is no attribute.
func set[T ~int32](s *Service, number T) T {
	if number == 0 {
		return 0
	}
	return number - T(s.FirstSet)
}

// numberOf is the reverse of set.
func numberOf[T ~int32](s *Service, set T) T {
	if set == 0 {
		return 0
	}
	return set + T(s.FirstSet)
}

// Range is a part of a file.
type Range struct {
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
	Plain  int    `json:"plain_bytes"`
	CRC    uint32 `json:"crc32c"`
}

// Profile is what a block has of a profile. Its sets of attributes are of the dictionary of its service.
type Profile struct {
	model.Profile
	model.Meta
}

// profileRow is a row of profiles.parquet. There, sets have numbers that are of the block.
type profileRow struct {
	Block  string `parquet:"block,dict"`
	Series int32  `parquet:"series,delta"`
	Profile
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
