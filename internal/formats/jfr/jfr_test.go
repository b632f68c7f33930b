// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// recording reads a file of testdata, with the labels beside it.
func recording(t testing.TB, name string) (data []byte, options Options) {
	t.Helper()
	labels := filepath.Join("testdata", name+".labels.gz")
	if _, err := os.Stat(labels); err == nil {
		options.Labels = profiletest.ReadFile(t, labels)
	}
	return profiletest.ReadFile(t, filepath.Join("testdata", name+".jfr.gz")), options
}

var recordings = []string{"jdk17", "example", "dump2", "nativemem", "new_spancontext", "traceid", "wall_tick_sample"}

// Recordings of the JDK and of async-profiler: a line for each profile, and its first samples.
func TestRecordings(t *testing.T) {
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			data, options := recording(t, name)
			kept := bytes.Clone(data)
			pd, stats, err := Decode(data, options)
			require.NoError(t, err)
			require.Equal(t, kept, data, "the input is only read")
			require.NoError(t, profiletest.Check(pd))
			again, _, err := Decode(data, options)
			require.NoError(t, err)
			require.NoError(t, profiletest.Equal(pd, again))
			clear(data) // nothing of it is kept
			require.NoError(t, profiletest.Equal(pd, again))
			profiletest.Golden(t, filepath.Join("testdata", "golden", name+".golden"),
				fmt.Sprintf("%+v\n%s", stats, summary(pd)))
		})
	}
}

// summary describes each profile and its first three samples with their three innermost frames.
func summary(pd pprofile.Profiles) string {
	var b strings.Builder
	for _, line := range strings.Split(shortStacks(profiletest.Render(firstSamples(pd, 3))), "\n") {
		fmt.Fprintln(&b, line)
	}
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			observations, sum := 0, int64(0)
			for _, s := range p.Samples().All() {
				observations += max(s.Values().Len(), s.TimestampsUnixNano().Len())
				for _, v := range s.Values().All() {
					sum += v
				}
			}
			fmt.Fprintf(&b, "%v %s: %d samples, %d observations, sum %d\n", sp.Scope().Attributes().AsRaw(),
				pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())), p.Samples().Len(), observations, sum)
		}
	}
	return b.String()
}

// firstSamples returns profiles with n samples of each, one observation of each sample.
func firstSamples(pd pprofile.Profiles, n int) pprofile.Profiles {
	short := pprofile.NewProfiles()
	pd.CopyTo(short)
	for _, sp := range short.ResourceProfiles().At(0).ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			i := 0
			p.Samples().RemoveIf(func(s pprofile.Sample) bool {
				if v := s.Values(); v.Len() > 1 {
					v.FromRaw(v.AsRaw()[:1])
				}
				if v := s.TimestampsUnixNano(); v.Len() > 1 {
					v.FromRaw(v.AsRaw()[:1])
				}
				i++
				return i > n
			})
		}
	}
	return short
}

// shortStacks leaves the first three frames of each stack.
func shortStacks(text string) string {
	var lines []string
	frames := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "        ") {
			frames++
		} else {
			frames = 0
		}
		if frames <= 3 {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// The totals of each stack are those that the parser's own conversion to pprof is tested with.
func TestTotalsAreThoseOfTheParsersTests(t *testing.T) {
	// Our profiles by the types of the expectations, in the order of their values.
	types := map[string][]string{
		"block_contentions__count delay__nanoseconds": {"block contentions", "block delay"},
		"mutex_contentions__count delay__nanoseconds": {"mutex contentions", "mutex delay"},
		"memory_alloc_in_new_tlab_objects__count alloc_in_new_tlab_bytes__bytes": {"memory alloc_in_new_tlab_objects",
			"memory alloc_in_new_tlab_bytes"},
		"memory_alloc_outside_tlab_objects__count alloc_outside_tlab_bytes__bytes": {"memory alloc_outside_tlab_objects",
			"memory alloc_outside_tlab_bytes"},
		"memory_live__count": {"memory live"},
		"memory_malloc_objects__count malloc_bytes__bytes": {"memory malloc_objects", "memory malloc_bytes"},
		"process_cpu_cpu__nanoseconds":                     {"process_cpu samples"},
		"wall_wall__nanoseconds":                           {"wall wall"},
	}
	for _, name := range []string{"example", "dump2", "nativemem", "wall_tick_sample"} {
		t.Run(name, func(t *testing.T) {
			data, options := recording(t, name)
			options.Period = 10 * time.Millisecond // as in those tests
			pd, _, err := Decode(data, options)
			require.NoError(t, err)
			got := totals(pd)
			compared := map[string]bool{}
			var kind string
			want := map[string]map[string]int64{}
			for line := range strings.Lines(string(profiletest.ReadFile(t, filepath.Join("testdata", name+".collapsed.gz")))) {
				line = strings.TrimSpace(line)
				if title, ok := strings.CutPrefix(line, "# "); ok {
					kind = title
					require.Contains(t, types, kind)
					continue
				}
				at := strings.LastIndex(line, " [")
				stack, values := line[:at], strings.Fields(strings.Trim(line[at+2:], "]"))
				for i, profile := range types[kind] {
					compared[profile] = true
					if want[profile] == nil {
						want[profile] = map[string]int64{}
					}
					var v int64
					_, err := fmt.Sscan(values[i], &v)
					require.NoError(t, err)
					if profile == "process_cpu samples" {
						v /= 1e7 // 100 Hz
					}
					if profile == "mutex delay" || profile == "block delay" {
						v = 0 // ticks there, compared by the golden
					}
					// A frame without a class has a point before it there.
					stack = strings.TrimPrefix(strings.ReplaceAll(stack, ";.", ";"), ".")
					want[profile][stack] += v
				}
			}
			require.NotEmpty(t, compared)
			for profile := range compared {
				if strings.HasSuffix(profile, "delay") {
					clear(got[profile])
					clear(want[profile])
				}
				assert.Equal(t, want[profile], got[profile], profile)
			}
			for profile := range got {
				assert.True(t, compared[profile], profile)
			}
		})
	}
}

// totals sums the values of each stack, written root first as frame:line;frame:line, by profile name and sample type.
func totals(pd pprofile.Profiles) map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	d := pd.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			name, _ := sp.Scope().Attributes().Get("pprof.scope.profile_name")
			key := name.Str() + " " + text(p.SampleType().TypeStrindex())
			out[key] = map[string]int64{}
			for _, s := range p.Samples().All() {
				var frames []string
				for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
					line := d.LocationTable().At(int(l)).Lines().At(0)
					frames = append(frames, fmt.Sprintf("%s:%d", text(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()),
						line.Line()))
				}
				slices.Reverse(frames)
				value := int64(s.TimestampsUnixNano().Len())
				if s.Values().Len() > 0 {
					value = 0
					for _, v := range s.Values().All() {
						value += v
					}
				}
				out[key][strings.Join(frames, ";")] += value
			}
		}
	}
	return out
}

func TestFaults(t *testing.T) {
	data, _ := recording(t, "nativemem")
	damaged := func(at int, b ...byte) []byte {
		d := bytes.Clone(data)
		copy(d[at:], b)
		return d
	}
	for name, tt := range map[string]struct {
		data, labels []byte
		want         string
	}{
		"nothing":           {nil, nil, ErrNotJFR.Error()},
		"html":              {[]byte("<html>"), nil, ErrNotJFR.Error()},
		"cut":               {data[:len(data)-1], nil, "ends too early"},
		"a header":          {data[:chunkHeaderBytes], nil, "ends too early"},
		"still running":     {damaged(16, make([]byte, 16)...), nil, "still running"},
		"no clock":          {damaged(56, make([]byte, 8)...), nil, "the time of a chunk is impossible"},
		"another chunk":     {append(bytes.Clone(data), "hello"...), nil, "ends too early"},
		"another version":   {damaged(4, 0, 9), nil, "version"},
		"labels":            {data, []byte("\x0a\xff"), errLabels.Error()},
		"labels with group": {data, []byte("\x0b"), errLabels.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Decode(tt.data, Options{Labels: tt.labels})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTextsAreCut(t *testing.T) {
	data, _ := recording(t, "jdk17")
	pd, stats, err := Decode(data, Options{Options: events.Options{MaxStringBytes: 3}})
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd))
	require.Positive(t, stats.Truncated)
	for _, s := range pd.Dictionary().StringTable().All() {
		require.LessOrEqual(t, len(s), len("alloc_sample_objects"), s)
	}
}

// Values are cut between characters, and what is cut or left out is counted.
func TestLabelsBeyondLimits(t *testing.T) {
	entry := func(field protowire.Number, key uint64, value []byte) []byte {
		content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
		content = protowire.AppendBytes(protowire.AppendTag(content, 2, protowire.BytesType), value)
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
	}
	label := func(key uint64) []byte {
		content := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), key)
		content = protowire.AppendVarint(protowire.AppendTag(content, 2, protowire.VarintType), 1)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), content)
	}
	var context []byte
	for i := range uint64(maxLabels + 3) {
		context = append(context, label(i)...)
	}
	data := append(entry(1, 9, context), entry(2, 1, []byte("x"+strings.Repeat("ü", maxLabelBytes)))...)
	l, err := parseLabels(data)
	require.NoError(t, err)
	require.Len(t, l.contexts[9], maxLabels)
	require.Equal(t, 3, l.leftOut)
	require.Equal(t, 1, l.truncated)
	require.True(t, utf8.ValidString(l.strings[1]))
	require.Len(t, l.strings[1], maxLabelBytes-1)
}
