// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// maxFramesInDifference bounds the stack in a difference's text.
const maxFramesInDifference = 40

// sampled has everything that the samples of one identity observed.
type sampled struct {
	isPresent bool
	// sums has the sums of the values of samples without timestamps, by their position in the list.
	sums         []int64
	observations []observation
}

// observation is a timestamp, a value or both: a sample whose lists differ in length has some with only one of them.
type observation struct {
	timestamp uint64
	value     int64
	parts     observationParts
}

type observationParts uint8

const (
	hasTimestamp observationParts = 1 << iota
	hasValue
)

// sampledPair is an identity's observations on both sides, and a sample to name it by.
type sampledPair struct {
	want, got sampled
	sample    pprofile.Sample
	side      *side
}

func (c *comparison) compareSamples(where string, want, got []pprofile.Profile) {
	total := 0
	for _, p := range want {
		total += p.Samples().Len()
	}
	index := make(map[resolved.Identity]int, total)
	pairs := make([]sampledPair, 0, total)
	collect := func(s *side, profiles []pprofile.Profile, of func(*sampledPair) *sampled) {
		for _, p := range profiles {
			for _, sample := range p.Samples().All() {
				identity := s.Identity(sample)
				i, seen := index[identity]
				if !seen {
					i = len(pairs)
					index[identity] = i
					pairs = append(pairs, sampledPair{sample: sample, side: s})
				}
				of(&pairs[i]).add(sample)
			}
		}
	}
	collect(c.want, want, func(p *sampledPair) *sampled { return &p.want })
	collect(c.got, got, func(p *sampledPair) *sampled { return &p.got })
	for i := range pairs {
		p := &pairs[i]
		if !p.want.equal(&p.got) {
			c.differences.add(where, "sample %s: is %s, want %s", p.name(), p.got.text(), p.want.text())
		}
	}
}

func (s *sampled) add(sample pprofile.Sample) {
	s.isPresent = true
	values, timestamps := sample.Values(), sample.TimestampsUnixNano()
	if timestamps.Len() == 0 {
		for i, v := range values.All() {
			if i == len(s.sums) {
				s.sums = append(s.sums, 0)
			}
			s.sums[i] += v
		}
		return
	}
	for i := range max(values.Len(), timestamps.Len()) {
		var o observation
		if i < timestamps.Len() {
			o.timestamp, o.parts = timestamps.At(i), o.parts|hasTimestamp
		}
		if i < values.Len() {
			o.value, o.parts = values.At(i), o.parts|hasValue
		}
		s.observations = append(s.observations, o)
	}
}

func (s *sampled) equal(other *sampled) bool {
	if s.isPresent != other.isPresent || !slices.Equal(s.sums, other.sums) {
		return false
	}
	s.sort()
	other.sort()
	return slices.Equal(s.observations, other.observations)
}

func (s *sampled) sort() {
	slices.SortFunc(s.observations, func(a, b observation) int {
		return cmp.Or(
			cmp.Compare(a.timestamp, b.timestamp),
			cmp.Compare(a.value, b.value),
			cmp.Compare(a.parts, b.parts),
		)
	})
}

// text returns the sums of the values, and the observations with their timestamps: "12", "5@1 7@2".
func (s *sampled) text() string {
	if !s.isPresent {
		return "absent"
	}
	var texts []string
	for _, v := range s.sums {
		texts = append(texts, strconv.FormatInt(v, 10))
	}
	for _, o := range s.observations {
		text := ""
		if o.parts&hasValue != 0 {
			text = strconv.FormatInt(o.value, 10)
		}
		if o.parts&hasTimestamp != 0 {
			text += "@" + strconv.FormatUint(o.timestamp, 10)
		}
		texts = append(texts, text)
	}
	return orNone(strings.Join(texts, " "))
}

// name returns the identity as text: attributes, link and frames.
func (p *sampledPair) name() string {
	frames := p.side.Frames(p.sample.StackIndex())
	if more := len(frames) - maxFramesInDifference; more > 0 {
		frames = append(frames[:maxFramesInDifference], "and "+strconv.Itoa(more)+" more")
	}
	link := ""
	if p.sample.LinkIndex() != 0 {
		link = "link " + p.side.Link(p.sample.LinkIndex())
	}
	stack := "<" + strings.Join(frames, " < ") + ">"
	return resolved.Spaced(resolved.Braces(p.side.Attributes(p.sample.AttributeIndices())), link, stack)
}
