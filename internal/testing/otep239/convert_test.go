// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otep239

import (
	"fmt"
	"slices"
	"strconv"
)

// timestampLabel is the label for a sample's time in a pprof of the benchmark.
const timestampLabel = "__timestamp__"

// wrap is the message around a profile.
func wrap(c container) *wrapper {
	c.ID = []byte("0123456789abcdef")
	return &wrapper{Resources: []*resource{{Scopes: []*scope{{Profiles: []*container{&c}}}, Schema: "todo"}}}
}

// texts copies the strings that are used, in the order in which they first are.
type texts struct {
	from []string
	to   []string
	seen map[int64]uint32
}

func newTexts(from []string) *texts {
	return &texts{from: from, to: []string{""}, seen: map[int64]uint32{}}
}

func (t *texts) index(i int64) uint32 {
	if i == 0 {
		return 0
	}
	k, ok := t.seen[i]
	if !ok {
		k = uint32(len(t.to))
		t.to, t.seen[i] = append(t.to, t.from[i]), k
	}
	return k
}

func mapAll[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, len(from))
	for i := range from {
		to[i] = convert(from[i])
	}
	return to
}

// labels parts a sample's timestamp from its other labels.
func labels(p *pprofProfile, s *pprofSample) (others []keyValue, timestamp uint64) {
	for _, l := range s.Label {
		if key := p.StringTable[l.Key]; key == timestampLabel {
			timestamp = uint64(l.Num)
		} else {
			value := p.StringTable[l.Str]
			if l.Str == 0 {
				value = fmt.Sprint(l.Num)
			}
			others = append(others, keyValue{Key: key, Value: anyValue{&value}})
		}
	}
	return others, timestamp
}

func toPprof(p *pprofProfile) *wrapper {
	t := newTexts(p.StringTable)
	out := &pprofProfile{
		Mapping:  pprofMappings(p, t),
		Function: pprofFunctions(p, t),
		Location: pprofLocations(p),
	}
	out.Sample = mapAll(p.Sample, func(s *pprofSample) *pprofSample {
		return &pprofSample{LocationID: s.LocationID, Value: slices.Clone(s.Value), Label: mapAll(s.Label, func(l *pprofLabel) *pprofLabel {
			return &pprofLabel{Key: int64(t.index(l.Key)), Str: int64(t.index(l.Str)), Num: l.Num}
		})}
	})
	out.StringTable = t.to
	return wrap(container{Pprof: out})
}

func pprofMappings(p *pprofProfile, t *texts) []*pprofMapping {
	return mapAll(p.Mapping, func(m *pprofMapping) *pprofMapping {
		out := *m
		out.Filename, out.BuildID = int64(t.index(m.Filename)), int64(t.index(m.BuildID))
		return &out
	})
}

func pprofFunctions(p *pprofProfile, t *texts) []*pprofFunction {
	return mapAll(p.Function, func(f *pprofFunction) *pprofFunction {
		return &pprofFunction{
			ID: f.ID, Name: int64(t.index(f.Name)), SystemName: int64(t.index(f.SystemName)), Filename: int64(t.index(f.Filename)), StartLine: f.StartLine,
		}
	})
}

func pprofLocations(p *pprofProfile) []*pprofLocation {
	return mapAll(p.Location, func(l *pprofLocation) *pprofLocation {
		return &pprofLocation{ID: l.ID, MappingID: l.MappingID, Address: l.Address, Line: mapAll(l.Line, func(line *pprofLine) *pprofLine {
			return &pprofLine{FunctionID: line.FunctionID, Line: line.Line}
		})}
	})
}

func toDenormalized(p *pprofProfile) *wrapper {
	out := &denormalizedProfile{}
	out.Samples = mapAll(p.Sample, func(s *pprofSample) *denormalizedSample {
		attributes, timestamp := labels(p, s)
		return &denormalizedSample{
			Stacktrace: &denormalizedStack{Locations: mapAll(s.LocationID, func(id uint64) *denormalizedLocation {
				return denormalizedLocationOf(p, p.Location[id-1])
			})},
			Attributes: attributes, Timestamp: timestamp,
			Values: mapAll(s.Value, func(v int64) uint64 { return uint64(v) }),
		}
	})
	return wrap(container{Denormalized: out})
}

func denormalizedLocationOf(p *pprofProfile, l *pprofLocation) *denormalizedLocation {
	return &denormalizedLocation{Line: mapAll(l.Line, func(line *pprofLine) *denormalizedLine {
		f := p.Function[line.FunctionID-1]
		return &denormalizedLine{Line: line.Line, Function: &denormalizedFunction{
			Name: p.StringTable[f.Name], SystemName: p.StringTable[f.SystemName], Filename: p.StringTable[f.Filename], StartLine: uint32(f.StartLine),
		}}
	})}
}

// indexed is what normalized and arrays have in common.
type indexed struct {
	p     *pprofProfile
	texts *texts

	mappings  []*indexMapping
	functions []*indexFunction
	locations []*indexLocation
	stacks    []*indexStack
	sets      []*attributeSet
	seenStack map[string]uint32
	seenSet   map[string]uint32
}

func newIndexed(p *pprofProfile) *indexed {
	x := &indexed{p: p, texts: newTexts(p.StringTable), seenStack: map[string]uint32{}, seenSet: map[string]uint32{}}
	x.functions = mapAll(p.Function, func(f *pprofFunction) *indexFunction {
		return &indexFunction{x.texts.index(f.Name), x.texts.index(f.SystemName), x.texts.index(f.Filename), uint32(f.StartLine)}
	})
	x.mappings = mapAll(p.Mapping, func(m *pprofMapping) *indexMapping {
		return &indexMapping{m.Start, m.Limit, m.Offset, x.texts.index(m.Filename), x.texts.index(m.BuildID)}
	})
	x.locations = mapAll(p.Location, func(l *pprofLocation) *indexLocation {
		return &indexLocation{uint32(l.MappingID), l.Address, mapAll(l.Line, func(line *pprofLine) *indexLine {
			return &indexLine{uint32(line.FunctionID), uint32(line.Line)}
		})}
	})
	return x
}

func (x *indexed) stack(s *pprofSample) uint32 {
	key := ""
	for _, id := range s.LocationID { // as the OTEP's code does it, which is most of what it allocates
		key += strconv.FormatUint(id, 10) + ","
	}
	i, ok := x.seenStack[key]
	if !ok {
		i = uint32(len(x.stacks))
		x.seenStack[key] = i
		x.stacks = append(x.stacks, &indexStack{mapAll(s.LocationID, func(id uint64) uint32 { return uint32(id) })})
	}
	return i
}

func (x *indexed) set(attributes []keyValue) uint32 {
	key := ""
	for _, a := range attributes {
		key += a.Key + "=" + *a.Value.Text + ","
	}
	i, ok := x.seenSet[key]
	if !ok {
		i = uint32(len(x.sets))
		x.seenSet[key] = i
		x.sets = append(x.sets, &attributeSet{attributes})
	}
	return i
}

func toNormalized(p *pprofProfile) *wrapper {
	x := newIndexed(p)
	samples := mapAll(p.Sample, func(s *pprofSample) *normalizedSample {
		attributes, timestamp := labels(p, s)
		return &normalizedSample{Stacktrace: x.stack(s), AttributeSets: []uint32{x.set(attributes)}, Values: slices.Clone(s.Value), Timestamp: timestamp}
	})
	return wrap(container{Normalized: &normalizedProfile{
		Stacktraces: x.stacks, Samples: samples, Mappings: x.mappings, Locations: x.locations, Functions: x.functions,
		AttributeSets: x.sets, StringTable: x.texts.to,
	}})
}

func toArrays(p *pprofProfile) *wrapper {
	x := newIndexed(p)
	x.set(nil)
	types := make([]*arraysSampleType, len(p.SampleType))
	for k := range types {
		n := len(p.Sample)
		t := &arraysSampleType{Stacktraces: make([]uint32, n), Values: make([]int64, n)}
		for i, s := range p.Sample {
			attributes, timestamp := labels(p, s)
			t.Stacktraces[i], t.Values[i] = x.stack(s), s.Value[k]
			if set := x.set(attributes); set > 0 {
				if t.AttributeSets == nil {
					t.AttributeSets = make([]uint32, n)
				}
				t.AttributeSets[i] = set
			}
			if timestamp > 0 {
				if t.Timestamps == nil {
					t.Timestamps = make([]uint64, n)
				}
				t.Timestamps[i] = timestamp
			}
		}
		types[k] = t
	}
	return wrap(container{Arrays: &arraysProfile{
		Stacktraces: x.stacks, Mappings: x.mappings, Locations: x.locations, Functions: x.functions,
		AttributeSets: x.sets, StringTable: x.texts.to, ProfileTypes: types,
	}})
}

// toExtended is pprofextended with a table of attributes: stacks are ranges of one list of locations, and a stack that is a part
// of an earlier one is not written again.
func toExtended(p *pprofProfile) *wrapper {
	t := newTexts(p.StringTable)
	out := &extendedProfile{Mapping: pprofMappings(p, t), Function: pprofFunctions(p, t), Location: pprofLocations(p)}
	for _, l := range out.Location { // indices, and no ids
		l.ID = 0
	}
	for _, f := range out.Function {
		f.ID = 0
	}
	for _, m := range out.Mapping {
		m.ID = 0
	}
	samples := slices.Clone(p.Sample)
	slices.SortStableFunc(samples, func(a, b *pprofSample) int { return len(b.LocationID) - len(a.LocationID) })
	known := map[string]uint64{}
	for i := range starts {
		starts[i] = starts[i][:0]
	}
	out.Sample = mapAll(samples, func(s *pprofSample) *extendedSample {
		attributes, timestamp := labels(p, s)
		e := &extendedSample{Value: slices.Clone(s.Value), Length: uint64(len(s.LocationID)), Start: out.find(s.LocationID)}
		for _, a := range attributes {
			key := a.Key + "\x00" + *a.Value.Text
			i, ok := known[key]
			if !ok {
				i = uint64(len(out.Attributes))
				known[key], out.Attributes = i, append(out.Attributes, a)
			}
			e.Attributes = append(e.Attributes, i)
		}
		if timestamp > 0 {
			e.Timestamps = []uint64{timestamp}
		}
		return e
	})
	out.StringTable = t.to
	return wrap(container{Extended: out})
}

// starts[id] is the position of a location in LocationIndices. The OTEP's code tries each position instead, which takes hours
// for large profiles and no memory: this is kept between runs, so that it takes none either.
var starts [][]int32

// find returns the position of the locations in LocationIndices, and adds them if they are missing.
func (e *extendedProfile) find(locations []uint64) uint64 {
	if len(locations) == 0 {
		return 0
	}
	for len(starts) <= int(slices.Max(locations)) {
		starts = append(starts, nil)
	}
	for _, start := range starts[locations[0]] {
		if rest := e.LocationIndices[start:]; len(locations) <= len(rest) &&
			slices.EqualFunc(rest[:len(locations)], locations, func(a int64, b uint64) bool { return a == int64(b) }) {
			return uint64(start)
		}
	}
	start := len(e.LocationIndices)
	for i, id := range locations {
		e.LocationIndices = append(e.LocationIndices, int64(id))
		starts[id] = append(starts[id], int32(start+i))
	}
	return uint64(start)
}
