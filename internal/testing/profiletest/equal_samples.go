// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"maps"
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
	sums []int64
	// observations counts those with a timestamp: "5@1 7@2", or "@1" if there is no value.
	observations map[string]int
}

// sampledPair is an identity's observations on both sides, and a sample to name it by.
type sampledPair struct {
	sampled [2]sampled
	sample  pprofile.Sample
	in      *message
}

func (c *comparison) compareSamples(where string, profiles [2][]profileOf) {
	index := make(map[resolved.Identity]int)
	var pairs []sampledPair
	for n, list := range profiles {
		for _, p := range list {
			for _, sample := range p.Samples().All() {
				identity := p.in.Identity(sample)
				i, seen := index[identity]
				if !seen {
					i = len(pairs)
					index[identity] = i
					pairs = append(pairs, sampledPair{sample: sample, in: p.in})
				}
				pairs[i].sampled[n].add(sample)
			}
		}
	}
	for i := range pairs {
		p := &pairs[i]
		want, got := &p.sampled[0], &p.sampled[1]
		if !want.equal(got) {
			c.add(where+": sample "+p.name(), want.text(), got.text())
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
	if s.observations == nil {
		s.observations = map[string]int{}
	}
	for i := range max(values.Len(), timestamps.Len()) {
		text := ""
		if i < values.Len() {
			text = strconv.FormatInt(values.At(i), 10)
		}
		if i < timestamps.Len() {
			text += "@" + strconv.FormatUint(timestamps.At(i), 10)
		}
		s.observations[text]++
	}
}

func (s *sampled) equal(other *sampled) bool {
	return s.isPresent == other.isPresent && slices.Equal(s.sums, other.sums) &&
		maps.Equal(s.observations, other.observations)
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
	for _, observation := range slices.Sorted(maps.Keys(s.observations)) {
		for range s.observations[observation] {
			texts = append(texts, observation)
		}
	}
	return strings.Join(texts, " ")
}

// name returns the identity as text: attributes, link and frames.
func (p *sampledPair) name() string {
	frames := p.in.Frames(p.sample.StackIndex())
	if more := len(frames) - maxFramesInDifference; more > 0 {
		frames = append(frames[:maxFramesInDifference], "and "+strconv.Itoa(more)+" more")
	}
	link := ""
	if p.sample.LinkIndex() != 0 {
		link = "link " + p.in.Link(p.sample.LinkIndex())
	}
	stack := "<" + strings.Join(frames, " < ") + ">"
	return resolved.Spaced(resolved.Braces(p.in.Attributes(p.sample.AttributeIndices())), link, stack)
}
