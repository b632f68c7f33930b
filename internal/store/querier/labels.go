// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

const (
	nameLabel    = "__name__"
	typeIDLabel  = "__profile_type__"
	serviceLabel = "service_name"
	serviceKey   = "service.name"
)

// everyLabel are the labels that every series has.
var everyLabel = []struct {
	name string
	of   func(*answers.Series) string
}{
	{nameLabel, func(s *answers.Series) string { return kind.TypeName(s.Profile) }},
	{typeIDLabel, profileType},
	{serviceLabel, func(s *answers.Series) string { return s.Service }},
	{"__type__", func(s *answers.Series) string { return kind.TypeName(s.Type.Type) }},
	{"__unit__", func(s *answers.Series) string { return kind.TypeName(s.Type.Unit) }},
	{"__period_type__", func(s *answers.Series) string { return kind.TypeName(s.PeriodType.Type) }},
	{"__period_unit__", func(s *answers.Series) string { return kind.TypeName(s.PeriodType.Unit) }},
}

type label struct{ name, value string }

// naming finds the labels of attributes. It is that of one query.
type naming struct {
	// dots keeps dots in the names that are listed. Selectors may use both forms.
	dots bool
	// names has the labels of keys without dots.
	names map[string]string
	// samples has the labels of attributes of samples; others than strings have no value.
	samples cache[dictionary.AttributeIndex, sampleLabel]
	memory  *size.Meter
}

func (n *naming) plain(key string) string {
	name, ok := n.names[key]
	if !ok {
		name = kind.LabelName(key, false)
		n.names[key] = name
	}
	return name
}

// is reports whether a label is that of a key.
func (n *naming) is(key, name string) bool { return key == name || n.plain(key) == name }

// listed returns the name under which the label of a key is listed.
func (n *naming) listed(key string) string {
	if n.dots {
		return kind.LabelName(key, true)
	}
	return n.plain(key)
}

func profileType(s *answers.Series) string {
	return kind.ProfileTypeID(s.Profile, s.Type.Type, s.Type.Unit, s.PeriodType.Type, s.PeriodType.Unit)
}

// value returns a label of a series, or false if only samples can have it.
func (n *naming) value(s *answers.Series, name string) (string, bool) {
	for _, l := range everyLabel {
		if l.name == name || l.name == serviceLabel && name == serviceKey {
			return l.of(s), true
		}
	}
	for _, a := range s.Labels {
		if a.Key != serviceKey && a.Value != "" && n.is(a.Key, name) {
			return kind.LabelValue(a.Value), true
		}
	}
	return "", false
}

// all returns the labels of a series, without those of its samples.
func (n *naming) all(s *answers.Series) []label {
	list, has := make([]label, 0, len(everyLabel)+len(s.Labels)), make(map[string]bool, len(everyLabel)+len(s.Labels))
	for _, l := range everyLabel {
		if value := l.of(s); value != "" {
			list, has[l.name] = append(list, label{l.name, value}), true
		}
	}
	for _, a := range s.Labels {
		if a.Key == serviceKey || a.Value == "" {
			continue
		}
		if name := n.listed(a.Key); !has[name] {
			list, has[name] = append(list, label{name, kind.LabelValue(a.Value)}), true
		}
	}
	return list
}

type sampleLabel struct{ key, value string }

// cacheBytes is what an entry of a map takes.
const cacheBytes = 128

// ofSample returns the labels of a set of attributes of samples.
func (n *naming) ofSample(dict *dictionary.Dictionary, set dictionary.AttributeSetIndex, use func(key, value string)) {
	for _, i := range dict.AttributeSets.At(set) {
		at := dictionary.AttributeIndex(i)
		l := n.samples.get(dict, at, n.memory, func() sampleLabel {
			l := labelOf(dict, at)
			_ = n.memory.Grow(len(l.value)) // its callers check
			return l
		})
		if l.value != "" {
			use(l.key, l.value)
		}
	}
}

// labelOf returns the label of an attribute of samples. Only a string makes one.
func labelOf(dict *dictionary.Dictionary, i dictionary.AttributeIndex) (l sampleLabel) {
	a := dict.Attributes.At(i)
	key := dict.Strings.At(a.Key)
	if slices.Contains(sampleDetails, key) || kind.IsLink(key) {
		return l
	}
	value, ok := a.Value.Str()
	if !ok {
		return l
	}
	// the dictionary goes with its block
	return sampleLabel{strings.Clone(key), strings.Clone(kind.LabelValue(value))}
}

var sampleDetails = kind.SampleDetails()

func (n *naming) sampleValue(dict *dictionary.Dictionary, set dictionary.AttributeSetIndex,
	name string) (found string) {
	n.ofSample(dict, set, func(key, value string) {
		if found == "" && n.is(key, name) {
			found = value
		}
	})
	return found
}

// The bounds of selectors. A regular expression is compiled to up to regexpBytes for each of its characters,
// classesBytes if it has classes of characters, and that for each of the repetitions it counts.
const (
	maxSelectorBytes = 16 << 10
	regexpBytes      = 160
	classesBytes     = 8 << 10
	maxRepetitions   = 1000
)

var selectors = parser.NewParser(parser.Options{})

// parseSelectors returns the matchers of selectors, all of which must match.
func parseSelectors(meter *size.Meter, list ...string) (matchers []*labels.Matcher, err error) {
	total := 0
	for _, selector := range list {
		if total += len(selector); total > maxSelectorBytes {
			return nil, invalid("the label selectors have more than %d bytes", maxSelectorBytes)
		}
		if strings.Contains(selector, "=~") || strings.Contains(selector, "!~") {
			cost := len(selector) * regexpBytes
			if strings.ContainsAny(selector, `\[`) || strings.Contains(selector, "(?") {
				cost = len(selector) * classesBytes / 3
			}
			if strings.Count(selector, "{") > 1 {
				cost *= maxRepetitions / 10
			}
			if err := meter.Grow(cost); err != nil {
				return nil, err
			}
		}
		if strings.TrimSpace(selector) == "" {
			continue
		}
		parsed, err := selectors.ParseMetricSelector(selector)
		if err != nil {
			return nil, invalid("label selector %q: %s", model.Shorten(selector), model.Shorten(err.Error()))
		}
		matchers = append(matchers, parsed...)
	}
	// Variables of a dashboard, and AnalyzeQuery, write a profile type before a selector, where Prometheus has a metric's
	// name.
	for _, m := range matchers {
		if m.Name == nameLabel && m.Type == labels.MatchEqual && strings.Count(m.Value, ":") >= 4 {
			m.Name = typeIDLabel
		}
		if m.Type == labels.MatchEqual && (m.Name == serviceLabel || m.Name == serviceKey) {
			m.Value = kind.CutName(m.Value) // as it is kept
		}
	}
	return matchers, nil
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
