// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// summary writes each sample as "stack|labels=values", in the payload's order.
func summary(p *profile.Profile) []string {
	var out []string
	for _, s := range p.Sample {
		var parts []string
		for _, l := range s.Location {
			parts = append(parts, l.Line[0].Function.Name)
		}
		var labels []string
		for k, v := range s.Label {
			labels = append(labels, k+":"+strings.Join(v, ","))
		}
		for k, v := range s.NumLabel {
			labels = append(labels, fmt.Sprint(k, ":", v))
		}
		sort.Strings(labels)
		out = append(out, fmt.Sprintf("%s|%s=%v", strings.Join(parts, ";"), strings.Join(labels, " "), s.Value))
	}
	return out
}

func TestEncodeJoinsSamples(t *testing.T) {
	v := profiletest.Value
	x, y := profiletest.Attr("k", "x"), profiletest.Attr("l", "y")
	timed := func(stack string, pairs ...int64) profiletest.Sample {
		s := profiletest.Sample{Stack: profiletest.Stack(stack)}
		for i := 0; i < len(pairs); i += 2 {
			s.Timestamps = append(s.Timestamps, uint64(pairs[i]))
			s.Values = append(s.Values, pairs[i+1])
		}
		return s
	}
	link := func(s profiletest.Sample, span byte) profiletest.Sample {
		return s.Linked([16]byte{1}, [8]byte{span})
	}
	type samples = []profiletest.Sample
	for name, test := range map[string]struct {
		profiles []samples
		want     []string
	}{
		"same order": {[]samples{{v(1, "a"), v(2, "b")}, {v(10, "a"), v(20, "b")}},
			[]string{"a|=[1 10]", "b|=[2 20]"}},
		"other order": {[]samples{{v(1, "a"), v(2, "b")}, {v(20, "b"), v(10, "a")}},
			[]string{"a|=[1 10]", "b|=[2 20]"}},
		"some missing": {[]samples{{v(2, "b")}, {v(10, "a"), v(20, "b"), v(30, "c")}},
			[]string{"a|=[0 10]", "b|=[2 20]", "c|=[0 30]"}},
		"nothing in common": {[]samples{{v(1, "a")}, {v(2, "b")}}, []string{"a|=[1 0]", "b|=[0 2]"}},
		"one is empty":      {[]samples{{}, {v(2, "b")}, {}}, []string{"b|=[0 2 0]"}},
		"all are empty":     {[]samples{{}, {}}, nil},
		"only attributes differ": {[]samples{{v(1, "a").With(x)}, {v(2, "a").With(y)}},
			[]string{"a|k:x=[1 0]", "a|l:y=[0 2]"}},
		"attributes differ": {[]samples{{v(1, "a").With(x)}, {v(2, "a"), v(3, "a").With(x)}},
			[]string{"a|=[0 2]", "a|k:x=[1 3]"}},
		"sets of attributes": {[]samples{{v(1, "a").With(x, y)}, {v(4, "b"), v(2, "a").With(y, x), v(3, "a").With(x)}},
			[]string{"b|=[0 4]", "a|k:x l:y=[1 2]", "a|k:x=[0 3]"}},
		"links differ": {[]samples{{link(v(1, "a"), 1)}, {link(v(2, "a"), 2)}},
			[]string{"a|span_id:0100000000000000 trace_id:01000000000000000000000000000000=[1 0]",
				"a|span_id:0200000000000000 trace_id:01000000000000000000000000000000=[0 2]"}},
		"timestamps": {[]samples{{timed("a", 5, 1, 6, 2)}, {timed("a", 5, 10, 6, 20)}},
			[]string{"a|timestamps_unix_nano:[5]=[1 10]", "a|timestamps_unix_nano:[6]=[2 20]"}},
		"timestamps differ": {[]samples{{timed("a", 5, 1, 6, 2)}, {timed("a", 6, 20, 7, 30)}},
			[]string{"a|timestamps_unix_nano:[5]=[1 0]", "a|timestamps_unix_nano:[6]=[2 20]",
				"a|timestamps_unix_nano:[7]=[0 30]"}},
		"timestamp repeats": {[]samples{{timed("a", 5, 1, 5, 2)}, {timed("a", 5, 10)}},
			[]string{"a|timestamps_unix_nano:[5]=[1 10]", "a|timestamps_unix_nano:[5]=[2 0]"}},
		"identity repeats": {[]samples{{v(1, "a"), v(2, "a")}, {v(9, "b"), v(10, "a"), v(20, "a"), v(30, "a")}},
			[]string{"b|=[0 9]", "a|=[1 10]", "a|=[2 20]", "a|=[0 30]"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := profiletest.New()
			for i, samples := range test.profiles {
				b.Profile(fmt.Sprint("type", i), "").Sample(samples...)
			}
			p, stats := encodeOne(t, b.Build())
			assert.Equal(t, test.want, summary(p))
			assert.Equal(t, len(test.want), stats.Samples)
		})
	}
}

// joined lists, for each identity, the values of each column in ascending order, and how many rows it has.
type joined map[string]*joinedIdentity

type joinedIdentity struct {
	values [][]int64
	rows   int
}

func (j joined) at(s pprofile.Sample, columns int) *joinedIdentity {
	attributes := s.AttributeIndices().AsRaw()
	slices.Sort(attributes)
	identity := fmt.Sprint(s.StackIndex(), attributes, s.LinkIndex())
	if j[identity] == nil {
		j[identity] = &joinedIdentity{values: make([][]int64, columns)}
	}
	return j[identity]
}

func (i *joinedIdentity) add(column int, value int64) {
	i.values[column] = append(i.values[column], value)
	slices.Sort(i.values[column])
}

// joinNaively returns what the encoder must join: all values of each profile, in as
// few rows as an identity needs.
func joinNaively(pd pprofile.Profiles) joined {
	j := joined{}
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	for c := range profiles.Len() {
		for _, s := range profiles.At(c).Samples().All() {
			identity := j.at(s, profiles.Len())
			identity.add(c, s.Values().At(0))
			identity.rows = max(identity.rows, len(identity.values[c]))
		}
	}
	return j
}

// TestEncodeEqualsNaiveJoin tries every way through the rows: in order with gaps, out of order, and with
// repeated identities, on few and on many rows.
func TestEncodeEqualsNaiveJoin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		stacks := 1 + rnd.IntN(1+round*3)
		shuffled, repeats := rnd.IntN(3) == 0, rnd.IntN(3) == 0
		b := profiletest.New()
		for c := range 1 + rnd.IntN(5) {
			var samples []profiletest.Sample
			keep := rnd.Float64()
			for i := range stacks {
				for n := 1; n > 0; n-- {
					if rnd.Float64() > keep {
						continue
					}
					s := profiletest.Value(1+rnd.Int64N(1000), fmt.Sprint("f", i))
					for k := range i % 4 {
						s = s.With(profiletest.Attr(fmt.Sprint("k", k), i%3))
					}
					if i%5 == 0 {
						s = s.Linked([16]byte{1}, [8]byte{byte(i % 7), 1})
					}
					samples = append(samples, s)
					if repeats && rnd.IntN(3) == 0 {
						n++
					}
				}
			}
			if shuffled {
				rnd.Shuffle(len(samples), func(i, k int) { samples[i], samples[k] = samples[k], samples[i] })
			}
			b.Profile(fmt.Sprint("t", c), "").Sample(samples...)
		}
		pd := b.Build()
		require.Equal(t, joinNaively(pd), joinRows(t, pd), "round %d", round)
	}
}

// joinRows joins pd's profiles as the encoder does, without writing them.
func joinRows(t *testing.T, pd pprofile.Profiles) joined {
	e := newEncoder(pd)
	defer e.release()
	var columns []column
	for i, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		columns = append(columns, column{profile: i, samples: p.Samples(), value: i})
	}
	e.join.reset()
	for _, c := range longestFirst(columns) {
		e.joinColumn(columns, c)
	}
	require.NoError(t, e.err)
	j := joined{}
	values := make([]int64, len(columns))
	for r := range e.join.rows {
		row := &e.join.rows[r]
		e.join.valuesOf(row, columns, values)
		identity := j.at(columns[row.column].samples.At(int(row.sample)), len(columns))
		identity.rows++
		for c, v := range values {
			if v != 0 { // the test's profiles have no values of 0
				identity.add(c, v)
			}
		}
	}
	return j
}

func TestEncodeSetsAreSets(t *testing.T) {
	e := newEncoder(pprofile.NewProfiles())
	list := func(indices ...int32) dictionary.AttributeSetIndex {
		s := pprofile.NewSample()
		s.AttributeIndices().FromRaw(indices)
		return e.attributeSet(s.AttributeIndices())
	}
	ids := []dictionary.AttributeSetIndex{list(), list(0), list(1), list(5), list(1, 2), list(1, 2, 3), list(2, 3),
		list(1, 3), list(-4), list(-4, 1)}
	for i, a := range ids {
		for k, b := range ids {
			assert.Equal(t, i == k, a == b, "%d and %d", i, k)
		}
	}
	assert.Equal(t, list(1, 2, 3), list(3, 1, 2))
	assert.Equal(t, ids[5], list(2, 1, 3))
}
