// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

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

// plain is what google/pprof finds in a body.
type plain struct {
	samples, linked, frames int
	values                  int64
	// times are the samples' source.event.time, one after the other; links hold trace and span ids.
	times map[int64]int
	links map[[2]string]int
}

func decodePlain(t *testing.T, body []byte) plain {
	t.Helper()
	parsed, err := profile.ParseUncompressed(body)
	require.NoError(t, err)
	p := plain{samples: len(parsed.Sample), times: map[int64]int{}, links: map[[2]string]int{}}
	for _, s := range parsed.Sample {
		p.frames += len(s.Location)
		for _, v := range s.Value {
			p.values += v
		}
		for _, millis := range s.NumLabel["source.event.time"] {
			p.times[millis*1_000_000]++
		}
		if trace, span := s.Label["trace_id"], s.Label["span_id"]; len(trace) > 0 && len(span) > 0 {
			p.linked++
			p.links[[2]string{trace[0], span[0]}]++
		}
	}
	return p
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
