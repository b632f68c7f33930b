// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// The labels that every series has.
const (
	nameLabel       = "__name__"
	typeIDLabel     = "__profile_type__"
	serviceLabel    = "service_name"
	serviceKey      = "service.name"
	typeLabel       = "__type__"
	unitLabel       = "__unit__"
	periodTypeLabel = "__period_type__"
	periodUnitLabel = "__period_unit__"
)

var everyLabel = []string{nameLabel, typeIDLabel, serviceLabel, typeLabel, unitLabel, periodTypeLabel, periodUnitLabel}

type label struct{ name, value string }

// naming finds the labels of attributes. It is that of one query.
type naming struct {
	// dots keeps dots in the names that are listed. Selectors may use both forms.
	dots bool
	// names has the labels of keys without dots.
	names map[string]string
	// samples has the labels of the attributes of the current dictionary: each goes with its block.
	samples *sampleLabels
	memory  *size.Meter
}

func newNaming(meter *size.Meter, dots bool) *naming {
	return &naming{dots: dots, names: map[string]string{}, memory: meter}
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

func profileType(s *store.Series) string {
	return kind.ProfileTypeID(s.Profile, s.Type.Type, s.Type.Unit, s.PeriodType.Type, s.PeriodType.Unit)
}

func ofEvery(s *store.Series, name string) (string, bool) {
	switch name {
	case nameLabel:
		return kind.TypeName(s.Profile), true
	case typeIDLabel:
		return profileType(s), true
	case serviceLabel, serviceKey:
		return s.Service, true
	case typeLabel:
		return kind.TypeName(s.Type.Type), true
	case unitLabel:
		return kind.TypeName(s.Type.Unit), true
	case periodTypeLabel:
		return kind.TypeName(s.PeriodType.Type), true
	case periodUnitLabel:
		return kind.TypeName(s.PeriodType.Unit), true
	default:
		return "", false
	}
}

// value returns a label of a series, or false if only samples can have it.
func (n *naming) value(s *store.Series, name string) (string, bool) {
	if value, ok := ofEvery(s, name); ok {
		return value, true
	}
	for _, a := range s.Labels {
		if a.Key != serviceKey && a.Value != "" && n.is(a.Key, name) {
			return kind.LabelValue(a.Value), true
		}
	}
	return "", false
}

// all returns the labels of a series, without those of its samples.
func (n *naming) all(s *store.Series) []label {
	list := make([]label, 0, len(everyLabel)+len(s.Labels))
	for _, name := range everyLabel {
		if value, _ := ofEvery(s, name); value != "" {
			list = append(list, label{name, value})
		}
	}
	for _, a := range s.Labels {
		if a.Key == serviceKey || a.Value == "" {
			continue
		}
		name := n.listed(a.Key)
		if !slices.ContainsFunc(list, func(l label) bool { return l.name == name }) {
			list = append(list, label{name, kind.LabelValue(a.Value)})
		}
	}
	return list
}

// sampleLabels are the labels of the attributes of a dictionary, as far as samples have them.
type sampleLabels struct {
	dict *dictionary.Dictionary
	// known has the labels of attributes; others than strings have no name.
	known map[dictionary.AttributeIndex]sampleLabel
	value pcommon.Value
}

type sampleLabel struct{ key, value string }

// cacheBytes is what an entry of a map takes.
const cacheBytes = 128

// ofSample returns the labels of a set of attributes of samples.
func (n *naming) ofSample(dict *dictionary.Dictionary, set dictionary.AttributeSetIndex, use func(key, value string)) {
	s := n.samples
	if s == nil || s.dict != dict {
		s = &sampleLabels{dict: dict, known: map[dictionary.AttributeIndex]sampleLabel{}, value: pcommon.NewValueEmpty()}
		n.samples = s
	}
	for _, i := range dict.AttributeSets.At(set) {
		at := dictionary.AttributeIndex(i)
		l, ok := s.known[at]
		if !ok {
			l = s.label(at)
			_ = n.memory.Grow(cacheBytes + len(l.value)) // its callers check
			s.known[at] = l
		}
		if l.value != "" {
			use(l.key, l.value)
		}
	}
}

// label returns the label of an attribute of samples. Only a string makes one.
func (s *sampleLabels) label(i dictionary.AttributeIndex) (l sampleLabel) {
	a := s.dict.Attributes.At(i)
	key := s.dict.Strings.At(a.Key)
	if slices.Contains(sampleDetails, key) || key == kind.SpanLabel || key == kind.TraceLabel {
		return l
	}
	a.Value.CopyTo(s.value)
	if s.value.Type() != pcommon.ValueTypeStr {
		return l
	}
	// the dictionary goes with its block
	return sampleLabel{strings.Clone(key), strings.Clone(kind.LabelValue(s.value.Str()))}
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
	}
	return matchers, nil
}

type selection struct {
	*naming
	ctx context.Context //nolint:containedctx // it is that of one query, as the selection is
	// from and until are in Unix nanoseconds; until is not selected.
	from, until int64
	series      []store.Series
	// rest has, for each series, the matchers that its samples decide.
	rest [][]*labels.Matcher
	// profiles, spans and traces select, if there are any.
	profiles map[profileID]bool
	spans    map[[8]byte]bool
	traces   map[[16]byte]bool
	// sites are the names of the functions that stacks begin with, from the root on; begins has the stacks of dictionary
	// over that were compared.
	sites  []string
	begins map[int32]bool
	over   *dictionary.Dictionary
	// decided has the results of rest, by dictionary, set and series.
	decided decisions[bool]
}

type decision struct {
	set    dictionary.AttributeSetIndex
	series int
}

// decisions are what was decided about the sets of the current dictionary: each goes with its block.
type decisions[T any] struct {
	dict *dictionary.Dictionary
	of   map[decision]T
}

// over returns the decisions about the sets of a dictionary.
func (d *decisions[T]) over(dict *dictionary.Dictionary) map[decision]T {
	if d.dict != dict {
		d.dict, d.of = dict, map[decision]T{}
	}
	return d.of
}

// profileID identifies a profile: its series and its time.
type profileID [16]byte

func (id profileID) String() string {
	s := hex.EncodeToString(id[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

func identify(s *store.Series, time int64) profileID {
	h := sha256.New()
	var number [8]byte
	for _, name := range []string{s.Service, s.Profile, s.Type.String()} {
		binary.BigEndian.PutUint64(number[:], uint64(len(name)))
		_, _ = h.Write(append(number[:], name...))
	}
	for _, a := range s.Labels {
		binary.BigEndian.PutUint64(number[:], uint64(len(a.Key)))
		_, _ = h.Write(append(append(number[:], a.Key...), a.Value...))
	}
	binary.BigEndian.PutUint64(number[:], uint64(time))
	_, _ = h.Write(number[:])
	var id profileID
	copy(id[:], h.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// choose returns the selection of series that match, between two times in Unix milliseconds, both of which belong to
// it.
func (q *Querier) choose(
	ctx context.Context, matchers []*labels.Matcher, start, end int64, dots bool,
) (*selection, error) {
	meter := meterOf(ctx)
	s := &selection{naming: newNaming(meter, dots), ctx: ctx, from: nanos(start), until: nanos(end)}
	if s.until < maxNanos {
		s.until++
	}
	if s.until <= s.from {
		return s, nil
	}
	sel := model.Selection{From: s.from, Until: s.until, Meter: meter}
	for _, m := range matchers {
		if m.Name == serviceLabel && m.Type == labels.MatchEqual {
			sel.Service = m.Value
			if m.Value == "" {
				return s, nil // every series has one
			}
		}
	}
	list, err := q.Store.Series(ctx, sel)
	if err != nil {
		return nil, err
	}
	for _, in := range withCPUTime(list) {
		rest, ok := s.match(&in, matchers)
		if err := meter.Grow(0); err != nil {
			return nil, err
		}
		if ok {
			s.series, s.rest = append(s.series, in), append(s.rest, rest)
		}
	}
	return s, nil
}

const maxNanos = int64(1) << 62

func nanos(millis int64) int64 {
	const unit = 1_000_000
	return min(max(millis, 0), maxNanos/unit) * unit
}

// match reports whether a series can match, and the matchers that its samples decide.
func (s *selection) match(in *store.Series, matchers []*labels.Matcher) (rest []*labels.Matcher, ok bool) {
	for _, m := range matchers {
		value, has := s.value(in, m.Name)
		switch {
		case has && !m.Matches(value), !has && !in.HasAttributes && !m.Matches(""):
			return nil, false
		case !has && in.HasAttributes:
			rest = append(rest, m)
		}
	}
	return rest, true
}

// withCPUTime adds, to series that only count samples of CPU time (eBPF's, Splunk's), those of the time itself, as the
// exporter pyroscope does.
func withCPUTime(list []store.Series) []store.Series {
	cpu, count := model.SampleType{Type: "cpu", Unit: "nanoseconds"}, model.SampleType{Type: "samples", Unit: "count"}
	key := func(s *store.Series) string { return fmt.Sprint(s.Service, "\x00", s.Profile, "\x00", s.Labels) }
	var has map[string]bool
	for i := range list {
		s := &list[i]
		if s.Type != count || s.PeriodType != cpu {
			continue
		}
		if has == nil {
			has = map[string]bool{}
			for k := range list {
				if list[k].Type == cpu {
					has[key(&list[k])] = true
				}
			}
		}
		if !has[key(s)] {
			derived := *s
			derived.Type, derived.TimesPeriod = cpu, true
			list = append(list, derived)
		}
	}
	return list
}

// needsProfiles reports whether samples must be looked at, profile by profile, to decide what is selected.
func (s *selection) needsProfiles() bool {
	return len(s.spans)+len(s.traces)+len(s.profiles) > 0 || slices.ContainsFunc(s.rest, func(r []*labels.Matcher) bool {
		return len(r) > 0
	})
}

// want returns what of samples the selection must see, besides what the query wants of them.
func (s *selection) want(want store.Want) store.Want {
	want.Stacks = want.Stacks || len(s.sites) > 0
	if !s.needsProfiles() {
		return want
	}
	want.Profiles = true
	want.Links = want.Links || len(s.spans)+len(s.traces) > 0
	want.Attributes = want.Attributes || slices.ContainsFunc(s.rest, func(r []*labels.Matcher) bool { return len(r) > 0 })
	return want
}

func (s *selection) query(want store.Want) *store.Query {
	return store.NewQuery(s.ctx, s.memory, s.series, s.from, s.until, s.want(want))
}

// keep returns what chooses among the samples; nil if it is all.
func (s *selection) keep() func(samples *store.Samples, row int) bool {
	if !s.needsProfiles() && len(s.sites) == 0 {
		return nil
	}
	return s.keeps
}

func (s *selection) keeps(samples *store.Samples, row int) bool {
	if len(s.profiles) > 0 && !s.profiles[identify(&s.series[samples.Series], samples.Time)] {
		return false
	}
	if len(s.spans)+len(s.traces) > 0 {
		if row >= len(samples.Links) {
			return false
		}
		link := samples.Dict.Links.At(dictionary.LinkIndex(samples.Links[row]))
		if len(s.spans) > 0 && !s.spans[link.SpanID] || len(s.traces) > 0 && !s.traces[link.TraceID] {
			return false
		}
	}
	if len(s.sites) > 0 && !s.keepsStack(samples, row) {
		return false
	}
	// Without profiles, the series is not known: then no labels are left to decide.
	rest := s.rest[samples.Series]
	if len(rest) == 0 {
		return true
	}
	set := setOf(samples, row)
	key, decided := decision{set, samples.Series}, s.decided.over(samples.Dict)
	ok, known := decided[key]
	if !known {
		ok = true
		for _, m := range rest {
			// A selector can be a long regular expression, and there can be very many sets.
			if s.memory.Check() != nil {
				return false
			}
			ok = ok && m.Matches(s.sampleValue(samples.Dict, set, m.Name))
		}
		_ = s.memory.Grow(cacheBytes) // Read checks
		decided[key] = ok
	}
	return ok
}

// keepsStack reports whether the stack of a sample is that of the call site.
func (s *selection) keepsStack(samples *store.Samples, row int) bool {
	if s.over != samples.Dict {
		s.over, s.begins = samples.Dict, map[int32]bool{}
	}
	key := int32(0)
	if row < len(samples.Stacks) {
		key = samples.Stacks[row]
	}
	ok, known := s.begins[key]
	if !known {
		ok = samples.Begins(row, s.sites)
		_ = s.memory.Grow(cacheBytes) // Read checks
		s.begins[key] = ok
	}
	return ok
}

func setOf(samples *store.Samples, row int) dictionary.AttributeSetIndex {
	if row >= len(samples.Attributes) {
		return 0
	}
	return dictionary.AttributeSetIndex(samples.Attributes[row])
}

// labelSets calls use with the labels of each series and of its samples, as far as they are wanted: names are those
// that are wanted, or nil for all.
func (q *Querier) labelSets(s *selection, names []string, use func([]label) error) error {
	var scan []store.Series
	var rest [][]*labels.Matcher
	for i := range s.series {
		in := &s.series[i]
		if in.HasAttributes && (len(s.rest[i]) > 0 || s.lacks(in, names)) {
			scan, rest = append(scan, *in), append(rest, s.rest[i])
			continue
		}
		if err := cmp.Or(s.memory.Check(), use(s.wanted(s.all(in), names))); err != nil {
			return err
		}
	}
	if len(scan) == 0 {
		return nil
	}
	of := *s
	of.decided = decisions[bool]{} // its series have other numbers
	of.series, of.rest = scan, rest
	selected, err := q.Store.Select(s.ctx,
		store.NewQuery(s.ctx, s.memory, scan, s.from, s.until, store.Want{Attributes: true, Profiles: true}))
	if err != nil {
		return err
	}
	defer selected.Close()
	var seen decisions[bool]
	return selected.Read(func(samples *store.Samples) error {
		for row := range samples.Len() {
			set := setOf(samples, row)
			key, seen := decision{set, samples.Series}, seen.over(samples.Dict)
			if seen[key] {
				continue
			}
			seen[key] = true
			if err := s.memory.Grow(cacheBytes); err != nil {
				return err
			}
			if !of.keeps(samples, row) {
				continue
			}
			list := s.all(&scan[samples.Series])
			s.ofSample(samples.Dict, set, func(key, value string) {
				name := s.listed(key)
				if !slices.ContainsFunc(list, func(l label) bool { return l.name == name }) {
					list = append(list, label{name, value})
				}
			})
			if err := use(s.wanted(list, names)); err != nil {
				return err
			}
		}
		return s.memory.Check()
	})
}

// lacks reports whether samples of a series can have labels that it has not itself.
func (s *selection) lacks(in *store.Series, names []string) bool {
	if names == nil {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { _, ok := s.value(in, name); return !ok })
}

// wanted returns the labels of the given names, sorted by name.
func (s *selection) wanted(list []label, names []string) []label {
	if names != nil {
		var kept []label
		for _, name := range names {
			for _, l := range list {
				if l.name == name || s.is(l.name, name) || s.plain(name) == l.name {
					kept = append(kept, label{name, l.value})
					break
				}
			}
		}
		list = kept
	}
	slices.SortFunc(list, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(list, func(a, b label) bool { return a.name == b.name })
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
