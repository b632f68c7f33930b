// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// fixtures are messages that old versions of pdata wrote (testdata/README.md).
var fixtures = map[string]Layout{
	"111": V1_3, "116": V1_4, "124": V1_4, "133": V1_7, "136": V1_8, "145": V1_9,
}

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	return profiletest.FileBytes(t, filepath.Join("testdata", name))
}

func TestUnmarshalReadsMessagesOfOldPdata(t *testing.T) {
	for name, layout := range fixtures {
		t.Run(name, func(t *testing.T) {
			profiles, stats, err := Unmarshal(readFixture(t, name+".pb"), nil)
			require.NoError(t, err)
			require.Equal(t, Stats{Layout: layout}, stats)
			// The texts of 1.8's comments stay in the string table too, until dictionary_dedup removes them.
			require.NoError(t, profiletest.Check(profiles, profiletest.AllowOrphans()))
			profiletest.Golden(t, filepath.Join("testdata", name+".golden"), profiletest.Render(profiles))

			fromJSON, stats, err := UnmarshalJSON(readFixture(t, name+".json"), nil)
			require.NoError(t, err)
			if layout == V1_9 {
				layout = V1_10 // JSON has the same names in both
			}
			require.Equal(t, Stats{Layout: layout}, stats)
			require.NoError(t, profiletest.Equal(profiles, fromJSON))
		})
	}
}

type fieldsOf = worst.Fields

// request wraps profiles into a resource and a scope.
func request(profile any, more ...any) []byte {
	return append(fieldsOf{1, fieldsOf{2, fieldsOf{2, profile}}}, more...).Bytes()
}

func render(t *testing.T, data []byte) (string, Stats) {
	t.Helper()
	profiles, stats, err := Unmarshal(data, nil)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(profiles, profiletest.AllowRepeatedSamples()))
	return profiletest.Render(profiles), stats
}

// A single value for several timestamps, as the eBPF profiler wrote it in 1.8 and 1.9, is their number or none.
func TestValuesThatCountTimestamps(t *testing.T) {
	for name, tt := range map[string]struct {
		unit     string
		values   [2][]int64
		want     []string
		repaired int
	}{
		"1":                   {"count", [2][]int64{{1}, {1}}, []string{"sample @100 @200", "sample @300"}, 1},
		"their number":        {"count", [2][]int64{{2}, {1}}, []string{"sample @100 @200", "sample @300"}, 1},
		"beside other values": {"count", [2][]int64{{1}, {7}}, []string{"sample @100 @200", "sample 7@300"}, 1},
		"each its value":      {"count", [2][]int64{{1, 2}, {1}}, []string{"sample 1@100 2@200", "sample 1@300"}, 0},
		"none":                {"count", [2][]int64{nil, nil}, []string{"sample @100 @200", "sample @300"}, 0},
		"another unit":        {"bytes", [2][]int64{{1}, {1}}, []string{"sample 1@300"}, 0},
		"another number":      {"count", [2][]int64{{3}, {1}}, []string{"sample 1@300"}, 0},
	} {
		pd := profiletest.New().Profile("events", tt.unit).
			Sample(profiletest.Observed([]uint64{100, 200}, "a")).Sample(profiletest.Observed([]uint64{300}, "b")).Build()
		samples := profiletest.ProfileAt(pd, 0).Samples()
		for i, values := range tt.values {
			samples.At(i).Values().FromRaw(values)
		}
		for of, unmarshal := range map[string]func() (pprofile.Profiles, Stats, error){
			"protobuf": func() (pprofile.Profiles, Stats, error) {
				data := profiletest.Marshal(t, pd)
				return UnmarshalCurrent(data, nil)
			},
			"JSON": func() (pprofile.Profiles, Stats, error) {
				data, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
				require.NoError(t, err)
				return UnmarshalJSON(data, nil)
			},
		} {
			got, stats, err := unmarshal()
			require.NoError(t, err)
			for _, want := range tt.want {
				require.Contains(t, profiletest.Render(got), want, name, of)
			}
			require.Equal(t, tt.repaired, stats.Repaired[RepairValueCount], name, of)
		}
	}
}

// What values and timestamps meant in 1.3 to 1.7, in each combination that profilers sent.
func TestValuesAndTimestampsOfOldSamples(t *testing.T) {
	samples, alloc := fieldsOf{1, 2, 2, 3}, fieldsOf{1, 4, 2, 5}
	for name, tt := range map[string]struct {
		types    []fieldsOf
		sample   fieldsOf
		want     []string
		notWant  []string
		repaired int
	}{
		"a value": {[]fieldsOf{samples}, fieldsOf{3, []int{7}}, []string{"sample 7"}, nil, 0},
		"values of two types": {[]fieldsOf{samples, alloc}, fieldsOf{3, []int{7, 900}},
			[]string{"samples in count", "sample 7", "alloc in bytes", "sample 900"}, nil, 0},
		"zero is left out": {[]fieldsOf{samples, alloc}, fieldsOf{3, []int{7, 0}}, []string{"sample 7"},
			[]string{"alloc in bytes"}, 0},
		"timestamps alone": {[]fieldsOf{samples}, fieldsOf{6, []int{100, 200}}, []string{"sample @100 @200"}, nil,
			0},
		"a value for each": {[]fieldsOf{alloc}, fieldsOf{3, []int{7, 8}, 6, []int{100, 200}},
			[]string{"sample 7@100 8@200"}, nil, 0},
		"a count of timestamps": {[]fieldsOf{samples}, fieldsOf{3, []int{2}, 6, []int{100, 200}},
			[]string{"sample @100 @200"}, nil, 0},
		"a dummy count": {[]fieldsOf{samples}, fieldsOf{3, []int{1}, 6, []int{100, 200}},
			[]string{"sample @100 @200"}, nil, 0},
		"a total": {[]fieldsOf{alloc}, fieldsOf{3, []int{7}, 6, []int{100, 200}},
			[]string{"sample 4@100 3@200"}, nil, 0},
		"a total of two types": {[]fieldsOf{samples, alloc}, fieldsOf{3, []int{2, 7}, 6, []int{100, 200}},
			[]string{"sample @100 @200", "sample 4@100 3@200"}, nil, 0},
		"a repeated type": {[]fieldsOf{samples, samples, samples}, fieldsOf{3, []int{7}}, []string{"sample 7"}, nil,
			0},
		"no type": {nil, fieldsOf{3, []int{7}}, []string{"samples in count", "sample 7"}, nil, 0},
		"fewer values than types": {[]fieldsOf{samples, alloc}, fieldsOf{3, []int{7}}, []string{"sample 7"},
			[]string{"alloc"}, 1},
		"more values than types": {[]fieldsOf{samples}, fieldsOf{3, []int{7, 8}}, []string{"sample 7"}, []string{"8"}, 1},
		"more timestamps than time": {[]fieldsOf{samples}, fieldsOf{6, []int{100, 900}},
			[]string{"time 100 ns", "duration 801 ns"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			profile := worst.OldProfile(2, append(fieldsOf{1, 0, 2, 1}, tt.sample...))
			for _, typ := range tt.types {
				profile = append(profile, 1, typ)
			}
			got, stats := render(t, request(profile))
			require.Equal(t, V1_4, stats.Layout)
			for _, want := range tt.want {
				require.Contains(t, got, want)
			}
			for _, not := range tt.notWant {
				require.NotContains(t, got, not)
			}
			require.Equal(t, tt.repaired, stats.Repaired[RepairValueCount])
		})
	}
}

func TestPeculiaritiesOf1x3(t *testing.T) {
	strings := []any{6, "", 6, "main", 6, "leaf", 6, "/bin/a", 6, "f00d", 6, "python", 6, "key", 6, "text", 6, "ms"}
	build := func(more ...any) []byte {
		inner := append(append(fieldsOf{}, strings...), more...)
		return request(fieldsOf{2, uint64(1000), 3, uint64(3000), 8, inner})
	}
	function := func(name int) fieldsOf { return fieldsOf{2, name} }
	for name, tt := range map[string]struct {
		data []byte
		want []string
	}{
		"mapping 0 and function 0 are real": {
			build(3, fieldsOf{2, 0x1000, 3, 0x2000, 5, 3}, 4, fieldsOf{3, 0x1100, 4, fieldsOf{2, 5}}, 5, function(1),
				2, fieldsOf{1, []int{0}, 2, []int{5}}),
			[]string{"main :5 at 0x1100 in [/bin/a 0x1000-0x2000"},
		},
		"references are pprof's ids": {
			build(3, fieldsOf{1, 1, 2, 0x1000, 3, 0x2000, 5, 3}, 4, fieldsOf{1, 1, 2, 1, 3, 0x10, 4, fieldsOf{1, 1}},
				4, fieldsOf{1, 2, 2, 1, 3, 0x20, 4, fieldsOf{1, 2}}, 5, fieldsOf{1, 1, 2, 1}, 5, fieldsOf{1, 2, 2, 2},
				2, fieldsOf{1, []int{2, 1}, 2, []int{5}}),
			[]string{"leaf", "at 0x20 in [/bin/a", "main", "at 0x10 in [/bin/a"},
		},
		"build id, frame type, times": {
			build(3, fieldsOf{5, 3, 6, 4, 11, 1}, 4, fieldsOf{3, 0x10, 6, 5}, 2, fieldsOf{1, []int{0}, 2, []int{5}}),
			[]string{`process.executable.build_id.htlhash="f00d"`, `profile.frame.type="cpython"`, "time 1000 ns",
				"duration 2000 ns"},
		},
		"labels": {
			build(4, fieldsOf{3, 0x10}, 2, fieldsOf{1, []int{0}, 2, []int{5}, 3, fieldsOf{1, 6, 2, 7}},
				2, fieldsOf{1, []int{0}, 2, []int{6}, 3, fieldsOf{1, 6, 3, 12, 4, 8}}),
			[]string{`sample 5 {key="text"}`, `sample 6 {key=12 in ms}`},
		},
		"without times": {
			request(fieldsOf{8,
				append(append(fieldsOf{}, strings...), 4, fieldsOf{3, 0x10}, 2, fieldsOf{1, []int{0}, 2, []int{5}})}),
			[]string{"sample 5", "at 0x10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, stats := render(t, tt.data)
			require.Equal(t, V1_3, stats.Layout)
			for _, want := range tt.want {
				require.Contains(t, got, want)
			}
		})
	}
}

func TestTablesOfTheMessageIn1x6(t *testing.T) {
	data := append(request(fieldsOf{1, fieldsOf{1, 2, 2, 3, 3, 2}, 2, fieldsOf{1, 0, 2, 1, 3, []int{5}, 4, []int{0}}, 3,
		[]int{0}, 4, 1000, 9, 0}),
		fieldsOf{
			3, fieldsOf{2, 0x10, 3, fieldsOf{1, 0}}, 4, fieldsOf{1, 1}, 6, "", 6, "main", 6, "samples", 6, "count", 6, "ms",
			7, fieldsOf{1, "wait", 2, fieldsOf{3, 4}}, 8, fieldsOf{1, 5, 2, 4}, 6, "wait",
		}.Bytes()...)
	got, stats := render(t, data)
	require.Equal(t, V1_6, stats.Layout)
	require.Contains(t, got, `sample 5 {wait=4 in ms}`)
	require.Contains(t, got, `otlp.aggregation_temporality="cumulative"`)
	require.Contains(t, got, "main")
}

// The default sample type comes first, whether it is named or numbered; the original order is recorded.
func TestDefaultSampleType(t *testing.T) {
	types := []any{1, fieldsOf{1, 2, 2, 3}, 1, fieldsOf{1, 4, 2, 5}, 2, fieldsOf{1, 0, 2, 1, 3, []int{7, 900}}, 16, 4}
	got, _ := render(t, request(worst.OldProfile(types...)))
	require.Regexp(t, `(?s)default_sample_type="alloc".*sample_type_order=\[1, ?0\].*alloc in bytes.*samples in count`,
		got)
}

func TestOnlyUnreadableSamplesAreDropped(t *testing.T) {
	got, stats := render(t, request(worst.OldProfile(1, fieldsOf{1, 2, 2, 3},
		2, fieldsOf{1, 0, 2, 1, 3, []int{1}},
		2, fieldsOf{1, 0, 2, 9, 3, []int{2}},
		2, fieldsOf{1, 1, 2, 1, 3, []int{3}},
		2, fieldsOf{1, 0, 2, 1},
		5, []int{7}, // location index 1: a location that is not there
		2, fieldsOf{1, 1, 2, 1, 3, []int{4}},
	)))
	require.Equal(t, [NumDropReasons]int{DropStackRange: 1, DropLocation: 2, DropEmpty: 1}, stats.Dropped)
	require.Contains(t, got, "sample 1")
}

// A list can be written in several parts, packed or not. Nothing of the message around it may change.
func TestDetectDoesNotChangeTheMessage(t *testing.T) {
	long := slices.Repeat([]int{1}, 130)
	data := request(fieldsOf{2, fieldsOf{1, 1, 2, long, 2, 1, 5, []uint64{9}}}, 2,
		fieldsOf{6, fieldsOf{}, 6, fieldsOf{1, 1}})
	before := bytes.Clone(data)
	Detect(data)
	require.Equal(t, before, data)
}

// The comments of 1.8 that can be read are kept, and the others counted, as in older layouts.
func TestCommentsOf1x8(t *testing.T) {
	long := strings.Repeat("x", maxShared)
	data := request(fieldsOf{7, []int{1, 99, 2}, 8, "0123456789abcdef", 2, fieldsOf{1, 0, 2, []int{1}}}, 2,
		fieldsOf{5, "", 5, "first", 5, "last", 5, long})
	profiles, stats, err := Unmarshal(data, nil)
	require.NoError(t, err)
	require.Equal(t, V1_8, stats.Layout)
	require.Contains(t, profiletest.Render(profiles), `pprof.profile.comment=["first", "", "last"]`)
	require.Equal(t, 1, stats.Repaired[RepairIndex])

	data = request(fieldsOf{7, slices.Repeat([]int{3}, 10), 8, "0123456789abcdef", 2, fieldsOf{1, 0, 2, []int{1}}}, 2,
		fieldsOf{5, "", 5, "first", 5, "last", 5, long})
	_, stats, err = Unmarshal(data, nil)
	require.NoError(t, err)
	require.Equal(t, 1, stats.Repaired[RepairExpansion])
}

func TestJSONHasOneMessage(t *testing.T) {
	old, today := readFixture(t, "116.json"), readFixture(t, "145.json")
	for _, second := range [][]byte{old, today, []byte("]"), []byte("x")} {
		for _, first := range [][]byte{old, today} {
			_, _, err := UnmarshalJSON(slices.Concat(first, []byte("\n"), second), nil)
			require.ErrorContains(t, err, "one JSON value")
		}
	}
	_, _, err := UnmarshalJSON(append(old, " \n"...), nil)
	require.NoError(t, err)
}

// The names that replace old frame types are those of the semantic conventions.
func TestFrameTypesAreThoseOfTheConventions(t *testing.T) {
	published := profiletest.FileBytes(t, filepath.Join("..", "testdata", "semconv-1.43.txt"))
	for old, renamed := range frameTypes {
		assert.Contains(t, strings.Fields(string(published)), "profile.frame.type="+renamed, old)
	}
}

// Protobuf's mapping to JSON allows null for every field, base64 with either alphabet, padded or not, and whole numbers
// with a point or an exponent, and nobody minds a byte order mark.
func TestJSONAsOthersWriteIt(t *testing.T) {
	const id = "fbff0123456789abcdef0123456789ab"
	message := func(profile string) []byte {
		return []byte(`{"resourceProfiles":[{"resource":{"attributes":[{"key":"x","value":{"doubleValue":null}},{"key":"null","value":{"stringValue":": null"}}],
			"droppedAttributesCount":null},"scopeProfiles":[{"scope":null,"schemaUrl":null,"profiles":[{` + profile + `}]}]}],
			"dictionary":{"stringTable":["","cpu"],"mappingTable":[{}],"locationTable":[{"mappingIndex":null,"address": null }],"linkTable":[{}]}}`)
	}
	want, _, err := UnmarshalJSON(message(`"profileId":"`+id+
		`","originalPayload":"+/8=","timeUnixNano":"5","samples":[{"values":["1"]}]`), nil)
	require.NoError(t, err)
	require.Equal(t, id, profiletest.ProfileAt(want, 0).ProfileID().String())
	require.Equal(t, []byte{0xfb, 0xff}, profiletest.ProfileAt(want, 0).OriginalPayload().AsRaw())
	attributes := want.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	require.Equal(t, map[string]any{"x": nil, "null": ": null"}, attributes)
	for _, profile := range []string{
		`"profileId":"-_8BI0VniavN7wEjRWeJqw==","originalPayload":"-_8","timeUnixNano":5,"samples":[{"values":["1"],"linkIndex":null}]`,
		`"profileId":"+/8BI0VniavN7wEjRWeJqw","originalPayload":"+/8","timeUnixNano":5,"period":null,"sampleType":null,"samples":[{"values":[1],"timestampsUnixNano":null}],"attributeIndices":null`,
		`"profileId":"` + id + `","originalPayload":"+/8","timeUnixNano":"5.0","samples":[{"values":[1e0],"linkIndex":0.0}]`,
	} {
		got, _, err := UnmarshalJSON(append([]byte("\ufeff"), message(profile)...), nil)
		require.NoError(t, err, profile)
		require.NoError(t, profiletest.Equal(want, got), profile)
	}
	for _, profile := range []string{
		`"profileId":"short"`, `"samples":[{"values":[1.5]}]`, `"samples":[{"values":[1e19]}]`, `"period":"1e"`, `"period":"NaN"`,
	} {
		_, _, err = UnmarshalJSON(message(profile), nil)
		require.Error(t, err, profile)
	}
	for _, cut := range []string{`{"a`, `{"a"`, `{"a":`, `{"a":nul`, `{"a":"`, `{"a":"\`, `"`} {
		_, _, err = UnmarshalJSON([]byte(cut), nil)
		require.Error(t, err, cut)
	}
}
