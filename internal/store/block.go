// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

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

// block holds what arrived in a part of the window, over one dictionary. Only the last block of a store grows.
type block struct {
	// id numbers the blocks of a directory, segment is the first file of the log that has a part of it, and logged what
	// the log has.
	id      uint64
	segment int
	logged  logged

	dict *dictionary.Dictionary
	// series are in the order of their arrival; byKey has their positions.
	series []series
	byKey  map[seriesKey]int32
	// metas are what chunks share; byMeta has their positions.
	metas  []model.Meta
	byMeta map[model.Meta]int32
	// bySet has, for the attributes of profiles, those that are of their series.
	bySet map[dictionary.AttributeSetIndex]seriesAttributes

	begun time.Time
	// isFull marks a block that must not grow.
	isFull bool
	// until is the latest end of a profile, in Unix nanoseconds.
	until             int64
	profiles, samples int
	// chunkBytes is the memory of all chunks, bytes that of everything.
	chunkBytes, bytes int
}

// logged is what of a block is in the log.
type logged struct {
	mark          dictionary.Mark
	metas, series int
}

// series has the profiles of a series, whose position in the block is First.
type series struct {
	model.BlockSeries
	// use is nil if the series was dropped.
	use    *seriesUse
	chunks []chunk
}

// seriesKey identifies a series in its block: hashes of the attributes of its resource and its profiles, and the
// strings.
type seriesKey struct {
	resource, attributes [sha256.Size]byte
	profile, typ, unit   dictionary.StringIndex
}

// seriesAttributes are attributes of profiles that are of their series, in the order of their keys, and their hash.
type seriesAttributes struct {
	set  dictionary.AttributeSetIndex
	hash [sha256.Size]byte
}

// seriesAttributes returns those of the attributes of a profile.
func (e *block) seriesAttributes(all dictionary.AttributeSetIndex) seriesAttributes {
	if all == 0 {
		return seriesAttributes{}
	}
	found, ok := e.bySet[all]
	if ok {
		return found
	}
	var set []int32
	for _, i := range e.dict.AttributeSets.At(all) {
		if kind.IsSeriesAttribute(e.attributeKey(i)) {
			set = append(set, i)
		}
	}
	if len(set) > 0 {
		slices.SortFunc(set, func(x, y int32) int { return strings.Compare(e.attributeKey(x), e.attributeKey(y)) })
		var key []byte
		for _, i := range set {
			one := pcommon.NewMap()
			e.dict.Attributes.At(dictionary.AttributeIndex(i)).Value.CopyTo(one.PutEmpty(e.attributeKey(i)))
			key = dictionary.AppendMap(key, one)
		}
		found = seriesAttributes{e.dict.AttributeSets.Intern(set), sha256.Sum256(key)}
	}
	e.bySet[all] = found
	return found
}

func (e *block) attributeKey(i int32) string {
	return e.dict.Strings.At(e.dict.Attributes.At(dictionary.AttributeIndex(i)).Key)
}

// chunk is one profile, whose position in its series is At, with its samples: see columns.
type chunk struct {
	model.Profile
	data []byte
}

const (
	chunkBytes = 96
	// seriesBytes estimates the memory of a series of a block without its strings.
	seriesBytes = 448
)

func newBlock(now time.Time) *block {
	return &block{
		dict: dictionary.NewCopying(), byKey: map[seriesKey]int32{}, byMeta: map[model.Meta]int32{},
		bySet: map[dictionary.AttributeSetIndex]seriesAttributes{}, begun: now,
	}
}

// freeze releases the memory that only adding needs.
func (e *block) freeze() {
	e.dict.Freeze()
	e.byKey, e.byMeta, e.bySet = nil, nil, nil
	e.measure()
}

// clone returns a copy of a block that does not grow, with the same dictionary and profiles.
func (e *block) clone() *block {
	return &block{
		id: e.id, segment: e.segment, logged: e.logged, dict: e.dict, series: e.series, metas: e.metas, begun: e.begun,
		until: e.until, profiles: e.profiles, samples: e.samples, chunkBytes: e.chunkBytes, bytes: e.bytes,
	}
}

func isGone(sr series) bool { return sr.use != nil && sr.use.isGone }

// dropGone drops the profiles of series that are gone, and returns their number.
func (e *block) dropGone() (profiles int) {
	e.series = slices.Clone(e.series) // snapshots read the others
	maps.DeleteFunc(e.byKey, func(_ seriesKey, i int32) bool { return isGone(e.series[i]) })
	for i := range e.series {
		sr := &e.series[i]
		if !isGone(*sr) {
			continue
		}
		profiles += sr.Profiles
		e.samples -= sr.Samples
		e.chunkBytes -= cap(sr.chunks) * chunkBytes
		for k := range sr.chunks {
			e.chunkBytes -= cap(sr.chunks[k].data)
		}
		*sr = series{BlockSeries: model.BlockSeries{First: int64(i)}}
	}
	e.profiles -= profiles
	e.measure()
	return profiles
}

func (e *block) measure() {
	e.bytes = e.dict.MemoryBytes() + e.chunkBytes + len(e.series)*seriesBytes + len(e.metas)*2*64 + len(e.bySet)*128
}

func (e *block) meta(m model.Meta) int32 {
	i, ok := e.byMeta[m]
	if !ok {
		i = int32(len(e.metas))
		e.metas = append(e.metas, m)
		e.byMeta[m] = i
	}
	return i
}

// addSeries adds a series, and returns its position.
func (e *block) addSeries(sr model.BlockSeries, use *seriesUse) int32 {
	sr.First = int64(len(e.series))
	e.series = append(e.series, series{BlockSeries: sr, use: use})
	return int32(sr.First)
}

func (e *block) add(sr *series, c chunk) {
	if len(sr.chunks) == cap(sr.chunks) {
		// Grow by a quarter: doubling would waste much memory in long series.
		grown := make([]chunk, len(sr.chunks), len(sr.chunks)+max(1, len(sr.chunks)/4))
		copy(grown, sr.chunks)
		e.chunkBytes += (cap(grown) - cap(sr.chunks)) * chunkBytes
		sr.chunks = grown
	}
	if c.At = int64(len(sr.chunks)); c.At == 0 {
		sr.From, sr.Until, sr.Start, sr.End = c.First(), c.Last(), c.Start, c.End
	}
	sr.chunks = append(sr.chunks, c)
	m, strs := &e.metas[c.Meta], &e.dict.Strings
	sr.Position, sr.Period = m.Position, model.SampleType{Type: strs.At(m.PeriodType), Unit: strs.At(m.PeriodUnit)}
	sr.Values, sr.Flags = c.Values, sr.Flags|c.Flags
	sr.Profiles, sr.Samples, sr.Bytes, sr.Total = sr.Profiles+1, sr.Samples+int(c.Samples),
		sr.Bytes+cap(c.data)+chunkBytes, sr.Total+c.Total
	sr.From, sr.Until = min(sr.From, c.First()), max(sr.Until, c.Last())
	sr.Start, sr.End = min(sr.Start, c.Start), max(sr.End, c.End)
	sr.Timestamps = sr.Timestamps || c.IsTimed()
	if c.Flags&model.IsMoved != 0 {
		sr.Moved++
	}
	e.chunkBytes += cap(c.data)
	e.profiles++
	e.samples += int(c.Samples)
	e.until = max(e.until, c.Last())
}
