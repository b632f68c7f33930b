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
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// block holds what arrived in a part of the window, over one dictionary. Only the last block of a store grows.
type block struct {
	// id numbers the blocks of a directory, segment is the first file of the log that has a part of it, and logged what the log has.
	id      uint64
	segment int
	logged  logged
	// disk is where the samples of chunks without data are, or nil.
	disk *diskPart

	dict *dictionary.Dictionary
	// series are in the order of their arrival; byKey has their positions.
	series []series
	byKey  map[seriesKey]int32
	// metas are what chunks share; byMeta has their positions.
	metas  []meta
	byMeta map[meta]int32
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

// series holds the profiles of one service, profile, sample type, resource and attributes.
type series struct {
	id seriesID
	// use is nil if the series was dropped.
	use                         *seriesUse
	service, profile, typ, unit dictionary.StringIndex
	resource, attributes        dictionary.AttributeSetIndex
	chunks                      []chunk
	values                      kind.Values

	profiles, samples, bytes, moved int
	from, until                     int64
	timestamps                      bool
	// periodType and periodUnit are those of its latest profile, flags what any of them has.
	periodType, periodUnit dictionary.StringIndex
	flags                  chunkFlags
	// position is that of its latest profile, instance a part of the hash of its resource.
	position int32
	instance uint64
}

// seriesKey identifies a series in its block: hashes of the attributes of its resource and its profiles, and the strings.
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

// meta has the fields of a pprof except its samples. Most profiles of a series share them.
type meta struct {
	periodType, periodUnit dictionary.StringIndex
	period                 int64
	// attributes are the profile's, scope those of its scope that describe a pprof.
	attributes, scope dictionary.AttributeSetIndex
	// position is that of the profile in its scope.
	position int32
}

// chunk is one profile. Times are Unix nanoseconds.
type chunk struct {
	// time and duration are those of the profile.
	time, duration int64
	// start and end are the time for which the profile counts, which differs from its own if that is outside the window: of a delta, when
	// it happened; of what was cumulative, the time since the profile before; of a gauge, two intervals (seriesHistory.holds).
	start, end int64
	total      int64
	// data are the samples: see columns. row is where they are on disk.
	data    []byte
	row     int64
	samples int32
	meta    int32
	values  kind.Values
	flags   chunkFlags
}

// chunkFlags are those of blockfile.
type chunkFlags uint8

const (
	hasAttributes = chunkFlags(blockfile.HasAttributes)
	hasLinks      = chunkFlags(blockfile.HasLinks)
	hasTimestamps = chunkFlags(blockfile.HasTimestamps)
	isMoved       = chunkFlags(blockfile.IsMoved)
	isBaseline    = chunkFlags(blockfile.IsBaseline)
	isReset       = chunkFlags(blockfile.IsReset)
)

const chunkBytes = 96

func newBlock(now time.Time) *block {
	return &block{
		dict: dictionary.NewCopying(), byKey: map[seriesKey]int32{}, byMeta: map[meta]int32{},
		bySet: map[dictionary.AttributeSetIndex]seriesAttributes{}, begun: now,
	}
}

// freeze releases the memory that only adding needs.
func (e *block) freeze() {
	e.dict.Freeze()
	e.byKey, e.byMeta, e.bySet = nil, nil, nil
	e.measure()
}

// first and last return the start and the end of the profile.
func (c *chunk) first() int64 {
	if c.values == kind.Gauge {
		return c.start - c.duration
	}
	return c.start
}

func (c *chunk) last() int64 {
	if c.values == kind.Gauge {
		return c.start
	}
	return c.end
}

// interval returns the time between a gauge and the next one of its series, as far as it is known.
func (c *chunk) interval() int64 { return (c.end - c.start) / 2 }

// snapshot returns the block as it is now, for readers that go on while profiles are added.
func (e *block) snapshot() *block {
	s := e.clone()
	s.dict = e.dict.Snapshot()
	return s
}

// clone returns a copy of a block that does not grow, with the same dictionary and profiles.
func (e *block) clone() *block {
	return &block{
		id: e.id, segment: e.segment, logged: e.logged, disk: e.disk, dict: e.dict, series: slices.Clone(e.series), metas: e.metas, begun: e.begun, until: e.until,
		profiles: e.profiles, samples: e.samples, chunkBytes: e.chunkBytes, bytes: e.bytes,
	}
}

// dropGone drops the profiles of series that are gone, and returns their number.
func (e *block) dropGone() (profiles int) {
	maps.DeleteFunc(e.byKey, func(_ seriesKey, i int32) bool { return isGone(e.series[i]) })
	for i := range e.series {
		sr := &e.series[i]
		if !isGone(*sr) {
			continue
		}
		profiles += sr.profiles
		e.samples -= sr.samples
		e.chunkBytes -= cap(sr.chunks) * chunkBytes
		for k := range sr.chunks {
			e.chunkBytes -= cap(sr.chunks[k].data)
		}
		*sr = series{}
	}
	e.profiles -= profiles
	e.measure()
	return profiles
}

func (e *block) measure() {
	e.bytes = e.dict.MemoryBytes() + e.chunkBytes + len(e.series)*seriesBytes + len(e.metas)*2*64 + len(e.bySet)*128
}

func (e *block) meta(m meta) int32 {
	i, ok := e.byMeta[m]
	if !ok {
		i = int32(len(e.metas))
		e.metas = append(e.metas, m)
		e.byMeta[m] = i
	}
	return i
}

func (e *block) add(sr *series, c chunk) {
	if len(sr.chunks) == cap(sr.chunks) {
		// Grow by a quarter: doubling would waste much memory in long series.
		grown := make([]chunk, len(sr.chunks), len(sr.chunks)+max(1, len(sr.chunks)/4))
		copy(grown, sr.chunks)
		e.chunkBytes += (cap(grown) - cap(sr.chunks)) * chunkBytes
		sr.chunks = grown
	}
	if len(sr.chunks) == 0 {
		sr.from, sr.until = c.first(), c.last()
	}
	sr.chunks = append(sr.chunks, c)
	sr.values = c.values
	sr.profiles++
	m := &e.metas[c.meta]
	sr.position, sr.periodType, sr.periodUnit = m.position, m.periodType, m.periodUnit
	sr.flags |= c.flags
	sr.samples += int(c.samples)
	sr.bytes += cap(c.data) + chunkBytes
	sr.from, sr.until = min(sr.from, c.first()), max(sr.until, c.last())
	sr.timestamps = sr.timestamps || c.flags&(hasTimestamps|isMoved) == hasTimestamps
	if c.flags&isMoved != 0 {
		sr.moved++
	}
	e.chunkBytes += cap(c.data)
	e.profiles++
	e.samples += int(c.samples)
	e.until = max(e.until, c.last())
}
