// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestCapturedGolden(t *testing.T) {
	for name, ld := range captured(t) {
		t.Run(name, func(t *testing.T) {
			result := translated(t, ld, Options{})
			assert.Equal(t, 1, result.Profiling)
			assert.Zero(t, result.Others)
			assert.Zero(t, result.BadTimes)
			profiletest.Golden(t, filepath.Join("testdata", "golden", name+".txt"), profiletest.Render(result.Profiles))
		})
	}
}

// plain is what a decode of a body finds that knows nothing but protobuf.
type plain struct {
	samples, linked, frames int
	values                  int64
	// times are the samples' source.event.time, one after the other; links hold trace and span ids.
	times map[int64]int
	links map[[2]string]int
}

func decodePlain(t *testing.T, body []byte) plain {
	t.Helper()
	var texts []string
	var samples [][]byte
	fields(t, body, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case 2:
			samples = append(samples, b)
		case 6:
			texts = append(texts, string(b))
		}
	})
	p := plain{samples: len(samples), times: map[int64]int{}, links: map[[2]string]int{}}
	for _, s := range samples {
		ids := map[string]string{}
		fields(t, s, func(n protowire.Number, v uint64, b []byte) {
			switch n {
			case 1, 2:
				for _, v := range varints(t, v, b) {
					if n == 1 {
						p.frames++
					} else {
						p.values += int64(v)
					}
				}
			case 3:
				label := map[protowire.Number]uint64{}
				fields(t, b, func(n protowire.Number, v uint64, _ []byte) { label[n] = v })
				switch key := texts[label[1]]; key {
				case "trace_id", "span_id":
					ids[key] = texts[label[2]]
				case "source.event.time":
					p.times[int64(label[3])*1_000_000]++
				}
			}
		})
		if len(ids) == 2 {
			p.linked++
			p.links[[2]string{ids["trace_id"], ids["span_id"]}]++
		}
	}
	return p
}

func fields(t *testing.T, b []byte, visit func(n protowire.Number, v uint64, b []byte)) {
	t.Helper()
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		require.Positive(t, size)
		b = b[size:]
		var v uint64
		var content []byte
		if kind == protowire.BytesType {
			content, size = protowire.ConsumeBytes(b)
		} else {
			require.Equal(t, protowire.VarintType, kind)
			v, size = protowire.ConsumeVarint(b)
		}
		require.Positive(t, size)
		b = b[size:]
		visit(n, v, content)
	}
}

// varints returns a repeated number, packed or not.
func varints(t *testing.T, v uint64, packed []byte) []uint64 {
	t.Helper()
	if packed == nil {
		return []uint64{v}
	}
	var list []uint64
	for len(packed) > 0 {
		v, size := protowire.ConsumeVarint(packed)
		require.Positive(t, size)
		list, packed = append(list, v), packed[size:]
	}
	return list
}

// resolvedCounts is the same of what was translated.
func resolvedCounts(pd pprofile.Profiles) plain {
	p := plain{times: map[int64]int{}, links: map[[2]string]int{}}
	for o := range profiletest.Observations(pd) {
		p.samples++
		p.frames += len(o.Functions)
		p.times[int64(o.Timestamp)]++
		if o.Sample.Values().Len() > 0 {
			p.values += o.Value
		}
		if i := o.Sample.LinkIndex(); i != 0 {
			link := pd.Dictionary().LinkTable().At(int(i))
			p.linked++
			p.links[[2]string{link.TraceID().String(), link.SpanID().String()}]++
		}
	}
	return p
}

func onlyRecord(ld plog.Logs) plog.LogRecord {
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

// Every sample, every allocated byte, every time and every link of a body is in the output, and nothing else.
func TestCapturedCounts(t *testing.T) {
	total := plain{}
	for name, ld := range captured(t) {
		t.Run(name, func(t *testing.T) {
			want := decodePlain(t, decoded(t, onlyRecord(ld).Body().Str()))
			result := translated(t, ld, Options{})
			assert.Equal(t, want, resolvedCounts(result.Profiles))
			assert.Equal(t, want.samples, result.Samples)
			total.samples += want.samples
			total.linked += want.linked
			total.values += want.values
			if want.samples == 0 {
				assert.Zero(t, result.Profiles.ResourceProfiles().Len())
				assert.Zero(t, result.Profiles.Dictionary().StringTable().Len())
			}
		})
	}
	assert.Positive(t, total.samples)
	assert.Positive(t, total.linked)
	assert.Positive(t, total.values)
}

func TestDeterministic(t *testing.T) {
	for name, ld := range captured(t) {
		first, second := Translate(ld, Options{}), Translate(ld, Options{})
		first.Profiles.MarkReadOnly()
		second.Profiles.MarkReadOnly()
		marshal := pprofile.ProtoMarshaler{}
		a, err := marshal.MarshalProfiles(first.Profiles)
		require.NoError(t, err)
		b, err := marshal.MarshalProfiles(second.Profiles)
		require.NoError(t, err)
		assert.Equal(t, a, b, name)
	}
}
