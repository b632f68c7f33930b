// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"maps"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// measured counts the observations, and sums up the values, of each type and period.
func measured(pd pprofile.Profiles) map[string][2]int64 {
	texts := pd.Dictionary().StringTable()
	found := map[string][2]int64{}
	for p := range otlp.Profiles(pd) {
		periodType := valueType{texts.At(int(p.PeriodType().TypeStrindex())), texts.At(int(p.PeriodType().UnitStrindex()))}
		key := fmt.Sprintf("%q %d %q", sampleTypeOf(texts, p), p.Period(), periodType)
		for _, sample := range p.Samples().All() {
			sum := found[key]
			sum[0] += int64(sample.TimestampsUnixNano().Len())
			for _, value := range sample.Values().All() {
				sum[1] += value
			}
			found[key] = sum
		}
	}
	return found
}

// FuzzEncode encodes any ProfilesData message. Nothing panics, every record can be read, and the format otlp restores
// everything.
func FuzzEncode(f *testing.F) {
	add := func(pd pprofile.Profiles) {
		body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd)
		if err != nil {
			f.Fatal(err)
		}
		if len(body) < 20_000 {
			f.Add(body)
		}
	}
	add(shop())
	for _, pd := range pprofs(f) {
		add(pd)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(body)
		if err != nil || observations(pd) > 1000 {
			return
		}
		for _, format := range []Format{FormatOTLP, FormatPprof} {
			encoder := NewEncoder(pd, EncodeOptions{Format: format, MaxRecordBytes: 2000, MaxPartBytes: 5000})
			for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
				if part.Records != part.Logs.LogRecordCount() || part.Samples != observations(part.Profiles) {
					t.Fatalf("%s: %d records and %d samples are said to be %d and %d", format,
						part.Logs.LogRecordCount(), observations(part.Profiles), part.Records, part.Samples)
				}
				result := Translate(part.Logs, Options{Limits: scan.Limits{MaxStackDepth: 1 << 30}})
				if len(result.Rejected) > 0 {
					t.Fatal(result.Rejected[0])
				}
				if format == FormatPprof {
					if err := profiletest.Check(result.Profiles); err != nil {
						t.Fatal(err)
					}
					if want, got := measured(part.Profiles), measured(result.Profiles); !maps.Equal(want, got) {
						t.Fatalf("%v, not %v", got, want)
					}
					continue
				}
				if err := profiletest.Equal(part.Profiles, result.Profiles); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
