// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// Limits hold for each record and for each part, each part is complete, and nothing is lost or duplicated.
func TestPartsStayBelowTheLimits(t *testing.T) {
	var want pprofile.Profiles
	for _, pd := range pprofs(t) {
		if want == (pprofile.Profiles{}) || pd.SampleCount() > want.SampleCount() {
			want = pd
		}
	}
	for _, format := range []Format{FormatPprof, FormatOTLP} {
		t.Run(format.String(), func(t *testing.T) {
			record, request := 20_000, 50_000
			if format == FormatOTLP {
				record = 10_000 // a record for each part
			}
			ld, parts := records(t, want, EncodeOptions{Format: format, MaxRecordBytes: record, MaxPartBytes: request})
			require.Greater(t, len(parts), 2)
			samples := 0
			for _, part := range parts {
				assert.Zero(t, part.Oversized)
				assert.LessOrEqual(t, part.Bytes, request)
				samples += part.Samples
			}
			assert.Equal(t, observations(want), samples)
			eachRecord(ld, func(r plog.LogRecord) {
				assert.LessOrEqual(t, new(plog.ProtoMarshaler).LogRecordSize(r), record)
			})
			if format == FormatOTLP {
				result := Translate(ld, Options{})
				require.Empty(t, result.Rejected)
				assert.NoError(t, profiletest.Equal(want, result.Profiles, profiletest.MergeProfiles()))
			}
		})
	}
}

// A single observation above the limit is sent unchanged, and so are observations that share an entry that is too
// large: splitting them would make many records as large. They are counted.
func TestObservationsAboveTheLimit(t *testing.T) {
	for times := 1; times < 3; times++ {
		pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").Time(start, 2).
			Sample(profiletest.Sample{Stack: profiletest.Stack(random(20_000)), Timestamps: []uint64{start, start + 1}[:times]}).
			Build()
		for _, format := range []Format{FormatPprof, FormatOTLP} {
			_, parts := records(t, pd, EncodeOptions{Format: format, MaxRecordBytes: 1000})
			require.Len(t, parts, 1, format.String())
			assert.Equal(t, times, parts[0].Samples)
			assert.Equal(t, parts[0].Records, parts[0].Oversized)
		}
	}
}

func random(n int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		b.WriteByte(byte('a' + r.IntN(26)))
	}
	return b.String()
}

// At any part, the parts before it and the rest together are the whole.
func TestRestOfParts(t *testing.T) {
	for _, want := range pprofs(t) {
		opts := EncodeOptions{Format: FormatPprof, MaxRecordBytes: 2000, MaxPartBytes: 4000}
		encoder := NewEncoder(want, opts)
		first, ok := encoder.Next()
		require.True(t, ok)
		second, ok := encoder.Next()
		if !ok {
			continue
		}
		var batch compact.Batch
		batch.Reset(compact.Options{})
		batch.Add(first.Profiles)
		batch.Add(encoder.Rest(second))
		for part := range batch.Parts() {
			assert.Equal(t, observations(want), observations(part.Profiles))
			assert.NoError(t, profiletest.Equal(want, part.Profiles, profiletest.MergeProfiles()))
		}
	}
}

// With any profiles, the encoder does not panic, and sends what it can understand.
func TestEncodeBrokenProfiles(t *testing.T) {
	pd := shop()
	broken := profiletest.Clone(pd)
	profiletest.SampleAt(broken, 0).SetStackIndex(-9)
	for _, format := range []Format{FormatPprof, FormatOTLP} {
		encoder := NewEncoder(broken, EncodeOptions{Format: format})
		assert.Equal(t, 1, encoder.Dropped)
		part, ok := encoder.Next()
		require.True(t, ok)
		assert.Equal(t, 1, part.Samples)
		_, more := encoder.Next()
		assert.False(t, more)
	}
	_, ok := NewEncoder(pprofile.NewProfiles(), EncodeOptions{}).Next()
	assert.False(t, ok)
}

func TestOTLPBodiesThatCannotBeRead(t *testing.T) {
	sound := func() (plog.Logs, plog.LogRecord) {
		ld, _ := records(t, shop(), EncodeOptions{Format: FormatOTLP})
		return ld, onlyRecord(ld)
	}
	for name, tc := range map[string]struct {
		change func(plog.LogRecord)
		opts   Options
		want   Reason
	}{
		"version":      {func(r plog.LogRecord) { r.Attributes().PutStr(keyBodyVersion, "v9") }, Options{}, ReasonFormat},
		"not protobuf": {func(r plog.LogRecord) { r.Body().Bytes().FromRaw([]byte("lzma")) }, Options{}, ReasonNotOTLP},
		"truncated": {func(r plog.LogRecord) { b := r.Body().Bytes().AsRaw(); r.Body().Bytes().FromRaw(b[:len(b)-9]) },
			Options{}, ReasonNotOTLP},
		"bomb": {func(r plog.LogRecord) { r.Body().Bytes().FromRaw(zstdEncoder.EncodeAll(make([]byte, 64<<20), nil)) },
			Options{Limits: scan.Limits{MaxProfileBytes: 1 << 20}}, ReasonTooLarge},
		"many messages": {func(r plog.LogRecord) {
			profile := worst.Nest(worst.Field(2, worst.Field(9, make([]byte, 3))), 1, 2, 2)(7 << 20)
			r.Body().Bytes().FromRaw(zstdEncoder.EncodeAll(profile, nil))
		}, Options{Limits: scan.Limits{MaxProfileBytes: 8 << 20}}, ReasonTooLarge},
		"nested without end": {func(r plog.LogRecord) {
			value := []byte{}
			for range 1000 {
				value = worst.Field(5, worst.Field(1, value)) // a list of lists
			}
			body := worst.Field(1, worst.Field(1, worst.Field(1, worst.Field(2, value))))
			r.Body().Bytes().FromRaw(zstdEncoder.EncodeAll(body, nil))
		}, Options{}, ReasonNotOTLP},
		"a group": {func(r plog.LogRecord) {
			r.Body().Bytes().FromRaw([]byte{1<<3 | 3, 1<<3 | 4})
		}, Options{}, ReasonNotOTLP},
		"too large":        {func(plog.LogRecord) {}, Options{Limits: scan.Limits{MaxProfileBytes: 100}}, ReasonTooLarge},
		"not base64":       {func(r plog.LogRecord) { r.Body().SetStr("!") }, Options{}, ReasonBase64},
		"empty":            {func(r plog.LogRecord) { r.Body().SetEmptyBytes() }, Options{}, ReasonEmpty},
		"neither of these": {func(r plog.LogRecord) { r.Body().SetInt(1) }, Options{}, ReasonBody},
	} {
		t.Run(name, func(t *testing.T) {
			ld, record := sound()
			tc.change(record)
			result := Translate(ld, tc.opts)
			require.Len(t, result.Rejected, 1)
			assert.Equal(t, tc.want, result.Rejected[0].Reason, result.Rejected[0].Error())
			assert.Zero(t, result.Profiles.ResourceProfiles().Len())
		})
	}
	t.Run("base64", func(t *testing.T) {
		ld, record := sound()
		record.Body().SetStr(base64.StdEncoding.EncodeToString(record.Body().Bytes().AsRaw()))
		assert.NoError(t, profiletest.Equal(shop(), translated(t, ld, Options{}).Profiles))
	})
}

// Whole profiles and an agent's records in one request share one dictionary; a sample with a bad index is left out.
func TestOTLPBesideOtherRecords(t *testing.T) {
	ld, _ := records(t, shop(), EncodeOptions{Format: FormatOTLP})
	beside := captured(t)["v4.11.0-001-cpu-snapshot"]
	alone := translated(t, captured(t)["v4.11.0-001-cpu-snapshot"], Options{})
	beside.ResourceLogs().At(0).CopyTo(ld.ResourceLogs().AppendEmpty())
	both := translated(t, ld, Options{})
	assert.Equal(t, 3+alone.Samples, both.Samples)
	assert.Equal(t, 3, both.Profiles.ResourceProfiles().Len())

	broken := shop()
	profiletest.SampleAt(broken, 0).SetStackIndex(99)
	body := profiletest.Marshal(t, broken)
	ld, record := newRecord("", keyFormat, "otlp")
	pcommon.NewByteSlice().MoveTo(record.Body().SetEmptyBytes())
	record.Body().Bytes().FromRaw(body)
	result := Translate(ld, Options{})
	require.Empty(t, result.Rejected)
	assert.Equal(t, 1, result.Samples)
	assert.Equal(t, 1, result.Dropped[3])
	assert.NoError(t, profiletest.Check(result.Profiles))
}
