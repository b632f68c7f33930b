// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// chainInputs are payloads of every format whose events have times.
func chainInputs(t *testing.T) map[string]pprofile.Profiles {
	inputs := map[string]pprofile.Profiles{}
	add := func(name string, pd pprofile.Profiles, err error) {
		t.Helper()
		require.NoError(t, err, name)
		for _, rp := range pd.ResourceProfiles().All() {
			rp.Resource().Attributes().PutStr("service.name", name)
		}
		require.NotEmpty(t, profiletest.Events(pd), name)
		inputs[name] = pd
	}
	options := formats.Options{Options: events.Options{Anchor: events.Anchor{EndNanos: 1795297434e9, Guess: "arrival"}},
		GoTrace: gotrace.DefaultOptions()}
	read := func(path string) []byte { return profiletest.ReadFile(t, path) }
	for name, data := range map[string][]byte{
		"go trace":  read("gotrace/testdata/go1.26.trace.gz"),
		"old trace": read("gotrace/testdata/go1.21.trace.gz"),
		"perf":      read("perfscript/testdata/burn.perf.txt"),
		"node":      read("cpuprofile/testdata/node20.cpuprofile"),
		"java":      read("jfr/testdata/jdk17.jfr.gz"),
		"evented":   read("speedscope/testdata/evented.speedscope.json"),
		"firefox":   read("firefox/testdata/columns.json"),
		"folded": []byte(
			"main;work 3 1687841528000000\nmain;work 4 1687841529000000\nmain;rest 9 region=eu 1687841530000000\n"),
	} {
		format := formats.Sniff(data)
		require.True(t, formats.IsDecodable(format), name)
		pd, _, err := formats.Decode(data, format, options)
		add(name, pd, err)
	}
	pd, _, err := decode.Decode(read("../../testdata/pprof/node-datadog-timeline-wall.pb.gz"),
		decode.Options{TimestampLabels: decode.DefaultTimestampLabels()})
	add("datadog", pd, err)
	return inputs
}

// Timestamps survive everything on the way: merging and splitting, files, pprof, and log records.
func TestTimestampsSurviveTheChain(t *testing.T) {
	inputs := chainInputs(t)
	var all []pprofile.Profiles
	for _, pd := range inputs {
		all = append(all, pd)
	}
	want := profiletest.Events(all...)
	require.Greater(t, len(want), 500)

	for name, options := range map[string]compact.Options{
		"merged": {OrderByFrequency: true, CombineSamples: true},
		"split":  {OrderByFrequency: true, CombineSamples: true, MaxBytes: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			var batch compact.Batch
			batch.Reset(options)
			for _, pd := range all {
				batch.Add(pd)
			}
			var parts []pprofile.Profiles
			for part := range batch.Parts() {
				copied := pprofile.NewProfiles()
				part.Profiles.CopyTo(copied)
				require.NoError(t, profiletest.Check(copied), "the windows contain all timestamps")
				parts = append(parts, copied)
			}
			require.Equal(t, options.MaxBytes > 0, len(parts) > 1)
			require.Equal(t, want, profiletest.Events(parts...))

			for at, part := range parts { // encoded, as in a file or Kafka
				data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(part)
				require.NoError(t, err)
				parts[at], err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
				require.NoError(t, err)
			}
			require.Equal(t, want, profiletest.Events(parts...))
		})
	}
	for name, pd := range inputs {
		t.Run("pprof of "+name, func(t *testing.T) {
			payloads, _, err := encode.Encode(pd)
			require.NoError(t, err)
			var back []pprofile.Profiles
			for _, payload := range payloads {
				one, _, err := decode.Decode(payload.Bytes, decode.Options{TimestampLabels: decode.DefaultTimestampLabels()})
				require.NoError(t, err)
				for _, rp := range one.ResourceProfiles().All() {
					rp.Resource().Attributes().PutStr("service.name", name)
				}
				back = append(back, one)
			}
			require.Equal(t, profiletest.Events(pd), profiletest.Events(back...))
		})
		for _, format := range []records.Format{records.FormatOTLP, records.FormatPprof} {
			t.Run(fmt.Sprintf("%s in logs of %s", format, name), func(t *testing.T) {
				encoder := records.NewEncoder(pd, records.EncodeOptions{Format: format, MaxRecordBytes: 30_000})
				var back []pprofile.Profiles
				for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
					back = append(back, records.Translate(part.Logs, records.Options{}).Profiles)
				}
				require.Equal(t, profiletest.Events(pd), profiletest.Events(back...))
			})
		}
	}
}
