// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// labelValue returns a value as a label of bounded length: a map or a list has none.
func labelValue(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return kind.CutName(v.Str())
	case pcommon.ValueTypeBool, pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return v.AsString()
	default:
		return ""
	}
}

// values returns the values of attributes, "" for those that are missing.
func values(attributes pcommon.Map, keys []string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		if v, ok := attributes.Get(key); ok {
			list[i] = labelValue(v)
		}
	}
	return list
}

// sampleAttribute is what an entry of the attribute table is for the metrics.
type sampleAttribute struct {
	// value is the number of the key among the set's SampleKeys and 1, or 0; conditions are the bits of those that it
	// meets.
	value      int
	label      string
	conditions uint64
	state      state
}

// attributes reads the attributes of samples, each entry once.
type attributes struct {
	set     *selection.Set
	dict    pprofile.ProfilesDictionary
	entries []sampleAttribute
	// conditions and values are those of the last sample that was read.
	conditions uint64
	values     []string
}

func (a *attributes) begin(d pprofile.ProfilesDictionary) {
	a.dict = d
	a.values = frames.Zeroed(a.values, len(a.set.SampleKeys))
	if len(a.set.SampleKeys)+len(a.set.Conditions) > 0 {
		a.entries = frames.Zeroed(a.entries, d.AttributeTable().Len())
	}
}

// read reads the attributes of a sample. Those that are out of range do not count, as in dictionary_dedup.
func (a *attributes) read(s pprofile.Sample) {
	if len(a.set.SampleKeys)+len(a.set.Conditions) == 0 {
		return
	}
	a.conditions = 0
	clear(a.values)
	indices := s.AttributeIndices()
	for k := range indices.Len() {
		i := indices.At(k)
		if uint(i) >= uint(len(a.entries)) {
			continue
		}
		e := &a.entries[i]
		if e.state == unknown {
			a.resolve(i, e)
		}
		a.conditions |= e.conditions
		if e.value > 0 {
			a.values[e.value-1] = e.label
		}
	}
}

func (a *attributes) resolve(i int32, e *sampleAttribute) {
	e.state = known
	entry, names := a.dict.AttributeTable().At(int(i)), a.dict.StringTable()
	if uint(entry.KeyStrindex()) >= uint(names.Len()) {
		return
	}
	key := names.At(int(entry.KeyStrindex()))
	e.value = 1 + slices.Index(a.set.SampleKeys, key)
	hasKey := func(c selection.Condition) bool { return c.Key == key }
	if e.value == 0 && !slices.ContainsFunc(a.set.Conditions, hasKey) {
		return
	}
	e.label = labelValue(entry.Value())
	for bit, condition := range a.set.Conditions {
		if hasKey(condition) && condition.Pattern.MatchString(e.label) {
			e.conditions |= 1 << bit
		}
	}
}

type pair struct{ key, value string }

// identity returns the identity of the series of a profile whose values are a state or a total: one process, and one
// type. Strings count up to a bounded length, and nested values do not.
func (r *Reducer) identity(p pprofile.Profile, names ...string) [sha256.Size]byte {
	r.pairs = r.pairs[:0]
	for key, v := range r.resource.All() {
		r.pairs = append(r.pairs, pair{kind.CutName(key), labelValue(v)})
	}
	resource := len(r.pairs)
	for key, v := range otlp.Attributes(r.dict, p.AttributeIndices()) {
		if kind.IsSeriesAttribute(key) {
			r.pairs = append(r.pairs, pair{kind.CutName(key), labelValue(v)})
		}
	}
	r.key = r.key[:0]
	for _, part := range [][]pair{r.pairs[:resource], r.pairs[resource:]} {
		slices.SortFunc(part, func(a, b pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value)) })
		r.key = append(r.key, 0xff)
		for _, attribute := range part {
			r.key = dictionary.AppendString(dictionary.AppendString(r.key, attribute.key), attribute.value)
		}
	}
	for _, name := range names {
		r.key = dictionary.AppendString(r.key, name)
	}
	return sha256.Sum256(r.key)
}
