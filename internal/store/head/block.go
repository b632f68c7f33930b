// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Block holds what arrived in a part of the window, over one dictionary. Only the last block of a store grows.
type Block struct {
	// ID numbers the blocks of a directory, and the files of the log. After is 1 + that of the block in memory before it,
	// or 0 if there was none.
	ID, After uint64
	recorder  recorder

	Dict *dictionary.Dictionary
	// Series are in the order of their arrival; ByKey has their positions.
	Series []Series
	ByKey  map[Key]int32
	// byID has the positions of those that were read from the log.
	byID map[model.SeriesID]int32
	// Metas are what chunks share; byMeta has their positions.
	Metas  []model.Meta
	byMeta map[model.Meta]int32
	// bySet has, for the attributes of profiles, those that are of their series.
	bySet map[dictionary.AttributeSetIndex]OwnAttributes
	// contents are for states.
	contents dictionary.Contents

	Begun time.Time
	// Until is the latest end of a profile, in Unix nanoseconds.
	Until             int64
	Profiles, Samples int
	// chunkBytes is the memory of all chunks, Bytes that of everything.
	chunkBytes, Bytes int
}

// Series has the profiles of a series, whose position in the block is First.
type Series struct {
	model.BlockSeries
	// Use is nil if the series was dropped.
	Use    *Use
	Chunks []Chunk
}

// Key identifies a series in its block: hashes of the attributes of its resource and its profiles, and the strings.
type Key struct {
	Resource, Attributes [sha256.Size]byte
	Profile, Type, Unit  dictionary.StringIndex
}

// OwnAttributes are attributes of profiles that are of their series, in the order of their keys, and their hash.
type OwnAttributes struct {
	Set  dictionary.AttributeSetIndex
	Hash [sha256.Size]byte
}

// SeriesAttributes returns those of the attributes of a profile.
func (e *Block) SeriesAttributes(all dictionary.AttributeSetIndex) OwnAttributes {
	if all == 0 {
		return OwnAttributes{}
	}
	found, ok := e.bySet[all]
	if ok {
		return found
	}
	var set []int32
	for _, i := range e.Dict.AttributeSets.At(all) {
		if kind.IsSeriesAttribute(e.attributeKey(i)) {
			set = append(set, i)
		}
	}
	if len(set) > 0 {
		slices.SortFunc(set, func(x, y int32) int { return strings.Compare(e.attributeKey(x), e.attributeKey(y)) })
		var key []byte
		for _, i := range set {
			one := pcommon.NewMap()
			e.Dict.Attributes.At(dictionary.AttributeIndex(i)).Value.CopyTo(one.PutEmpty(e.attributeKey(i)))
			key = dictionary.AppendMap(key, one)
		}
		found = OwnAttributes{e.Dict.AttributeSets.Intern(set), sha256.Sum256(key)}
	}
	e.bySet[all] = found
	return found
}

func (e *Block) attributeKey(i int32) string {
	return e.Dict.Strings.At(e.Dict.Attributes.At(dictionary.AttributeIndex(i)).Key)
}

// Chunk is one profile, whose position in its series is At, with its samples: see columns.
type Chunk struct {
	model.Profile
	Data []byte
}

const (
	// ChunkBytes is the memory of a chunk without its samples.
	ChunkBytes = 96
	// SeriesBytes estimates the memory of a series of a block without its strings.
	SeriesBytes = 448
)

// New returns an empty block that begins now.
func New(now time.Time) *Block {
	return &Block{
		Dict: dictionary.NewCopying(), ByKey: map[Key]int32{}, byID: map[model.SeriesID]int32{},
		byMeta: map[model.Meta]int32{}, bySet: map[dictionary.AttributeSetIndex]OwnAttributes{}, Begun: now,
	}
}

// Freeze releases the memory that only adding needs.
func (e *Block) Freeze() {
	e.Dict.Freeze()
	e.ByKey, e.byID, e.byMeta, e.bySet, e.recorder = nil, nil, nil, nil, recorder{}
	e.contents = dictionary.Contents{}
	e.Measure()
}

// IsGone reports whether a series was dropped.
func IsGone(sr Series) bool { return sr.Use != nil && sr.Use.IsGone }

// DropGone drops the profiles of series that are gone, and returns their number.
func (e *Block) DropGone() (profiles int) {
	e.Series = slices.Clone(e.Series) // snapshots read the others
	maps.DeleteFunc(e.ByKey, func(_ Key, i int32) bool { return IsGone(e.Series[i]) })
	for i := range e.Series {
		sr := &e.Series[i]
		if !IsGone(*sr) {
			continue
		}
		profiles += sr.Profiles
		e.Samples -= sr.Samples
		e.chunkBytes -= cap(sr.Chunks) * ChunkBytes
		for k := range sr.Chunks {
			e.chunkBytes -= cap(sr.Chunks[k].Data)
		}
		*sr = Series{BlockSeries: model.BlockSeries{First: int64(i)}}
	}
	e.Profiles -= profiles
	e.Measure()
	return profiles
}

// Measure brings the memory of the block up to date.
func (e *Block) Measure() {
	e.Bytes = e.Dict.MemoryBytes() + e.contents.MemoryBytes() + e.chunkBytes + len(e.Series)*SeriesBytes +
		len(e.Metas)*2*64 + len(e.bySet)*128
}

// hash returns a hash of observations that is the same in all blocks.
func (e *Block) hash(c *Encoder) uint64 {
	e.contents.Update(e.Dict)
	return c.hash(&e.contents)
}

// Meta returns the position of a Meta, which it adds if it is new.
func (e *Block) Meta(m model.Meta) int32 {
	i, ok := e.byMeta[m]
	if !ok {
		i = int32(len(e.Metas))
		e.Metas = append(e.Metas, m)
		e.byMeta[m] = i
	}
	return i
}

// AddSeries adds a series, and returns its position.
func (e *Block) AddSeries(sr model.BlockSeries, use *Use) int32 {
	sr.First = int64(len(e.Series))
	e.Series = append(e.Series, Series{BlockSeries: sr, Use: use})
	return int32(sr.First)
}

// Add adds a profile to a series.
func (e *Block) Add(sr *Series, c Chunk) {
	if len(sr.Chunks) == cap(sr.Chunks) {
		// Grow by a quarter: doubling would waste much memory in long series.
		grown := make([]Chunk, len(sr.Chunks), len(sr.Chunks)+max(1, len(sr.Chunks)/4))
		copy(grown, sr.Chunks)
		e.chunkBytes += (cap(grown) - cap(sr.Chunks)) * ChunkBytes
		sr.Chunks = grown
	}
	c.At = int64(len(sr.Chunks))
	sr.Chunks = append(sr.Chunks, c)
	sr.Count(&c.Profile, &e.Metas[c.MetaAt])
	sr.Bytes += cap(c.Data) + ChunkBytes
	e.chunkBytes += cap(c.Data)
	e.Profiles++
	e.Samples += int(c.Samples)
	e.Until = max(e.Until, c.Last())
}
