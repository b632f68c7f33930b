// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The peak of the heap is at most decodeConstant + decodeFactor × the plain payload: docs/limits.md. Most of the
// factor is the size of a Sample of pdata, about eighty bytes, whose value has one byte in a pprof.
const (
	decodeConstant = 16 << 20
	decodeFactor   = 100
)

// worstPayloads returns payloads of about size bytes, made to cost as much as possible: many of the smallest possible
// messages of each kind, or one large text that is referred to again and again.
func worstPayloads(size int) map[string]pt.PprofWire {
	const (
		text    = uint64(15) // the index of the first string after oddStrings
		invalid = "\xff\xfe"
	)
	fill := func(start pt.PprofWire, next func(i int) pt.PprofWire) pt.PprofWire {
		w := start
		for i := 0; len(w) < size; i++ {
			w = append(w, next(i)...)
		}
		return w
	}
	repeat := func(start, piece pt.PprofWire) pt.PprofWire {
		return fill(start, func(int) pt.PprofWire { return piece })
	}
	empty := pt.PprofWire(nil)
	half := strings.Repeat("x", size/2)
	withText := oddBase().Strings(half)
	labelled := func(l pt.PprofLabel) pt.PprofWire { return empty.Message(pt.PprofSample, empty.Label(l)) }
	everyLabel := func(i int) pt.PprofLabel { return pt.PprofLabel{Key: 1, Str: int64(text), Num: int64(i + 1)} }
	all := map[string]pt.PprofWire{
		// Many small messages.
		"samples":   repeat(oddBase(), empty.Message(pt.PprofSample, nil)),
		"locations": repeat(oddBase(), empty.Message(pt.PprofLocation, nil)),
		"lines": oddBase().Message(pt.PprofLocation,
			repeat(empty.Varint(1, 3), empty.Message(pt.PprofLocationLine, nil))).Message(pt.PprofSample, oddSample(1, 3)),
		"functions":    repeat(oddBase(), empty.Message(pt.PprofFunction, nil)),
		"mappings":     repeat(oddBase(), empty.Message(pt.PprofMapping, nil)),
		"strings":      repeat(oddBase(), empty.Strings("")),
		"comments":     repeat(oddBase(), empty.Packed(pt.PprofComment, 1, 1, 1, 1, 1, 1, 1, 1)),
		"sample types": repeat(oddBase(), empty.Message(pt.PprofSampleType, nil)),
		"sparse ids": fill(oddBase(), func(i int) pt.PprofWire {
			return empty.Location(pt.PprofLocationFields{ID: uint64(i)<<40 + 3, Address: 1})
		}),
		"reached locations": fill(oddBase(), func(i int) pt.PprofWire {
			return empty.Location(pt.PprofLocationFields{ID: uint64(i) + 3, Address: uint64(i)}).
				Message(pt.PprofSample, oddSample(1, uint64(i)+3))
		}),
		"reached mappings": fill(oddBase(), func(i int) pt.PprofWire {
			return empty.Mapping(pt.PprofMappingFields{ID: uint64(i) + 1, Start: uint64(i) + 9}).
				Location(pt.PprofLocationFields{ID: uint64(i) + 3, Mapping: uint64(i) + 1}).
				Message(pt.PprofSample, oddSample(1, uint64(i)+3))
		}),
		"unknown fields": repeat(oddBase(), empty.Varint(15+1, 0)),

		// One huge sample or location.
		"stack ids": oddBase().Message(pt.PprofSample, empty.Message(pt.PprofSampleLocation, repeat(nil, pt.PprofWire{1}))),
		"unpacked stack ids": oddBase().Message(pt.PprofSample,
			repeat(nil, empty.Unpacked(pt.PprofSampleLocation, 1))),
		"values":            oddBase().Message(pt.PprofSample, empty.Message(pt.PprofSampleValue, repeat(nil, pt.PprofWire{1}))),
		"no numbers":        oddBase().Message(pt.PprofSample, repeat(nil, empty.Message(pt.PprofSampleLocation, nil))),
		"labels of one key": oddBase().Message(pt.PprofSample, repeat(nil, empty.Label(pt.PprofLabel{Key: 1, Num: 1}))),
		"labels of one key and other numbers": oddBase().Message(pt.PprofSample, fill(nil, func(i int) pt.PprofWire {
			return empty.Label(pt.PprofLabel{Key: 1, Num: int64(i)})
		})),
		"labels of mixed units": oddBase().Message(pt.PprofSample, fill(nil, func(i int) pt.PprofWire {
			return empty.Label(pt.PprofLabel{Key: 1, Num: 1, Unit: int64(1 + i%2)})
		})),
		"text and number": oddBase().Message(pt.PprofSample, fill(nil, func(i int) pt.PprofWire {
			return empty.Label(pt.PprofLabel{Key: int64(1 + i%3), Num: int64(i)}).Label(pt.PprofLabel{Key: int64(1 + i%3), Str: 1})
		})),
		"empty labels": oddBase().Message(pt.PprofSample, repeat(nil, empty.Message(pt.PprofSampleLabel, nil))),

		// Many different samples.
		"distinct stacks": fill(oddBase(), func(i int) pt.PprofWire {
			stack := empty
			for bit := range 16 {
				stack = append(stack, byte(1+i>>bit&1))
			}
			return empty.Message(pt.PprofSample, empty.Message(pt.PprofSampleLocation, stack))
		}),
		"distinct labels": fill(oddBase(), func(i int) pt.PprofWire { return labelled(pt.PprofLabel{Key: 1, Num: int64(i + 1)}) }),
		"links": fill(oddBase(), func(i int) pt.PprofWire {
			return empty.Strings(fmt.Sprintf("%032x", i+1)).Message(pt.PprofSample,
				empty.Label(pt.PprofLabel{Key: sTrace, Str: int64(i) + 15}).Label(pt.PprofLabel{Key: sSpan, Str: sSpanHex}))
		}),

		// One large text, many references.
		"text as comments": repeat(withText, empty.Packed(pt.PprofComment, text)),
		"text as labels":   fill(withText, func(i int) pt.PprofWire { return labelled(everyLabel(i)) }),
		"text as key":      fill(withText, func(i int) pt.PprofWire { return labelled(pt.PprofLabel{Key: int64(text), Num: int64(i + 1)}) }),
		"text as unit":     fill(withText, func(i int) pt.PprofWire { return labelled(pt.PprofLabel{Key: 1, Num: int64(i + 1), Unit: int64(text)}) }),
		"text of two units": oddBase().Strings(half[:size/4], half[:size/4]).Message(pt.PprofSample, fill(nil, func(i int) pt.PprofWire {
			return empty.Label(pt.PprofLabel{Key: 1, Num: int64(i + 1), Unit: int64(text) + int64(i%2)})
		})[:size/2]),
		"text under many keys": fill(withText, func(i int) pt.PprofWire {
			return empty.Strings(fmt.Sprint(i)).Message(pt.PprofSample, empty.Label(pt.PprofLabel{Key: int64(i) + 16, Str: int64(text)}))
		}),
		"text twice in one sample": fill(withText, func(i int) pt.PprofWire {
			return empty.Message(pt.PprofSample, empty.Label(pt.PprofLabel{Key: 1, Str: int64(text)}).
				Label(pt.PprofLabel{Key: 1, Str: int64(text)}).Label(pt.PprofLabel{Key: 2, Num: int64(i + 1)}))
		}),
		"text beside a number": fill(withText, func(i int) pt.PprofWire {
			return empty.Message(pt.PprofSample, empty.Label(pt.PprofLabel{Key: 1, Str: int64(text)}).
				Label(pt.PprofLabel{Key: 2, Num: int64(i + 1)}))
		}),
		"text as function names": fill(withText, func(i int) pt.PprofWire {
			return empty.Function(pt.PprofFunctionFields{ID: uint64(i) + 3, Name: int64(text), SystemName: int64(text), File: int64(text)}).
				Location(pt.PprofLocationFields{ID: uint64(i) + 3, Lines: []pt.PprofLine{{Function: uint64(i) + 3}}}).
				Message(pt.PprofSample, oddSample(1, uint64(i)+3))
		}),
		"text as build ids": fill(withText, func(i int) pt.PprofWire {
			return empty.Mapping(pt.PprofMappingFields{ID: uint64(i) + 1, Start: 1, Limit: uint64(i) + 9, File: int64(text), BuildID: int64(text)}).
				Location(pt.PprofLocationFields{ID: uint64(i) + 3, Mapping: uint64(i) + 1}).
				Message(pt.PprofSample, oddSample(1, uint64(i)+3))
		}),
		"text that is not UTF-8 as labels": fill(oddBase().Strings(strings.Repeat(invalid, size/4)), func(i int) pt.PprofWire {
			return labelled(everyLabel(i))
		}),
		"text that is not UTF-8 as keys": fill(oddBase().Strings(strings.Repeat(invalid, size/8), strings.Repeat(invalid, size/8)), func(i int) pt.PprofWire {
			return labelled(pt.PprofLabel{Key: int64(text) + int64(i&1), Num: int64(i + 1)})
		}),
		"text that is not UTF-8 as comments": repeat(oddBase().Strings(strings.Repeat(invalid, size/4)), empty.Packed(pt.PprofComment, text)),
	}
	all["text as sample types"] = withText
	for range scan.MaxSampleTypes - 1 {
		all["text as sample types"] = all["text as sample types"].ValueType(pt.PprofSampleType, int64(text), int64(text))
	}
	all["text as sample types"] = all["text as sample types"].Message(pt.PprofSample, oddSample(1, 1))
	all["many keys of one sample"] = manyKeys(size)
	all["many types"], all["many types and labels"], all["many types and no values"] = manyTypes(size)
	all["unreadable location"] = unreadableLocation(size)
	return all
}

// manyKeys returns a sample with labels of as many keys as fit.
func manyKeys(size int) pt.PprofWire {
	w, labels := oddBase(), pt.PprofWire(nil)
	for i := 0; len(w)+len(labels) < size; i++ {
		w = w.Strings(fmt.Sprint(i))
		labels = labels.Label(pt.PprofLabel{Key: int64(15 + i), Num: 1})
	}
	return w.Message(pt.PprofSample, labels)
}

// manyTypes returns payloads of as many sample types as Decode accepts: with all values, with labels too, and without
// values.
func manyTypes(size int) (values, labels, none pt.PprofWire) {
	w := oddBase()
	for range scan.MaxSampleTypes - 1 {
		w = w.ValueType(pt.PprofSampleType, 1, 2)
	}
	ones := pt.PprofWire(nil)
	for range scan.MaxSampleTypes {
		ones = append(ones, 1)
	}
	sample := pt.PprofWire(nil).Message(pt.PprofSampleValue, ones)
	values, labels, none = w, w, w
	for i := 0; len(values) < size; i++ {
		values = values.Message(pt.PprofSample, sample.Label(pt.PprofLabel{Key: 1, Num: int64(i + 1)}))
	}
	for i := 0; len(none) < size; i++ {
		none = none.Message(pt.PprofSample, pt.PprofWire(nil).Label(pt.PprofLabel{Key: 1, Num: int64(i + 1)}))
	}
	for i := 0; len(labels)+len(sample) < size; i++ {
		labels = labels.Strings(fmt.Sprint(i))
		sample = sample.Label(pt.PprofLabel{Key: int64(15 + i), Num: 1})
	}
	return values, labels.Message(pt.PprofSample, sample), none
}

// unreadableLocation returns stacks of one location with many lines. Each line has to be checked, since another
// function refers to a string that the payload does not have.
func unreadableLocation(size int) pt.PprofWire {
	location := pt.PprofWire(nil).Varint(1, 3)
	for len(location) < size/4 {
		location = location.Message(pt.PprofLocationLine, pt.PprofWire(nil).Varint(1, 1))
	}
	w := oddBase().Function(pt.PprofFunctionFields{ID: 3, Name: 99}).Message(pt.PprofLocation, location)
	for len(w) < size {
		w = w.Message(pt.PprofSample, oddSample(1, 3, 3, 3, 3, 3, 3, 3, 99))
	}
	return w
}

// decodeEveryWay measures every way to read a payload: Decode of each form, Decode with a Baseline, and Read. plain is
// the size of the payload without compression.
func decodeEveryWay(t testing.TB, plain int, forms map[string][]byte, limits scan.Limits) {
	require := func(cost pt.Cost, way string, err error) {
		if t, ok := t.(*testing.T); ok && testing.Verbose() {
			t.Logf("%s: %.0f × %d; %v; error: %v", way, float64(cost.PeakHeapBytes)/float64(plain), plain, cost, err)
		}
		pt.RequireBounded(t, cost, plain, decodeConstant, decodeFactor)
	}
	var kept pprofile.Profiles
	var err error
	for form, payload := range forms {
		cost := pt.MeasureCost(t, func() {
			kept, _, err = Decode(payload, Options{Limits: limits, TimestampLabels: DefaultTimestampLabels()})
		})
		require(cost, "Decode "+form, err)
	}
	payload := forms["plain"]
	baseline := NewBaseline(BaselineOptions{})
	for _, way := range []string{"first", "second"} {
		cost := pt.MeasureCost(t, func() {
			kept, _, err = Decode(payload, Options{Limits: limits, Baseline: baseline})
			baseline.Commit()
		})
		require(cost, "Decode with a Baseline, "+way, err)
	}
	dict := dictionary.New()
	cost := pt.MeasureCost(t, func() { _, err = Read(payload, dict, limits, "", nil, func(Sample) {}) })
	require(cost, "Read", err)
	_ = kept
}

func TestDecodeIsBoundedByItsInput(t *testing.T) {
	zipped, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	const size = 1 << 20
	// The cost of decompression does not depend on the payload.
	compressed := []string{"locations", "values", "distinct labels"}
	for name, payload := range worstPayloads(size) {
		t.Run(name, func(t *testing.T) {
			forms := map[string][]byte{"plain": payload}
			if slices.Contains(compressed, name) {
				forms["gzip"], forms["zstd"] = gzipped(t, payload), zipped.EncodeAll(payload, nil)
			}
			decodeEveryWay(t, len(payload), forms, scan.Limits{})
		})
	}
}

// FuzzDecodeCost bounds the cost of any bytes. FuzzDecode checks what they become.
func FuzzDecodeCost(f *testing.F) {
	for _, payload := range worstPayloads(32 << 10) {
		f.Add([]byte(payload))
		f.Add(gzipped(f, payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		limits := scan.Limits{MaxProfileBytes: 8 << 20}
		var d decompressor
		plain, err := d.plain(payload, limits.MaxProfileBytes, nil)
		if err != nil {
			plain = make([]byte, limits.MaxProfileBytes) // more was not read
		}
		decodeEveryWay(t, len(plain), map[string][]byte{"as it is": payload, "plain": plain}, limits)
	})
}

// No memory is allocated only because a gzip trailer claims a large size.
func TestDecodeDoesNotTrustAGzipTrailer(t *testing.T) {
	payload := gzipped(t, worstPayloads(64 << 10)["links"])
	copy(payload[len(payload)-4:], "\xff\xff\xff\x07")
	var err error
	cost := pt.MeasureCost(t, func() { _, _, err = Decode(payload, Options{}) })
	require.Error(t, err)
	pt.RequireBounded(t, cost, 64<<10, 1<<20, 20)
}

// A worker that a payload has made large is dropped, and one that is kept is not much larger than scan.MaxKeptBytes.
func TestDecoderKeepsLittle(t *testing.T) {
	dropped := 0
	all := worstPayloads(2 << 20)
	for _, name := range []string{
		"locations", "mappings", "lines", "stack ids", "values", "labels of mixed units", "distinct labels",
		"many keys of one sample", "comments", "many types",
	} {
		payload := all[name]
		for way, opts := range map[string]Options{"alone": {}, "with a Baseline": {Baseline: NewBaseline(BaselineOptions{})}} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			w := newWorker()
			_, _ = w.run(payload, opts)
			kept := w.reset()
			runtime.GC()
			runtime.ReadMemStats(&after)
			if held := int(after.HeapAlloc) - int(before.HeapAlloc); kept {
				assert.Less(t, held, scan.MaxKeptBytes+scan.MaxKeptBytes/4, "%s, %s", name, way)
			} else {
				assert.Greater(t, held, scan.MaxKeptBytes/2, "%s, %s: could have been kept", name, way)
				dropped++
			}
			runtime.KeepAlive(w)
		}
	}
	assert.Positive(t, dropped)
}

// decoded decodes a payload and checks the result.
func decoded(t *testing.T, payload pt.PprofWire, limits scan.Limits) (pprofile.Profiles, Stats) {
	pd, stats, err := Decode(payload, Options{Limits: limits})
	require.NoError(t, err)
	require.NoError(t, pt.Check(pd))
	return pd, stats
}

func TestLongTextsAreCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		repairs    map[scan.Repair]int
	}{
		"as long as allowed":      {"abcdefgh", "abcdefgh", nil},
		"longer":                  {"abcdefghi", "abcdefgh", map[scan.Repair]int{scan.RepairTruncatedText: 1}},
		"within a rune":           {"abcdef\u20ac", "abcdef", map[scan.Repair]int{scan.RepairTruncatedText: 1}},
		"after a rune":            {"abcde\u20acx", "abcde\u20ac", map[scan.Repair]int{scan.RepairTruncatedText: 1}},
		"not UTF-8":               {"ab\xff", "ab\ufffd", map[scan.Repair]int{scan.RepairInvalidUTF8: 1}},
		"longer once it is UTF-8": {"abcdefg\xff", "abcdefg", map[scan.Repair]int{scan.RepairInvalidUTF8: 1}},
		"longer and not UTF-8":    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\ufffd", map[scan.Repair]int{scan.RepairInvalidUTF8: 1, scan.RepairTruncatedText: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			payload := oddBase().Strings(test.text).
				Function(pt.PprofFunctionFields{ID: 3, Name: 15, SystemName: 15}).
				Location(pt.PprofLocationFields{ID: 3, Lines: []pt.PprofLine{{Function: 3}}}).
				Message(pt.PprofSample, oddSample(1, 3).Label(pt.PprofLabel{Key: sThread, Str: 15})).
				Message(pt.PprofSample, oddSample(1, 3).Label(pt.PprofLabel{Key: sThread, Str: 15}).Label(pt.PprofLabel{Key: 15, Num: 1, Unit: 15})).
				Packed(pt.PprofComment, 15)
			pd, stats := decoded(t, payload, scan.Limits{MaxTextBytes: 8})
			var want [scan.NumRepairs]int
			for repair, n := range test.repairs {
				want[repair] = n
			}
			assert.Equal(t, want, stats.Repaired, "once for all references")
			d := pd.Dictionary()
			assert.Equal(t, test.want, d.StringTable().At(int(d.FunctionTable().At(1).NameStrindex())))
			values := map[string]string{}
			for _, a := range d.AttributeTable().All() {
				values[d.StringTable().At(int(a.KeyStrindex()))] = a.Value().AsString()
			}
			assert.Equal(t, test.want, values["thread"])
			assert.Equal(t, "1", values[test.want])
			comments, err := json.Marshal([]string{test.want})
			require.NoError(t, err)
			assert.Equal(t, string(comments), values[scan.AttributeComment])
		})
	}
}

func TestCommentsAboveTheBudgetAreDropped(t *testing.T) {
	const size = 64 << 10
	long := strings.Repeat("x", size/2)
	pd, stats := decoded(t, oddBase().Strings(long).Packed(pt.PprofComment, 15, 15, 3, 15, 15, 15, 15, 15, 15, 4).
		Message(pt.PprofSample, oddSample(1, 1)), scan.Limits{MaxExpansion: 1})
	assert.Equal(t, 8-3, stats.Repaired[scan.RepairDroppedComment])
	assert.Equal(t, 1, stats.Samples)
	comments := pd.Dictionary().AttributeTable().At(1).Value().Slice().AsRaw()
	assert.True(t, slices.Equal([]any{long, long, "main", long, "work"}, comments), "what fits stays, in its order")
}

func TestSamplesAboveTheBudgetAreDropped(t *testing.T) {
	const size = 64 << 10
	long := strings.Repeat("x", size/2)
	label := func(key, str int64) pt.PprofLabel { return pt.PprofLabel{Key: key, Str: str} }
	sample := func(labels ...pt.PprofLabel) pt.PprofWire {
		s := oddSample(1, 1)
		for _, l := range labels {
			s = s.Label(l)
		}
		return s
	}
	for name, test := range map[string]struct {
		samples []pt.PprofWire
		dropped int
	}{
		"each label once": {[]pt.PprofWire{
			sample(label(1, 15)), sample(label(1, 15), label(2, 4)), sample(label(1, 15), label(2, 3)), sample(label(1, 15), label(3, 4)),
		}, 0},
		"too many keys of a text": {[]pt.PprofWire{
			sample(label(1, 15)), sample(label(2, 15)), sample(label(3, 15)), sample(label(4, 15)), sample(label(4, 3)),
		}, 1},
		"an array": {[]pt.PprofWire{
			sample(label(1, 15)), sample(label(1, 15), label(1, 3)), sample(label(1, 15), label(1, 3), label(2, 3)), sample(label(1, 15), label(1, 4)),
			sample(label(1, 15), label(1, 6)),
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			payload := oddBase().Strings(long)
			for _, s := range test.samples {
				payload = payload.Message(pt.PprofSample, s)
			}
			_, stats := decoded(t, payload, scan.Limits{MaxExpansion: 1})
			assert.Equal(t, test.dropped, stats.Dropped[scan.DropOverBudget])
			assert.Equal(t, len(test.samples)-test.dropped, stats.Samples)
		})
	}
}

// The text of a payload, which its labels share, does not stay with the memory that is kept.
func TestWorkerKeepsNoText(t *testing.T) {
	payload := oddBase().Strings(strings.Repeat("x", 16<<20)).
		Message(pt.PprofSample, oddSample(1, 1).Label(pt.PprofLabel{Key: 1, Str: 15}).Label(pt.PprofLabel{Key: 1, Str: 15})).
		Message(pt.PprofSample, oddSample(1, 2))
	w := newWorker()
	_, err := w.run(payload, Options{})
	require.NoError(t, err)
	require.True(t, w.reset())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(w)
	runtime.GC() // w is garbage now
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(before.HeapAlloc)-int64(after.HeapAlloc), int64(1<<20))
}
