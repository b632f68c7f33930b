// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The peak of the heap is at most decodeConstant + decodeFactor × the plain payload. Most of the
// factor is the size of a Sample of pdata, about eighty bytes, whose value has one byte in a pprof. The constant is the
// tables of a new worker, and garbage.
const (
	decodeConstant = 24 << 20
	decodeFactor   = 64
)

// decodeEveryWay measures every way to read a payload: Decode of each form, Decode with a Baseline, and Read. plain is
// the size of the payload without compression. The results are those of the form "plain".
func decodeEveryWay(t testing.TB, plain int, forms map[string][]byte, limits scan.Limits) (peak int64, reserved int) {
	bound := pt.BoundOf(plain, decodeConstant, decodeFactor)
	var kept pprofile.Profiles
	// Plain is first: what the pool has of another form would serve it.
	for _, form := range []string{"plain", "as it is", "gzip", "zstd"} {
		payload, ok := forms[form]
		if !ok {
			continue
		}
		n := 0
		cost := pt.RequireCost(t, bound, func() {
			n = 0
			kept, _, _ = Decode(payload, Options{
				Limits: limits, TimestampLabels: DefaultTimestampLabels(), Meter: &pdatasize.Meter{Reserve: counted(&n)},
			})
		})
		if form == "plain" {
			peak, reserved = cost.PeakHeapBytes, n
		}
	}
	payload := forms["plain"]
	var baseline *Baseline
	compare := func() {
		kept, _, _ = Decode(payload, Options{Limits: limits, Temporality: kind.StatedCumulative, Baseline: baseline})
		baseline.Commit()
	}
	pt.RequireCostOfEach(t, bound, func() func() {
		baseline = NewBaseline(0)
		return compare
	})
	pt.RequireCost(t, bound, compare)
	pt.RequireCostOfEach(t, bound, func() func() {
		dict := dictionary.New()
		return func() { _, _ = Read(payload, dict, ReadOptions{Limits: limits}, func(Sample) {}) }
	})
	_ = kept
	return peak, reserved
}

func TestDecodeIsBoundedByItsInput(t *testing.T) {
	const size = 1 << 20
	// The cost of decompression does not depend on the payload.
	compressed := []string{"locations", "values", "distinct labels"}
	for name, payload := range worst.PProf.All(size) {
		t.Run(name, func(t *testing.T) {
			forms := map[string][]byte{"plain": payload}
			if slices.Contains(compressed, name) {
				forms["gzip"], forms["zstd"] = pt.Gzip(payload), worst.Zstd(payload)
			}
			requireReserved(t, name, func() (int64, int) { return decodeEveryWay(t, len(payload), forms, scan.Limits{}) })
		})
	}
}

// FuzzDecodeCost bounds the cost of any bytes. FuzzDecode checks what they become.
func FuzzDecodeCost(f *testing.F) {
	for _, payload := range worst.PProf.All(32 << 10) {
		f.Add(payload)
		f.Add(pt.Gzip(payload))
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
	payload := pt.Gzip(worst.PProf["links"](64 << 10))
	copy(payload[len(payload)-4:], "\xff\xff\xff\x07")
	var err error
	pt.RequireCost(t, pt.BoundOf(64<<10, 1<<20, 20), func() { _, _, err = Decode(payload, Options{}) })
	require.Error(t, err)
}

// A worker that a payload has made large is dropped, and one that is kept is not much larger than scan.MaxKeptBytes.
func TestDecoderKeepsLittle(t *testing.T) {
	dropped := 0
	for _, name := range []string{
		"locations", "mappings", "lines", "stack ids", "values", "labels of mixed units", "distinct labels",
		"many keys of one sample", "comments", "many types",
	} {
		payload := worst.PProf[name](2 << 20)
		for way, opts := range map[string]Options{"alone": {},
			"with a Baseline": {Temporality: kind.StatedCumulative, Baseline: NewBaseline(0)}} {
			before := pt.HeapBytes()
			w := newWorker()
			_, _ = w.run(payload, opts)
			kept := w.reset()
			if held := pt.HeapBytes() - before; kept {
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
		"longer and not UTF-8": {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\ufffd",
			map[scan.Repair]int{scan.RepairInvalidUTF8: 1, scan.RepairTruncatedText: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			payload := oddBase().Strings(test.text).
				Function(pt.PprofFunctionFields{ID: 3, Name: 15, SystemName: 15}).
				Location(pt.PprofLocationFields{ID: 3, Lines: []pt.PprofLine{{Function: 3}}}).
				Message(pt.PprofSample, oddSample(1, 3).Label(pt.PprofLabel{Key: sThread, Str: 15})).
				Message(pt.PprofSample,
					oddSample(1, 3).Label(pt.PprofLabel{Key: sThread, Str: 15}).Label(pt.PprofLabel{Key: 15, Num: 1, Unit: 15})).
				Packed(pt.PprofComment, 15)
			pd, stats := decoded(t, payload, scan.Limits{MaxStringBytes: 8})
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
			sample(label(1, 15)), sample(label(1, 15), label(2, 4)), sample(label(1, 15), label(2, 3)),
			sample(label(1, 15), label(3, 4)),
		}, 0},
		"too many keys of a text": {[]pt.PprofWire{
			sample(label(1, 15)), sample(label(2, 15)), sample(label(3, 15)), sample(label(4, 15)), sample(label(4, 3)),
		}, 1},
		"an array": {[]pt.PprofWire{
			sample(label(1, 15)), sample(label(1, 15), label(1, 3)), sample(label(1, 15), label(1, 3), label(2, 3)),
			sample(label(1, 15), label(1, 4)),
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
	before := pt.HeapBytes()
	runtime.KeepAlive(w)
	assert.Less(t, before-pt.HeapBytes(), 1<<20, "w is garbage now")
}

// Every way to read a payload takes about as long if the fields of its entries are correlated as if they are random.
func TestCorrelatedKeys(t *testing.T) {
	for name, test := range map[string]struct {
		timed bool
		read  func(payload, next []byte) (Stats, error)
	}{
		"Decode": {false, func(payload, _ []byte) (Stats, error) {
			_, stats, err := Decode(payload, Options{})
			return stats, err
		}},
		"Decode of times": {true, func(payload, _ []byte) (Stats, error) {
			_, stats, err := Decode(payload, Options{TimestampLabels: DefaultTimestampLabels()})
			return stats, err
		}},
		"Decode with a Baseline": {false, func(payload, next []byte) (Stats, error) {
			baseline := NewBaseline(0)
			_, _, err := Decode(payload, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			baseline.Commit()
			_, stats, nextErr := Decode(next, Options{Temporality: kind.StatedCumulative, Baseline: baseline})
			return stats, errors.Join(err, nextErr)
		}},
		"Read": {true, func(payload, _ []byte) (Stats, error) {
			return Read(payload, dictionary.New(), ReadOptions{}, func(Sample) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pt.RequireCorrelatedKeys(t, func(n int, keys pt.Keys) func() {
				payload, next := pt.KeyedPprof(n, keys, 1, test.timed), pt.KeyedPprof(n, keys, 2, test.timed)
				return func() {
					stats, err := test.read(payload, next)
					require.NoError(t, err)
					require.Equal(t, n, stats.Samples)
				}
			})
		})
	}
}
