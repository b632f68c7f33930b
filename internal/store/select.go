// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// Attribute is a key and the text of a value.
type Attribute struct{ Key, Value string }

// Selection defines the samples of a query.
type Selection struct {
	Service, Profile string
	// Type is a sample type, `cpu` or `cpu/nanoseconds`. Empty means the profile's default.
	Type string
	// From and Until are Unix nanoseconds. 0 means no bound. A profile that overlaps [From, Until) belongs to the
	// selection as a whole; if it has timestamps, only the observations inside do.
	From, Until int64
	// Attributes must all match, on the profile, the resource or the sample. Of several with one key, one must match.
	Attributes []Attribute
	// GroupBy is the key of an attribute whose values divide the answer into groups, or empty.
	GroupBy string
	// LastState selects the last state of each instance instead of the mean.
	LastState bool
	// Timestamps makes Merge keep the time of each observation. Otherwise observations of one stack are added up.
	Timestamps bool
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

// weightedChunk is one chunk of the answer and the weight of its values.
type weightedChunk struct {
	block  int
	series *series
	chunk  *chunk
	weight float64
}

// seriesHistory is a series with all its chunks, in the order of their ends.
type seriesHistory struct {
	chunks []weightedChunk
	values kind.Values
}

// profileName names a profile of a service.
type profileName struct{ service, profile string }

// sampleTypes lists the types that a profile of a service has, in the order in which its pprof had them.
func (v *view) sampleTypes(service, profile string) []SampleType {
	name := profileName{service, profile}
	return v.allSampleTypes(func(other profileName) bool { return other == name })[name]
}

// allSampleTypes does the same for all wanted profiles.
func (v *view) allSampleTypes(wanted func(profileName) bool) map[profileName][]SampleType {
	type found struct {
		position int32 // of the latest profile
		at       int   // in the order in which the types were found
	}
	byName := map[profileName]map[SampleType]*found{}
	for _, e := range v.blocks {
		for i := range e.series {
			sr := &e.series[i]
			strs := &e.dict.Strings
			name := profileName{strs.At(sr.service), strs.At(sr.profile)}
			if len(sr.chunks) == 0 || !wanted(name) {
				continue
			}
			byType := byName[name]
			if byType == nil {
				byType = map[SampleType]*found{}
				byName[name] = byType
			}
			t := SampleType{strs.At(sr.typ), strs.At(sr.unit)}
			position := e.metas[sr.chunks[len(sr.chunks)-1].meta].position
			if f := byType[t]; f == nil {
				byType[t] = &found{position: position, at: len(byType)}
			} else {
				f.position = position
			}
		}
	}
	types := make(map[profileName][]SampleType, len(byName))
	for name, byType := range byName {
		types[name] = slices.SortedFunc(maps.Keys(byType), func(a, b SampleType) int {
			return cmp.Or(cmp.Compare(byType[a].position, byType[b].position), cmp.Compare(byType[a].at, byType[b].at))
		})
	}
	return types
}

// defaultType returns the type that is shown if a query does not name one.
func defaultType(types []SampleType) SampleType {
	if len(types) == 0 {
		return SampleType{}
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Type
	}
	return types[kind.Default(names)]
}

// resolveType returns the sample type that a selection names.
func (v *view) resolveType(sel *Selection) (SampleType, error) {
	types := v.sampleTypes(sel.Service, sel.Profile)
	if len(types) == 0 {
		return SampleType{}, fmt.Errorf("%w: service %q has no profile %q", ErrNothing, Shorten(sel.Service), Shorten(sel.Profile))
	}
	if sel.Type == "" {
		return defaultType(types), nil
	}
	var names []string
	for _, t := range types {
		if t.String() == sel.Type || t.Type == sel.Type {
			return t, nil
		}
		if len(names) < maxNamedTypes {
			names = append(names, Shorten(t.String()))
		}
	}
	if more := len(types) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return SampleType{}, fmt.Errorf("%w: profile %q has no sample type %q; it has %s",
		ErrNothing, Shorten(sel.Profile), Shorten(sel.Type), strings.Join(names, ", "))
}

// maxNamedTypes bounds the sample types that an error lists.
const maxNamedTypes = 20

// read returns the sample type that a selection names, and the reader of its observations.
func (v *view) read(sel *Selection) (SampleType, *reader, error) {
	t, err := v.resolveType(sel)
	if err != nil {
		return t, nil, err
	}
	filters, err := v.filters(sel)
	return t, &reader{sel: sel, filters: filters, groups: newGroups(len(v.blocks)), memory: v.memory}, err
}

// Shorten cuts a text that a client or a producer chose, for a message.
func Shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// instances returns the series of a selection.
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
			if err := v.memory.take(termBytes * len(sr.chunks)); err != nil {
				return nil, err
			}
			for k := range sr.chunks {
				in.chunks = append(in.chunks, weightedChunk{block: n, series: sr, chunk: &sr.chunks[k], weight: 1})
			}
			in.values = sr.values
		}
	}
	byEnd := func(a, b weightedChunk) int { return cmp.Compare(a.chunk.end, b.chunk.end) }
	for _, in := range list {
		if !slices.IsSortedFunc(in.chunks, byEnd) {
			slices.SortStableFunc(in.chunks, byEnd)
		}
	}
	return list, nil
}

// inRange reports whether a chunk overlaps the selected time.
func (sel *Selection) inRange(c *chunk) bool {
	return (sel.Until == 0 || c.start < sel.Until) && (c.end > sel.From || c.start == c.end && c.end == sel.From)
}

// terms returns the chunks of an instance that belong to a selection, with their weights.
func (in *seriesHistory) terms(sel *Selection, resolution time.Duration) (terms []weightedChunk) {
	switch in.values {
	case kind.State:
		return in.states(sel, resolution)
	case kind.Total:
		return in.totals(sel)
	default:
		for _, t := range in.chunks {
			if sel.inRange(t.chunk) {
				terms = append(terms, t)
			}
		}
		return terms
	}
}

// interval estimates the time between the profiles of the instance; 0 means unknown.
func (in *seriesHistory) interval() int64 {
	n := len(in.chunks)
	if n < 2 {
		return 0
	}
	return (in.chunks[n-1].chunk.end - in.chunks[0].chunk.end) / int64(n-1)
}

// states returns the states in the selected time, whose weights add up to 1, or the last one before if it still holds.
func (in *seriesHistory) states(sel *Selection, resolution time.Duration) (terms []weightedChunk) {
	for _, t := range in.chunks {
		if sel.inRange(t.chunk) {
			terms = append(terms, t)
		}
	}
	if len(terms) == 0 {
		holds := max(in.interval()*3/2, int64(resolution))
		for _, t := range in.chunks {
			if t.chunk.end < sel.From && t.chunk.end+holds > sel.From {
				terms = append(terms[:0], t)
			}
		}
	}
	if sel.LastState && len(terms) > 1 {
		terms = terms[len(terms)-1:]
	}
	for i := range terms {
		terms[i].weight = 1 / float64(len(terms))
	}
	return terms
}

// totals returns the last total in the selected time, less the one before it; if a total is smaller than the one
// before, the process has restarted. A single total is returned as it is.
func (in *seriesHistory) totals(sel *Selection) (terms []weightedChunk) {
	if len(in.chunks) == 1 {
		if sel.inRange(in.chunks[0].chunk) {
			return in.chunks
		}
		return nil
	}
	for i, t := range in.chunks {
		if !sel.inRange(t.chunk) {
			continue
		}
		if i == 0 {
			continue // there is nothing to subtract
		}
		before := in.chunks[i-1]
		n := len(terms)
		switch {
		case before.chunk.total > t.chunk.total:
			terms = append(terms, t)
		case n > 0 && terms[n-1].chunk == before.chunk && terms[n-1].weight > 0:
			terms[n-1] = t // a − b + c − a
		default:
			before.weight = -1
			terms = append(terms, before, t)
		}
	}
	return terms
}

// weighStates reduces the weight of instances that existed for a part of the time only. One with a single profile has existed for as long
// as an interval of others; if all have one, only the moments differ.
func weighStates(instances []*seriesHistory, perInstance [][]weightedChunk, resolution time.Duration) {
	from, until := int64(math.MaxInt64), int64(math.MinInt64)
	spans := make([]int64, len(instances))
	longest := int64(0)
	for _, in := range instances {
		longest = max(longest, in.interval())
	}
	if longest == 0 {
		return
	}
	for i, terms := range perInstance {
		if len(terms) == 0 {
			continue
		}
		interval := cmp.Or(instances[i].interval(), longest)
		first, last := terms[0].chunk.end, terms[len(terms)-1].chunk.end+max(interval, int64(resolution))
		spans[i] = last - first
		from, until = min(from, first), max(until, last)
	}
	for i, terms := range perInstance {
		if spans[i] == 0 {
			continue
		}
		share := float64(spans[i]) / float64(until-from)
		if share > 0.9 { // only the moments differ
			continue
		}
		for k := range terms {
			terms[k].weight *= share
		}
	}
}

// choose returns all terms of a selection and its sample type.
func (v *view) choose(sel *Selection, t SampleType, filters []*filter, resolution time.Duration) (terms []weightedChunk, values kind.Values, err error) {
	instances, err := v.instances(sel, t, filters)
	if err != nil {
		return nil, values, err
	}
	perInstance := make([][]weightedChunk, len(instances))
	for i, in := range instances {
		perInstance[i] = in.terms(sel, resolution)
		values = in.values
	}
	if values == kind.State && !sel.LastState {
		weighStates(instances, perInstance, resolution)
	}
	return slices.Concat(perInstance...), values, nil
}

// filter decides, for one block, which samples have the attributes of a selection. Whoever reads samples by it checks the memory.
type filter struct {
	dict   *dictionary.Dictionary
	memory *memory
	keys   []filterKey
	// sets has the results of sample.
	sets map[filterSet]bool
	// series has the results of seriesValue, texts those of text: very many series and samples can share a resource of
	// many attributes, or an attribute with a long list.
	series map[seriesAttributeKey]textOf
	texts  map[dictionary.AttributeIndex]string
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

// textOf is the text of an attribute, if has reports that there is one.
type textOf struct {
	text string
	has  bool
}

type filterSet struct {
	set dictionary.AttributeSetIndex
	// required has bit i set if the sample must have key i.
	required uint64
}

// maxFilterKeys bounds the distinct keys of a selection.
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
		f := &filter{
			dict: e.dict, memory: v.memory, sets: map[filterSet]bool{}, series: map[seriesAttributeKey]textOf{}, texts: map[dictionary.AttributeIndex]string{},
		}
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

// value returns the value of a key in a set of attributes.
func (f *filter) value(set dictionary.AttributeSetIndex, key dictionary.StringIndex) (string, bool) {
	for _, i := range f.dict.AttributeSets.At(set) {
		if f.dict.Attributes.At(dictionary.AttributeIndex(i)).Key == key {
			return f.text(dictionary.AttributeIndex(i)), true
		}
	}
	return "", false
}

// text returns the value of an attribute.
func (f *filter) text(i dictionary.AttributeIndex) string {
	text, ok := f.texts[i]
	if !ok {
		text = f.dict.Attributes.At(i).Value.Text()
		_ = f.memory.take(cacheBytes + len(text))
		f.texts[i] = text
	}
	return text
}

// seriesValue returns the value of a key on the profiles of a series, or else on its resource. A resource without service.name has
// that of the series.
func (f *filter) seriesValue(sr *series, key dictionary.StringIndex) (string, bool) {
	at := seriesAttributeKey{sr.resource, sr.attributes, key}
	known, ok := f.series[at]
	if !ok {
		_ = f.memory.take(cacheBytes)
		if known.text, known.has = f.value(sr.attributes, key); !known.has {
			known.text, known.has = f.value(sr.resource, key)
		}
		f.series[at] = known
	}
	if !known.has && f.dict.Strings.At(key) == "service.name" {
		return f.dict.Strings.At(sr.service), true
	}
	return known.text, known.has
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
		_ = f.memory.take(cacheBytes)
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
