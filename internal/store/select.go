// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// Attribute is a key with its value as a string.
type Attribute struct{ Key, Value string }

// Selection defines the samples of a query.
type Selection struct {
	Service, Profile string
	// Type is a sample type, `cpu` or `cpu/nanoseconds`. Empty means the profile's default.
	Type string
	// From and Until are Unix nanoseconds. 0 means no bound. A profile belongs to the selection by the part of its time that lies in
	// [From, Until); if it has timestamps, the observations inside do.
	From, Until int64
	// Attributes must all match, on the profile, the resource or the sample. Of several with one key, one must match.
	Attributes []Attribute
	// GroupBy is the key of an attribute whose values divide the answer into groups, or empty.
	GroupBy string
	// LastState selects the last state of each instance instead of the mean.
	LastState bool
	// Timestamps makes Merge keep the time of each observation. Otherwise observations of one stack are added up.
	Timestamps bool
	// before is 0, or leaves out profiles of which no observation, which lasts for its value, can have begun before it.
	before int64
	// Meter reserves the memory of the query before it is taken, and has that of the result afterwards; nil means no bound. A comparison
	// uses that of its first selection.
	Meter *size.Meter
}

// ErrNothing is wrapped by errors for selections without profiles.
var ErrNothing = errors.New("no such profiles")

// ErrTooLarge is wrapped by errors for answers that would need too much memory.
var ErrTooLarge = errors.New("the answer would be too large")

// SampleType is the type and unit of a profile's values.
type SampleType struct{ Type, Unit string }

// String returns `cpu/nanoseconds`.
func (t SampleType) String() string { return t.Type + "/" + t.Unit }

// is reports whether a selection that names a type, or none, selects this one.
func (t SampleType) is(name string) bool { return name == "" || name == t.Type || name == t.String() }

// weightedChunk is one chunk of the answer and the weight of its values.
type weightedChunk struct {
	block  int
	series *series
	chunk  *chunk
	weight float64
}

// seriesHistory is a series with all its chunks, in the order of their starts.
type seriesHistory struct {
	chunks []weightedChunk
	values kind.Values
}

// resolveTypes returns the sample type that a selection names, or else the profile's default, or all of them, in the order in which its pprof
// had them.
func (v *view) resolveTypes(sel *Selection, all bool) (types []SampleType, err error) {
	var list []ProfileInfo
	if sel.Service != "" && sel.Profile != "" {
		list = v.profiles(sel.Service, sel.Profile, func(*ProfileInfo, *series) {})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: service %q has no profile %q", ErrNothing, Shorten(sel.Service), Shorten(sel.Profile))
	}
	for _, p := range list {
		if all || p.Type.is(sel.Type) && (sel.Type != "" || p.Default) {
			types = append(types, p.Type)
		}
	}
	switch {
	case all:
		return types, nil
	case len(types) > 0:
		return types[:1], nil // of those that differ in their units
	}
	var names []string
	for _, p := range list[:min(len(list), maxNamedTypes)] {
		names = append(names, Shorten(p.Type.String()))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return nil, fmt.Errorf("%w: profile %q has no sample type %q; it has %s",
		ErrNothing, Shorten(sel.Profile), Shorten(sel.Type), strings.Join(names, ", "))
}

const maxNamedTypes = 20

// read returns the sample types that a selection names, and the reader of their observations. It loads what the blocks on disk have of them.
func (v *view) read(sel *Selection, all bool) ([]SampleType, *reader, error) {
	types, err := v.resolveTypes(sel, all)
	if err != nil {
		return nil, nil, err
	}
	err = v.loadParts(sel, func(in *blockfile.Series) bool {
		return in.Profile == sel.Profile && (all || types[0] == SampleType{in.Type, in.Unit})
	})
	if err != nil {
		return nil, nil, err
	}
	filters, err := v.filters(sel)
	return types, &reader{sel: sel, filters: filters, groups: newGroups(len(v.blocks)), memory: v.memory}, err
}

// loadParts adds what the blocks on disk have of a selection to the blocks of the view. A damaged one is taken out of the store.
func (v *view) loadParts(sel *Selection, wanted func(*blockfile.Series) bool) error {
	var parts []*block
	q := &partQuery{service: sel.Service, from: sel.From, until: sel.Until, before: sel.before, wanted: wanted, withDictionary: true}
	if sel.From != 0 {
		q.hold = 2 * maxGaugeInterval
		for _, d := range v.disk {
			q.hold = max(q.hold, 2*d.Step)
		}
	}
	v.memory.progress.begin(len(v.disk))
	for _, d := range v.disk {
		part, err := d.loadPart(q, v.memory)
		if err := cmp.Or(v.withoutDamaged(nil, err), v.memory.Check()); err != nil {
			return err
		}
		if part == nil {
			v.memory.progress.read(2) // it has nothing of this
		} else {
			v.memory.progress.read(1)
			parts = append(parts, part)
		}
	}
	v.blocks = append(parts, v.blocks...)
	return nil
}

// forgetParts frees the dictionaries of the blocks that were loaded. The view reads no more samples.
func (v *view) forgetParts() {
	for _, e := range v.blocks {
		if e.disk != nil {
			v.memory.Release(e.dict.MemoryBytes() + e.disk.service.Dictionary.Plain)
		}
	}
	v.blocks = nil
}

// load reads the samples of chunks that are on disk. Chunks of a damaged block, which is taken out of the store, have none.
func (v *view) load(weighted []weightedChunk) error {
	if v.isEngine {
		return nil
	}
	byBlock := make([][]*chunk, len(v.blocks))
	for i := range weighted {
		if w := &weighted[i]; w.chunk.data == nil && w.chunk.samples > 0 {
			byBlock[w.block] = append(byBlock[w.block], w.chunk)
		}
	}
	for i, chunks := range byBlock {
		if len(chunks) == 0 {
			continue
		}
		slices.SortFunc(chunks, func(a, b *chunk) int { return cmp.Compare(a.row, b.row) })
		chunks = slices.Compact(chunks)
		if err := v.withoutDamaged(chunks, v.blocks[i].load(chunks, v.memory)); err != nil {
			return err
		}
	}
	return nil
}

// withoutDamaged takes a block out of the store if err says that it is damaged, and returns other errors. The chunks that have no samples
// then get none.
func (v *view) withoutDamaged(chunks []*chunk, err error) error {
	var damaged *damagedBlock
	if !errors.As(err, &damaged) {
		return err
	}
	v.store.drop(damaged.block, err)
	for _, c := range chunks {
		if c.data == nil {
			c.samples, c.total = 0, 0
		}
	}
	return nil
}

// Shorten cuts a string that a client or a producer chose, for a message.
func Shorten(s string) string { return dictionary.Shorten(s, 100) }

func (v *view) instances(sel *Selection, t SampleType, filters []*filter) ([]*seriesHistory, error) {
	byID := map[seriesID]*seriesHistory{}
	var list []*seriesHistory
	for n, e := range v.blocks {
		strs := &e.dict.Strings
		service, ok1 := strs.Lookup(sel.Service)
		profile, ok2 := strs.Lookup(sel.Profile)
		typ, ok3 := strs.Lookup(t.Type)
		unit, ok4 := strs.Lookup(t.Unit)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			continue
		}
		for i := range e.series {
			sr := &e.series[i]
			if len(sr.chunks) == 0 || sr.service != service || sr.profile != profile || sr.typ != typ || sr.unit != unit ||
				!filters[n].canMatch(sr) {
				continue
			}
			in := byID[sr.id]
			if in == nil {
				in = &seriesHistory{}
				byID[sr.id] = in
				list = append(list, in)
			}
			if err := v.memory.Take(historyBytes * len(sr.chunks)); err != nil {
				return nil, err
			}
			in.chunks = slices.Grow(in.chunks, len(sr.chunks))
			for k := range sr.chunks {
				in.chunks = append(in.chunks, weightedChunk{block: n, series: sr, chunk: &sr.chunks[k], weight: 1})
			}
			in.values = sr.values
		}
	}
	byStart := func(a, b weightedChunk) int { return cmp.Compare(a.chunk.start, b.chunk.start) }
	for _, in := range list {
		if !slices.IsSortedFunc(in.chunks, byStart) {
			slices.SortStableFunc(in.chunks, byStart)
		}
	}
	return list, nil
}

const (
	// historyBytes is the memory of a chunk in its series, chosenBytes that of one among those of all series.
	historyBytes = 48
	chosenBytes  = weightedChunkBytes - historyBytes
)

// overlap returns the part of [start, until) that lies in the selected time, and whether there is one. A time without a length has itself.
func (sel *Selection) overlap(start, until int64) (from, end int64, ok bool) {
	from, end = max(start, sel.From), until
	if sel.Until != 0 {
		end = min(end, sel.Until)
	}
	return from, end, from < end || start == until && from == start && (sel.Until == 0 || start < sel.Until)
}

// holds returns until when the gauge in.chunks[i] counts: until the next one of the selection if that comes within two intervals, otherwise
// for one.
func (in *seriesHistory) holds(sel *Selection, i int) int64 {
	c := in.chunks[i].chunk
	if i+1 < len(in.chunks) {
		if next := in.chunks[i+1].chunk.start; next <= c.end && (sel.Until == 0 || next < sel.Until) {
			return next
		}
	}
	return c.start + c.interval()
}

// choose returns the chunks of a selection with their weights, its sample type's values, and an error if the query has ended.
//
// A delta counts by the part of its time that is selected. A gauge counts by the part of the selected time for which it holds, which is
// that for which any of them does. Baselines count only if there is nothing else: they are older than the selection.
func (v *view) choose(sel *Selection, t SampleType, filters []*filter) (chunks []weightedChunk, values kind.Values, err error) {
	instances, err := v.instances(sel, t, filters)
	if err != nil {
		return nil, values, err
	}
	var baselines []weightedChunk
	g := gauges{from: math.MaxInt64, until: math.MinInt64}
	for _, in := range instances {
		values = shownValues(in.values)
		if err := v.memory.Take(chosenBytes * len(in.chunks)); err != nil {
			return nil, values, err
		}
		for i, w := range in.chunks {
			c := w.chunk
			end := c.end
			if c.values == kind.Gauge {
				end = in.holds(sel, i)
			}
			from, until, ok := sel.overlap(c.start, end)
			switch {
			case !ok:
			case c.values == kind.Gauge:
				g.add(w, from, until, sel.LastState && g.series == in)
				g.series = in
			case c.flags&isBaseline != 0:
				baselines = append(baselines, w)
			default:
				if c.flags&(hasTimestamps|isMoved) != hasTimestamps && until-from < end-c.start {
					w.weight = float64(until-from) / float64(end-c.start)
				}
				chunks = append(chunks, w)
			}
		}
	}
	if chunks = append(chunks, g.weigh(sel.LastState)...); len(chunks) == 0 {
		chunks = baselines
	}
	return chunks, values, nil
}

// gauges are the selected gauges, and the time that they cover.
type gauges struct {
	chunks []weightedChunk
	spans  []gaugeSpan
	// from and until are the first start and the last end of the spans.
	from, until int64
	series      *seriesHistory
}

// gaugeSpan is the selected time for which a gauge holds.
type gaugeSpan struct{ from, until int64 }

// add adds a gauge, in place of the one before if replaces is true.
func (g *gauges) add(w weightedChunk, from, until int64, replaces bool) {
	if replaces {
		g.chunks, g.spans = g.chunks[:len(g.chunks)-1], g.spans[:len(g.spans)-1]
	}
	g.chunks, g.spans = append(g.chunks, w), append(g.spans, gaugeSpan{from, until})
	g.from, g.until = min(g.from, from), max(g.until, until)
}

func (g *gauges) weigh(isLast bool) []weightedChunk {
	for i, span := range g.spans {
		if whole := g.until - g.from; !isLast && whole > 0 {
			g.chunks[i].weight = float64(span.until-span.from) / float64(whole)
		}
	}
	return g.chunks
}

// shownValues returns what values are in answers.
func shownValues(v kind.Values) kind.Values {
	if v == kind.Cumulative {
		return kind.Delta
	}
	return v
}

// filter decides, for one block, which samples have the attributes of a selection. Whoever reads samples by it checks the memory.
type filter struct {
	dict   *dictionary.Dictionary
	memory *Memory
	keys   []filterKey
	// sets has the results of sample.
	sets map[filterSet]bool
	// series has the results of seriesValue, values those of valueAt: very many series and samples can share a resource of
	// many attributes, or an attribute with a long list.
	series map[seriesAttributeKey]attributeValue
	values map[dictionary.AttributeIndex]string
	// strings has the results of lookupKey: very many samples are looked at, and few keys.
	strings map[string]stringOf
	// groupKey is the key of GroupBy, if hasGroupKey reports that the block has it.
	groupKey    dictionary.StringIndex
	hasGroupKey bool
}

type filterKey struct {
	key    dictionary.StringIndex
	known  bool
	values []string
}

// seriesAttributeKey is a key on series of a resource and attributes.
type seriesAttributeKey struct {
	resource, attributes dictionary.AttributeSetIndex
	key                  dictionary.StringIndex
}

// stringOf is a string of a dictionary, if has reports that it is there.
type stringOf struct {
	index dictionary.StringIndex
	has   bool
}

func (f *filter) lookupKey(key string) (dictionary.StringIndex, bool) {
	found, ok := f.strings[key]
	if !ok {
		found.index, found.has = f.dict.Strings.Lookup(key)
		f.strings[key] = found
	}
	return found.index, found.has
}

// attributeValue is the value of an attribute as a string, if has reports that there is one.
type attributeValue struct {
	value string
	has   bool
}

type filterSet struct {
	set dictionary.AttributeSetIndex
	// required has bit i set if the sample must have key i.
	required uint64
}

const maxFilterKeys = 32

func (v *view) filters(sel *Selection) ([]*filter, error) {
	values := map[string][]string{}
	var keys []string
	for _, a := range sel.Attributes {
		if _, ok := values[a.Key]; !ok {
			keys = append(keys, a.Key)
		}
		values[a.Key] = append(values[a.Key], a.Value)
	}
	if len(keys) > maxFilterKeys {
		return nil, fmt.Errorf("a query may have %d attributes, found %d", maxFilterKeys, len(keys))
	}
	filters := make([]*filter, len(v.blocks))
	for i, e := range v.blocks {
		f := newFilter(e.dict, v.memory)
		for _, key := range keys {
			k := filterKey{values: values[key]}
			k.key, k.known = e.dict.Strings.Lookup(key)
			f.keys = append(f.keys, k)
		}
		if sel.GroupBy != "" {
			f.groupKey, f.hasGroupKey = e.dict.Strings.Lookup(sel.GroupBy)
		}
		filters[i] = f
	}
	return filters, nil
}

func newFilter(dict *dictionary.Dictionary, m *Memory) *filter {
	return &filter{
		dict: dict, memory: m, sets: map[filterSet]bool{}, series: map[seriesAttributeKey]attributeValue{}, values: map[dictionary.AttributeIndex]string{},
		strings: map[string]stringOf{},
	}
}

func (f *filter) value(set dictionary.AttributeSetIndex, key dictionary.StringIndex) (string, bool) {
	for _, i := range f.dict.AttributeSets.At(set) {
		if f.dict.Attributes.At(dictionary.AttributeIndex(i)).Key == key {
			return f.valueAt(dictionary.AttributeIndex(i)), true
		}
	}
	return "", false
}

func (f *filter) valueAt(i dictionary.AttributeIndex) string {
	value, ok := f.values[i]
	if !ok {
		value = f.dict.Attributes.At(i).Value.AsString()
		_ = f.memory.Take(cacheBytes + len(value))
		f.values[i] = value
	}
	return value
}

// seriesValue returns the value of a key on the profiles of a series, or else on its resource. A resource without service.name has
// that of the series.
func (f *filter) seriesValue(sr *series, key dictionary.StringIndex) (string, bool) {
	at := seriesAttributeKey{sr.resource, sr.attributes, key}
	known, ok := f.series[at]
	if !ok {
		_ = f.memory.Take(cacheBytes)
		if known.value, known.has = f.value(sr.attributes, key); !known.has {
			known.value, known.has = f.value(sr.resource, key)
		}
		f.series[at] = known
	}
	if !known.has && f.dict.Strings.At(key) == "service.name" {
		return f.dict.Strings.At(sr.service), true
	}
	return known.value, known.has
}

// canMatch reports whether samples of the series can have the attributes.
func (f *filter) canMatch(sr *series) bool {
	for _, k := range f.keys {
		if !k.known {
			return false
		}
		if value, ok := f.seriesValue(sr, k.key); ok && !slices.Contains(k.values, value) {
			return false
		}
	}
	return true
}

// required returns the keys that samples must have because their series does not, as bits.
func (f *filter) required(sr *series) (required uint64) {
	for i, k := range f.keys {
		if _, ok := f.seriesValue(sr, k.key); !ok {
			required |= 1 << i
		}
	}
	return required
}

// sample reports whether a sample has the attributes that its series lacks.
func (f *filter) sample(set dictionary.AttributeSetIndex, required uint64) bool {
	if required == 0 {
		return true
	}
	key := filterSet{set: set, required: required}
	match, ok := f.sets[key]
	if !ok {
		_ = f.memory.Take(cacheBytes)
		match = true
		for i, k := range f.keys {
			if required&(1<<i) != 0 {
				value, has := f.value(set, k.key)
				match = match && has && slices.Contains(k.values, value)
			}
		}
		f.sets[key] = match
	}
	return match
}
