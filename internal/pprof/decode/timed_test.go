// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var withTimestamps = Options{TimestampLabels: DefaultTimestampLabels()}

const year2026 = int64(1767225600e9)

// timedPprof is a payload of samples, each with labels of its own.
type timedPprof struct{ *profile.Profile }

func newTimedPprof(types ...string) timedPprof {
	p := &profile.Profile{TimeNanos: year2026, DurationNanos: 10e9, PeriodType: &profile.ValueType{}}
	for _, t := range types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: t, Unit: "count"})
	}
	return timedPprof{p}
}

// add adds a sample. Its time has a label with this key and unit.
func (p timedPprof) add(function, key, unit string, at int64, values ...int64) timedPprof {
	s := &profile.Sample{Value: values}
	for _, l := range p.Location {
		if l.Line[0].Function.Name == function {
			s.Location = []*profile.Location{l}
		}
	}
	if s.Location == nil {
		f := &profile.Function{ID: uint64(len(p.Function)) + 1, Name: function}
		l := &profile.Location{ID: uint64(len(p.Location)) + 1, Line: []profile.Line{{Function: f}}}
		p.Function, p.Location, s.Location = append(p.Function, f), append(p.Location, l), []*profile.Location{l}
	}
	if key != "" {
		s.NumLabel, s.NumUnit = map[string][]int64{key: {at}}, map[string][]string{key: {unit}}
	}
	p.Sample = append(p.Sample, s)
	return p
}

func (p timedPprof) bytes(t require.TestingT) []byte {
	var b bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&b))
	return b.Bytes()
}

func TestTimestampsOfPprof(t *testing.T) {
	const key = "end_timestamp_ns"
	at := func(seconds int64) int64 { return year2026 + seconds*1e9 }
	for name, tc := range map[string]struct {
		payload timedPprof
		want    string
	}{
		"points": {newTimedPprof("samples").add("a", key, "", at(1), 1).add("a", key, "", at(2), 1),
			"sample @1767225601000000000 @1767225602000000000"},
		"intervals": {newTimedPprof("off_cpu").add("a", key, "nanoseconds", at(1), 7).add("a", key, "nanoseconds", at(2), 1),
			"sample 7@1767225601000000000 1@1767225602000000000"},
		"our own label": {newTimedPprof("samples").add("a", "timestamps_unix_nano", "nanoseconds", at(1), 1),
			"sample @1767225601000000000"},
		"of some alone": {newTimedPprof("samples").add("a", key, "", at(1), 1).add("a", "", "", 0, 5), "sample 5"},
		"of two types": {newTimedPprof("samples", "cpu").add("a", key, "", at(1), 1, 9).add("b", key, "", at(2), 1, 0).
			add("b", "", "", 0, 3, 4), "sample 9@1767225601000000000"},
		"zeros": {newTimedPprof("samples", "cpu").add("a", key, "", at(1), 0, 0), "sample 0@1767225601000000000"},
		"outside": {newTimedPprof("samples").add("a", key, "", at(-5), 1).add("a", key, "", at(100), 1).add("b", "", "",
			0, 2), "pprof.profile.time_nanos=1767225600000000000"},
		"another unit": {newTimedPprof("samples").add("a", key, "milliseconds", at(1), 1),
			"end_timestamp_ns=1767225601000000000 in milliseconds"},
		"another key":  {newTimedPprof("samples").add("a", "start", "", at(1), 1), "start=1767225601000000000"},
		"not this age": {newTimedPprof("samples").add("a", key, "", 17, 1), "end_timestamp_ns=17"},
		"of two forms": {newTimedPprof("samples").add("a", key, "", at(1), 1).add("b", key, "nanoseconds", at(2), 1),
			"end_timestamp_ns=1767225602000000000 in nanoseconds"},
		"repeated": {newTimedPprof("samples").add("a", key, "", at(1), 1).add("a", key, "", at(1), 1),
			"sample @1767225601000000000 @1767225601000000000"},
		"without a time": {timedPprof{func() *profile.Profile {
			p := newTimedPprof("samples")
			p.TimeNanos, p.DurationNanos = 0, 0
			return p.Profile
		}()}.add("a", key, "", at(1), 1), "pprof.profile.duration_nanos=0"},
	} {
		t.Run(name, func(t *testing.T) {
			pd, _, _ := requireLossless(t, tc.payload.bytes(t), withTimestamps)
			assert.Contains(t, profiletest.Render(pd), tc.want)
		})
	}
	two := newTimedPprof("samples").add("a", "x", "", 1, 1)
	two.Sample[0].NumLabel, two.Sample[0].NumUnit = map[string][]int64{key: {at(1), at(2)}},
		map[string][]string{key: {"", ""}}
	pd, _, _ := requireLossless(t, two.bytes(t), withTimestamps)
	assert.Contains(t, profiletest.Render(pd), "end_timestamp_ns=[", "two numbers are not a time")
	plain, _, err := Decode(newTimedPprof("samples").add("a", key, "", at(1), 1).bytes(t), Options{})
	require.NoError(t, err)
	assert.Contains(t, profiletest.Render(plain), "end_timestamp_ns=1767225601000000000", "without the option")
}

// Any mixture of samples with and without times comes back.
func TestTimestampsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := []string{"samples", "cpu", "wall"}[:rapid.IntRange(1, 3).Draw(t, "types")]
		p := newTimedPprof(types...)
		p.DefaultSampleType = rapid.SampledFrom([]string{"", types[0]}).Draw(t, "default")
		for range rapid.IntRange(0, 12).Draw(t, "samples") {
			values := make([]int64, len(types))
			for i := range values {
				values[i] = rapid.Int64Range(0, 2).Draw(t, "value")
			}
			if slices.Max(values) == 0 {
				values[0] = 1 // see requireLossless
			}
			p.add(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "function"),
				rapid.SampledFrom([]string{"", "end_timestamp_ns", "timestamps_unix_nano"}).Draw(t, "key"),
				rapid.SampledFrom([]string{"", "nanoseconds"}).Draw(t, "unit"),
				year2026+rapid.Int64Range(-1, 12).Draw(t, "at")*1e9, values...)
		}
		requireLossless(t, p.bytes(t), withTimestamps)
	})
}

// OTLP is the same after a way through pprof: points, intervals, and with them profiles without times.
func TestOTLPTimestampsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := profiletest.New().Resource().Scope("", "")
		for range rapid.IntRange(1, 5).Draw(t, "profiles") {
			b = b.Profile(rapid.SampledFrom([]string{"samples", "off_cpu", "wall"}).Draw(t, "type"), "count").
				Time(uint64(year2026), 10e9)
			shape := rapid.SampledFrom([]string{"points", "intervals", "values"}).Draw(t, "shape")
			for _, function := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).
				Draw(t, "functions") {
				s := profiletest.Sample{Stack: profiletest.Stack(function, "main")}
				if shape == "values" {
					s.Values = []int64{rapid.Int64Range(1, 2).Draw(t, "value")}
				}
				for range rapid.IntRange(1, 3).Draw(t, "observations") {
					if shape != "values" {
						s.Timestamps = append(s.Timestamps, uint64(year2026)+rapid.Uint64Range(0, 3).Draw(t, "at"))
					}
					if shape == "intervals" {
						s.Values = append(s.Values, rapid.Int64Range(2, 3).Draw(t, "value")) // if all are 1, they come back as none
					}
				}
				b = b.Sample(s)
			}
		}
		requireComesBack(t, b.Build())
	})
}

// requireComesBack decodes each pprof, and compares the result with the profiles that it was encoded from.
func requireComesBack(t require.TestingT, pd pprofile.Profiles) {
	encoded, _, err := encode.Encode(pd)
	require.NoError(t, err)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	seen := map[int]bool{}
	for _, payload := range encoded {
		want := pprofile.NewProfiles()
		pd.Dictionary().CopyTo(want.Dictionary())
		scope := want.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty()
		for _, i := range payload.ProfileIndices {
			profiles.At(i).CopyTo(scope.Profiles().AppendEmpty())
			require.False(t, seen[i])
			seen[i] = true
		}
		got, _, err := Decode(payload.Bytes, withTimestamps)
		require.NoError(t, err)
		got.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Clear()
		require.NoError(t, profiletest.Equal(withoutIDs(want), withoutIDs(got)))
	}
	require.Len(t, seen, profiles.Len())
}

// The payloads of dd-trace for Node have the time of each sample of the wall clock and of each event.
func TestTimestampsOfDatadog(t *testing.T) {
	body := profiletest.FileBytes(t, filepath.Join("testdata", "dd-trace", "input.body"))
	form := multipart.NewReader(bytes.NewReader(body), "151e358505afa95f")
	seen := map[string]int{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		data, err := io.ReadAll(part)
		require.NoError(t, err)
		if !strings.HasSuffix(part.FileName(), ".pprof") {
			continue
		}
		pd, _, _ := requireLossless(t, data, withTimestamps)
		for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			for _, s := range p.Samples().All() {
				for _, at := range s.TimestampsUnixNano().All() {
					seen[part.FileName()]++
					require.WithinRange(t, time.Unix(0, int64(at)), time.Date(2026, 11, 21, 21, 29, 20, 0, time.UTC),
						time.Date(2026, 11, 21, 21, 29, 50, 0, time.UTC))
				}
			}
		}
	}
	t.Log(seen)
	require.Greater(t, seen["wall.pprof"], 50)
	require.Positive(t, seen["events.pprof"])
	require.Zero(t, seen["space.pprof"])
}

// Samples that each have a time and a stack of their own are the most expensive for their bytes.
func TestTimestampsAreBounded(t *testing.T) {
	base := profiletest.PprofWire(nil).Strings("", "samples", "count", "end_timestamp_ns").
		ValueType(profiletest.PprofSampleType, 1, 2)
	var distinct, alike profiletest.PprofWire
	for i := range 60_000 {
		label := profiletest.PprofLabel{Key: 3, Num: year2026 + int64(i)}
		alike = alike.Message(profiletest.PprofSample,
			profiletest.PprofWire(nil).Packed(profiletest.PprofSampleValue, 2).Label(label))
		distinct = distinct.Location(profiletest.PprofLocationFields{ID: uint64(i) + 1, Address: uint64(i)}).
			Message(profiletest.PprofSample, profiletest.PprofWire(nil).Packed(profiletest.PprofSampleLocation, uint64(i)+1).
				Label(label))
	}
	for name, samples := range map[string]profiletest.PprofWire{"alike": alike, "distinct": distinct} {
		payload := append(slices.Clone(base), samples...)
		var pd pprofile.Profiles
		profiletest.RequireCost(t, profiletest.BoundOf(len(payload), decodeConstant, decodeFactor), func() {
			pd, _, _ = Decode(payload, withTimestamps)
		})
		n := 0
		for _, s := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			n += s.TimestampsUnixNano().Len()
		}
		require.Equal(t, 60_000, n, name)
	}
}
