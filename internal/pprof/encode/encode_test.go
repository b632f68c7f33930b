// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// encodeAll encodes pd and reads the payloads back with pprof's own parser.
func encodeAll(t testing.TB, pd pprofile.Profiles) ([]*profile.Profile, []Payload, Stats) {
	t.Helper()
	encoded, stats, err := Encode(pd)
	require.NoError(t, err)
	var parsed []*profile.Profile
	for _, payload := range encoded {
		p := profiletest.ParsePprof(t, payload.Bytes)
		require.NoError(t, p.CheckValid())
		parsed = append(parsed, p)
	}
	return parsed, encoded, stats
}

func encodeOne(t testing.TB, pd pprofile.Profiles) (*profile.Profile, Stats) {
	t.Helper()
	parsed, _, stats := encodeAll(t, pd)
	require.Len(t, parsed, 1)
	return parsed[0], stats
}

func build(samples ...profiletest.Sample) pprofile.Profiles {
	return profiletest.New().Profile("cpu", "nanoseconds").Sample(samples...).Build()
}

func TestEncodeNothing(t *testing.T) {
	encoded, stats, err := Encode(pprofile.NewProfiles())
	require.NoError(t, err)
	assert.Empty(t, encoded)
	assert.Zero(t, stats)
}

func TestEncodeHeader(t *testing.T) {
	pd := profiletest.New().
		Scope("", "", kind.AttributeDefaultSampleType, "alloc_space").
		Profile("cpu", "nanoseconds").Time(1_700_000_000_000_000_000, 10_000_000_000).Period(10_000_000, "cpu", "ns").
		Attributes(
			profiletest.Attr(scan.AttributeComment, []any{"first", "", "first"}),
			profiletest.Attr(scan.AttributeDropFrames, "^runtime\\."),
			profiletest.Attr(scan.AttributeKeepFrames, "^main\\."),
			profiletest.Attr(scan.AttributeDocURL, "https://example.com/doc"),
			profiletest.Attr("something.else", "x"),
		).
		Build()
	p, _ := encodeOne(t, pd)
	assert.Equal(t, []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, p.SampleType)
	assert.Equal(t, int64(1_700_000_000_000_000_000), p.TimeNanos)
	assert.Equal(t, int64(10_000_000_000), p.DurationNanos)
	assert.Equal(t, int64(10_000_000), p.Period)
	assert.Equal(t, &profile.ValueType{Type: "cpu", Unit: "ns"}, p.PeriodType)
	assert.Equal(t, []string{"first", "", "first"}, p.Comments)
	assert.Equal(t, "^runtime\\.", p.DropFrames)
	assert.Equal(t, "^main\\.", p.KeepFrames)
	assert.Equal(t, "https://example.com/doc", p.DocURL)
	assert.Equal(t, "alloc_space", p.DefaultSampleType)
	assert.Empty(t, p.Sample)
}

// Other producers can write a single comment, or attributes with our names and values of other types.
func TestEncodeHeaderOfOtherShapes(t *testing.T) {
	pd := profiletest.New().Profile("cpu", "ns").Attributes(
		profiletest.Attr(scan.AttributeComment, "only"), profiletest.Attr(scan.AttributeDocURL, 7)).Build()
	p, _ := encodeOne(t, pd)
	assert.Equal(t, []string{"only"}, p.Comments)
	assert.Empty(t, p.DocURL)
}

func TestEncodeTimestamps(t *testing.T) {
	alone := profiletest.Observed([]uint64{5, 0}, "a")
	withValues := profiletest.Observed([]uint64{7, 8}, "b")
	withValues.Values = []int64{70, 80}

	for name, test := range map[string]struct {
		pd    pprofile.Profiles
		want  []int64
		times []int64
	}{
		"alone":       {build(alone), []int64{1, 1}, []int64{5, 0}},
		"with values": {build(withValues), []int64{70, 80}, []int64{7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			p, stats := encodeOne(t, test.pd)
			require.Len(t, p.Sample, len(test.want))
			assert.Equal(t, len(test.want), stats.Samples)
			for i, s := range p.Sample {
				assert.Equal(t, []int64{test.want[i]}, s.Value)
				assert.Equal(t, map[string][]int64{"timestamps_unix_nano": {test.times[i]}}, s.NumLabel)
				assert.Equal(t, map[string][]string{"timestamps_unix_nano": {"nanoseconds"}}, s.NumUnit)
			}
		})
	}
}

// The samples after one with a timestamp must not get its label. A timestamp of 0 is a timestamp.
func TestEncodeTimestampsOfOneSampleOnly(t *testing.T) {
	pd := profiletest.New().Profile("cpu", "ns").Sample(profiletest.Observed([]uint64{0}, "a")).
		Profile("cpu", "ns").Sample(profiletest.Value(3, "a")).Build()
	p, _ := encodeOne(t, pd)
	require.Len(t, p.Sample, 2)
	assert.Equal(t, []int64{0}, p.Sample[0].NumLabel[scan.KeyTimestamp])
	assert.Empty(t, p.Sample[1].NumLabel)
}

// If only some profiles have timestamps, they are not sample types of one pprof: no sample would have values of both.
func TestEncodeTimestampsApart(t *testing.T) {
	timed, plain := profiletest.Observed([]uint64{5}, "a"), profiletest.Value(3, "a")
	pd := profiletest.New().Profile("cpu", "ns").Sample(timed).Profile("wall", "ns").Sample(plain).
		Profile("off_cpu", "ns").Sample(timed).Profile("empty", "ns").Build()
	encoded, stats, err := Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 2)
	assert.Equal(t, []int{0, 2, 3}, encoded[0].ProfileIndices)
	assert.Equal(t, []int{1}, encoded[1].ProfileIndices)
	assert.Equal(t, 2, stats.Samples)
}

func TestEncodeLinks(t *testing.T) {
	trace, span := [16]byte{0xAB, 15: 1}, [8]byte{0xCD, 7: 2}
	const traceText, spanText = "ab000000000000000000000000000001", "cd00000000000002"
	for name, test := range map[string]struct {
		sample profiletest.Sample
		want   map[string][]string
	}{
		"both": {profiletest.Value(1).Linked(trace, span),
			map[string][]string{"trace_id": {traceText}, "span_id": {spanText}}},
		"only trace": {profiletest.Value(1).Linked(trace, [8]byte{}), map[string][]string{"trace_id": {traceText}}},
		"only span":  {profiletest.Value(1).Linked([16]byte{}, span), map[string][]string{"span_id": {spanText}}},
		"none":       {profiletest.Value(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := encodeOne(t, build(test.sample, test.sample))
			require.Len(t, p.Sample, 2)
			for _, s := range p.Sample {
				assert.Equal(t, test.want, s.Label)
			}
		})
	}
}

// Payloads of one input share its dictionary, but each has only the entries that its own samples refer to.
func TestEncodeSharedDictionary(t *testing.T) {
	pd := profiletest.New().
		Resource("service.name", "one").
		Scope("x", "").Profile("cpu", "ns").Sample(profiletest.Value(1, "shared", "one.main")).
		Scope("y", "").Profile("cpu", "ns").Sample(profiletest.Value(2, "shared")).
		Resource("service.name", "two").
		Scope("x", "").Profile("cpu", "ns").Sample(profiletest.Value(3, "two.main").With(profiletest.Attr("k", "v"))).
		Build()
	parsed, encoded, stats := encodeAll(t, pd)
	require.Len(t, parsed, 3)
	assert.Equal(t, 3, stats.Samples)
	var names [][]string
	for i, p := range parsed {
		var functions []string
		for _, f := range p.Function {
			functions = append(functions, f.Name)
		}
		names = append(names, functions)
		assert.Len(t, p.Location, len(p.Function))
		assert.Equal(t, int64(i+1), p.Sample[0].Value[0])
		assert.Equal(t, []int{0}, encoded[i].ProfileIndices)
	}
	assert.Equal(t, [][]string{{"shared", "one.main"}, {"shared"}, {"two.main"}}, names)
	assert.Equal(t, [2]int{0, 0}, [2]int{encoded[0].ResourceIndex, encoded[0].ScopeIndex})
	assert.Equal(t, [2]int{0, 1}, [2]int{encoded[1].ResourceIndex, encoded[1].ScopeIndex})
	assert.Equal(t, [2]int{1, 0}, [2]int{encoded[2].ResourceIndex, encoded[2].ScopeIndex})
	assert.NotContains(t, string(encoded[1].Bytes), "one.main")
	assert.NotContains(t, string(encoded[1].Bytes), "two.main")
}

func TestEncodeOnlyReads(t *testing.T) {
	pd := build(profiletest.Value(1, "a").With(profiletest.Attr("k", []any{"v", 1})).Linked([16]byte{1}, [8]byte{1}))
	before := profiletest.Render(pd)
	pd.MarkReadOnly()
	encodeOne(t, pd)
	assert.Equal(t, before, profiletest.Render(pd))
}

// Scratch memory from the call before must have no effect, neither after another input nor after a fault.
func TestEncodeIsDeterministic(t *testing.T) {
	small := build(profiletest.Value(1, "a", "b").With(profiletest.Attr("k", "v")).Linked([16]byte{1}, [8]byte{1}))
	first, _, err := Encode(small)
	require.NoError(t, err)
	large := build(profiletest.Value(1, "x", "b", "y"), profiletest.Value(2, "z").With(profiletest.Attr("l", 5)))
	_, _, err = Encode(large)
	require.NoError(t, err)
	profiletest.SampleAt(large, 1).SetStackIndex(99)
	_, _, err = Encode(large)
	require.Error(t, err)
	second, _, err := Encode(small)
	require.NoError(t, err)
	assert.Equal(t, first, second)
}
