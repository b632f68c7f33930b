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
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// This file selects series by their labels, and then profiles and samples of them.

type selection struct {
	*naming
	ctx context.Context //nolint:containedctx // it is that of one query, as the selection is
	// from and until are in Unix nanoseconds; until is not selected.
	from, until int64
	series      []answers.Series
	// rest has, for each series, the matchers that its samples decide, and hasRest reports that there are some.
	rest    [][]*labels.Matcher
	hasRest bool
	// profiles, spans and traces select, if there are any.
	profiles map[profileID]bool
	spans    map[[8]byte]bool
	traces   map[[16]byte]bool
	// sites are the names of the functions that stacks begin with, from the root on; begins has the stacks that were
	// compared.
	sites  []string
	begins cache[int32, bool]
	// decided has the results of rest, and stated the links that attributes state.
	decided cache[decision, bool]
	stated  cache[dictionary.AttributeSetIndex, dictionary.Link]
	// hashes has those of series whose profiles were identified, exemplars the labels that all exemplars of a series
	// share.
	hashes    map[int][sha256.Size]byte
	exemplars map[int][]*typesv1.LabelPair
}

// decision is what the labels of a sample depend on.
type decision struct {
	set    dictionary.AttributeSetIndex
	series int
}

func decisionOf(samples *answers.Samples, row int) decision {
	return decision{setOf(samples, row), samples.Series}
}

// cache has what was computed over the current dictionary: it goes with its block.
type cache[K comparable, V any] struct {
	dict *dictionary.Dictionary
	of   map[K]V
}

// get returns a cached value, or else computes it. Its callers check the memory.
func (c *cache[K, V]) get(dict *dictionary.Dictionary, key K, memory *size.Meter, compute func() V) V {
	if c.dict != dict {
		c.dict, c.of = dict, map[K]V{}
	}
	value, ok := c.of[key]
	if !ok {
		value = compute()
		_ = memory.Grow(2 * cacheBytes)
		c.of[key] = value
	}
	return value
}

// profileID identifies a profile: its series and its time.
type profileID = uuid.UUID

// identify returns the id of a profile: a hash of its series and its time.
func (s *selection) identify(series int, time int64) profileID {
	hash, ok := s.hashes[series]
	if !ok {
		hash = hashOf(&s.series[series])
		s.hashes[series] = hash
	}
	id := profileID{}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(hash[:], uint64(time)))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

func hashOf(s *answers.Series) (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(list ...string) {
		for _, text := range list {
			_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
			_, _ = io.WriteString(h, text)
		}
	}
	add(s.Service, s.Profile, s.Type.String())
	for _, a := range s.Labels {
		add(a.Key, a.Value)
	}
	h.Sum(sum[:0])
	return sum
}

// choose returns the selection of series that match, between two times in Unix milliseconds, both of which belong to
// it.
func (q *Querier) choose(
	ctx context.Context, matchers []*labels.Matcher, start, end int64, dots bool,
) (*selection, error) {
	if err := checkTime(start, end); err != nil {
		return nil, err
	}
	meter := meterOf(ctx)
	s := &selection{naming: &naming{dots: dots, names: map[string]string{}, memory: meter}, ctx: ctx,
		from: nanos(start), until: nanos(end),
		hashes: map[int][sha256.Size]byte{}, exemplars: map[int][]*typesv1.LabelPair{}}
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
			s.series, s.rest, s.hasRest = append(s.series, in), append(s.rest, rest), s.hasRest || len(rest) > 0
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
func (s *selection) match(in *answers.Series, matchers []*labels.Matcher) (rest []*labels.Matcher, ok bool) {
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

// withCPUTime adds, to series that have CPU time in another form, those of cpu/nanoseconds, as the exporter pyroscope
// does: async-profiler's itimer/ns, and otherwise those that only count samples (eBPF's, Splunk's).
func withCPUTime(list []answers.Series) []answers.Series {
	cpu := model.SampleType{Type: "cpu", Unit: "nanoseconds"}
	key := func(s *answers.Series) string { return fmt.Sprint(s.Service, "\x00", s.Profile, "\x00", s.Labels) }
	var has map[string]bool
	n := len(list)
	for _, isCount := range []bool{false, true} {
		for i := range n {
			derived := list[i]
			nanos, timesPeriod := kind.CPUTime(derived.Type.Type, derived.Type.Unit, derived.PeriodType.Type,
				derived.PeriodType.Unit)
			if nanos != 1 || timesPeriod != isCount || derived.Type == cpu {
				continue
			}
			if has == nil {
				has = map[string]bool{}
				for k := range n {
					if list[k].Type == cpu {
						has[key(&list[k])] = true
					}
				}
			}
			if !has[key(&derived)] {
				derived.Type, derived.PeriodType, derived.TimesPeriod = cpu, cpu, isCount
				list = append(list, derived)
			}
		}
		for k := n; k < len(list) && !isCount; k++ {
			has[key(&list[k])] = true
		}
	}
	return list
}

// needsProfiles reports whether samples must be looked at, profile by profile, to decide what is selected.
func (s *selection) needsProfiles() bool {
	return len(s.spans)+len(s.traces)+len(s.profiles) > 0 || s.hasRest
}

// want adds the columns that the matchers need.
func (s *selection) want(want answers.Want) answers.Want {
	want.Stacks = want.Stacks || len(s.sites) > 0
	if !s.needsProfiles() {
		return want
	}
	want.Profiles = true
	want.Links = want.Links || len(s.spans)+len(s.traces) > 0
	want.Attributes = want.Attributes || want.Links || s.hasRest
	return want
}

func (s *selection) query(want answers.Want) *answers.Query {
	return answers.NewQuery(s.ctx, s.memory, s.series, s.from, s.until, s.want(want))
}

// stacks returns the query of the values of all stacks.
func (s *selection) stacks() *answers.Query {
	q := s.query(answers.Want{Stacks: true})
	q.Keep = s.keep()
	return q
}

// keep returns what chooses among the samples; nil if it is all.
func (s *selection) keep() func(samples *answers.Samples, row int) bool {
	if !s.needsProfiles() && len(s.sites) == 0 {
		return nil
	}
	return s.keeps
}

func (s *selection) keeps(samples *answers.Samples, row int) bool {
	if len(s.profiles) > 0 && !s.profiles[s.identify(samples.Series, samples.Time)] {
		return false
	}
	if len(s.spans)+len(s.traces) > 0 {
		link := s.linkOf(samples, row)
		if len(s.spans) > 0 && !hasID[[8]byte](s.spans, link.SpanID) ||
			len(s.traces) > 0 && !hasID[[16]byte](s.traces, link.TraceID) {
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
	key := decisionOf(samples, row)
	return s.decided.get(samples.Dict, key, s.memory, func() bool {
		for _, m := range rest {
			// A selector can be a long regular expression, and there can be very many sets.
			if s.memory.Check() != nil || !m.Matches(s.sampleValue(samples.Dict, key.set, m.Name)) {
				return false
			}
		}
		return true
	})
}

// linkOf returns the link of a sample. Most of Pyroscope's clients state a span without its trace, which is no link of
// OTLP but an attribute.
func (s *selection) linkOf(samples *answers.Samples, row int) dictionary.Link {
	if row < len(samples.Links) && samples.Links[row] != 0 {
		return samples.Dict.Links.At(dictionary.LinkIndex(samples.Links[row]))
	}
	set := setOf(samples, row)
	return s.stated.get(samples.Dict, set, s.memory, func() (link dictionary.Link) {
		for _, i := range samples.Dict.AttributeSets.At(set) {
			a := samples.Dict.Attributes.At(dictionary.AttributeIndex(i))
			switch samples.Dict.Strings.At(a.Key) {
			case kind.SpanLabel, kind.OldSpanLabel:
				addID(link.SpanID[:], a.Value)
			case kind.TraceLabel:
				addID(link.TraceID[:], a.Value)
			}
		}
		return link
	})
}

// hasID reports whether a set has an id. What has none has zeros.
func hasID[ID comparable](set map[ID]bool, id ID) bool { return id != *new(ID) && set[id] }

// addID reads the id that a value has. Any other value changes nothing.
func addID(id []byte, value dictionary.Value) {
	digits, ok := value.Str()
	if !ok || len(digits) != hex.EncodedLen(len(id)) {
		return
	}
	if decoded, err := hex.DecodeString(digits); err == nil {
		copy(id, decoded)
	}
}

// keepsStack reports whether the stack of a sample is that of the call site.
func (s *selection) keepsStack(samples *answers.Samples, row int) bool {
	stack := int32(0)
	if row < len(samples.Stacks) {
		stack = samples.Stacks[row]
	}
	return s.begins.get(samples.Dict, stack, s.memory, func() bool { return samples.Begins(row, s.sites) })
}

func setOf(samples *answers.Samples, row int) dictionary.AttributeSetIndex {
	if row >= len(samples.Attributes) {
		return 0
	}
	return dictionary.AttributeSetIndex(samples.Attributes[row])
}

// labelSets calls use with the labels of each series and of its samples, as far as they are wanted: names are those
// that are wanted, or nil for all.
func (q *Querier) labelSets(s *selection, names []string, use func([]label) error) error {
	var scan []answers.Series
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
	of.decided = cache[decision, bool]{} // its series have other numbers
	of.series, of.rest, of.hashes = scan, rest, map[int][sha256.Size]byte{}
	selected, err := q.Store.Select(s.ctx,
		answers.NewQuery(s.ctx, s.memory, scan, s.from, s.until, answers.Want{Attributes: true, Profiles: true}))
	if err != nil {
		return err
	}
	defer selected.Close()
	var used cache[decision, error]
	return selected.Read(func(samples *answers.Samples) error {
		for row := range samples.Len() {
			key := decisionOf(samples, row)
			err := used.get(samples.Dict, key, s.memory, func() error {
				if !of.keeps(samples, row) {
					return nil
				}
				return use(s.wanted(s.withSample(&scan[key.series], samples.Dict, key.set), names))
			})
			if err != nil {
				return err
			}
		}
		return s.memory.Check()
	})
}

// withSample returns the labels of a series and of a sample of it.
func (n *naming) withSample(in *answers.Series, dict *dictionary.Dictionary, set dictionary.AttributeSetIndex) []label {
	list := n.all(in)
	n.ofSample(dict, set, func(key, value string) {
		name := n.listed(key)
		if !slices.ContainsFunc(list, func(l label) bool { return l.name == name }) {
			list = append(list, label{name, value})
		}
	})
	return list
}

// lacks reports whether samples of a series can have labels that it has not itself.
func (s *selection) lacks(in *answers.Series, names []string) bool {
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
