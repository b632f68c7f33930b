// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otep239

// The messages of the representations that OTEP 239 compares, with the field numbers of
// opentelemetry-proto-profile at 622c165 and as Go values in the shape that generated code has: that decides how many
// objects there are.

type keyValue struct {
	Key   string   `p:"1"`
	Value anyValue `p:"2"`
}

// anyValue is a text behind a pointer, since it is one of several types.
type anyValue struct {
	Text *string `p:"1"`
}

// wrapper is ProfilesData with one profile.
type wrapper struct {
	Resources []*resource `p:"1"`
}

type resource struct {
	Resource struct{} `p:"1"`
	Scopes   []*scope `p:"2"`
	Schema   string   `p:"3"`
}

type scope struct {
	Scope    struct{}     `p:"1"`
	Profiles []*container `p:"2"`
}

// container is Profile, with one of several alternatives in it.
type container struct {
	ID           []byte               `p:"1"`
	Pprof        *pprofProfile        `p:"12"`
	Denormalized *denormalizedProfile `p:"8"`
	Normalized   *normalizedProfile   `p:"9"`
	Arrays       *arraysProfile       `p:"10"`
	Extended     *extendedProfile     `p:"11"`
}

type pprofProfile struct {
	SampleType  []*pprofValueType `p:"1"`
	Sample      []*pprofSample    `p:"2"`
	Mapping     []*pprofMapping   `p:"3"`
	Location    []*pprofLocation  `p:"4"`
	Function    []*pprofFunction  `p:"5"`
	StringTable []string          `p:"6"`
}

type pprofValueType struct {
	Type int64 `p:"1"`
	Unit int64 `p:"2"`
}

type pprofSample struct {
	LocationID []uint64      `p:"1"`
	Value      []int64       `p:"2"`
	Label      []*pprofLabel `p:"3"`
}

type pprofLabel struct {
	Key int64 `p:"1"`
	Str int64 `p:"2"`
	Num int64 `p:"3"`
}

type pprofMapping struct {
	ID              uint64 `p:"1"`
	Start           uint64 `p:"2"`
	Limit           uint64 `p:"3"`
	Offset          uint64 `p:"4"`
	Filename        int64  `p:"5"`
	BuildID         int64  `p:"6"`
	HasFunctions    bool   `p:"7"`
	HasFilenames    bool   `p:"8"`
	HasLineNumbers  bool   `p:"9"`
	HasInlineFrames bool   `p:"10"`
}

type pprofLocation struct {
	ID        uint64       `p:"1"`
	MappingID uint64       `p:"2"`
	Address   uint64       `p:"3"`
	Line      []*pprofLine `p:"4"`
}

type pprofLine struct {
	FunctionID uint64 `p:"1"`
	Line       int64  `p:"2"`
}

type pprofFunction struct {
	ID         uint64 `p:"1"`
	Name       int64  `p:"2"`
	SystemName int64  `p:"3"`
	Filename   int64  `p:"4"`
	StartLine  int64  `p:"5"`
}

type denormalizedProfile struct {
	Samples []*denormalizedSample `p:"2"`
}

type denormalizedSample struct {
	Stacktrace *denormalizedStack `p:"1"`
	Attributes []keyValue         `p:"3"`
	Values     []uint64           `p:"5,fixed"`
	Timestamp  uint64             `p:"6,fixed"`
}

type denormalizedStack struct {
	Locations []*denormalizedLocation `p:"1"`
}

type denormalizedLocation struct {
	Address uint64              `p:"2"`
	Line    []*denormalizedLine `p:"3"`
}

type denormalizedLine struct {
	Function *denormalizedFunction `p:"1"`
	Line     int64                 `p:"2"`
}

type denormalizedFunction struct {
	Name       string `p:"1"`
	SystemName string `p:"2"`
	Filename   string `p:"3"`
	StartLine  uint32 `p:"4"`
}

type attributeSet struct {
	Attributes []keyValue `p:"1"`
}

type indexStack struct {
	Locations []uint32 `p:"1"`
}

type indexMapping struct {
	Start    uint64 `p:"1"`
	Limit    uint64 `p:"2"`
	Offset   uint64 `p:"3"`
	Filename uint32 `p:"4"`
	BuildID  uint32 `p:"5"`
}

type indexLocation struct {
	Mapping uint32       `p:"1"`
	Address uint64       `p:"2"`
	Line    []*indexLine `p:"3"`
}

type indexLine struct {
	Function uint32 `p:"1"`
	Line     uint32 `p:"2"`
}

type indexFunction struct {
	Name       uint32 `p:"1"`
	SystemName uint32 `p:"2"`
	Filename   uint32 `p:"3"`
	StartLine  uint32 `p:"4"`
}

type normalizedProfile struct {
	Stacktraces   []*indexStack       `p:"2"`
	Samples       []*normalizedSample `p:"3"`
	Mappings      []*indexMapping     `p:"4"`
	Locations     []*indexLocation    `p:"5"`
	Functions     []*indexFunction    `p:"6"`
	AttributeSets []*attributeSet     `p:"8"`
	StringTable   []string            `p:"9"`
}

type normalizedSample struct {
	Stacktrace    uint32   `p:"1"`
	AttributeSets []uint32 `p:"3"`
	Values        []int64  `p:"4"`
	Timestamp     uint64   `p:"5,fixed"`
}

type arraysProfile struct {
	Stacktraces   []*indexStack       `p:"2"`
	Mappings      []*indexMapping     `p:"4"`
	Locations     []*indexLocation    `p:"5"`
	Functions     []*indexFunction    `p:"6"`
	AttributeSets []*attributeSet     `p:"8"`
	StringTable   []string            `p:"9"`
	ProfileTypes  []*arraysSampleType `p:"10"`
}

type arraysSampleType struct {
	Stacktraces   []uint32 `p:"10"`
	AttributeSets []uint32 `p:"12"`
	Values        []int64  `p:"13"`
	Timestamps    []uint64 `p:"14"`
}

type extendedProfile struct {
	Sample          []*extendedSample `p:"2"`
	Mapping         []*pprofMapping   `p:"3"`
	Location        []*pprofLocation  `p:"4"`
	Function        []*pprofFunction  `p:"5"`
	StringTable     []string          `p:"6"`
	LocationIndices []int64           `p:"15"`
	Attributes      []keyValue        `p:"17"`
}

type extendedSample struct {
	Value      []int64  `p:"2"`
	Start      uint64   `p:"4"`
	Length     uint64   `p:"5"`
	Timestamps []uint64 `p:"8"`
	Attributes []uint64 `p:"10"`
}
