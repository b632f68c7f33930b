// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// BenchmarkSizes reports how many bytes the events of a source take: in its own format, as OTLP, and after
// dictionary_dedup. EVENT_FILES has the paths of further sources, as PATH has those of folders.
func BenchmarkSizes(b *testing.B) {
	paths := []string{
		"gotrace/testdata/go1.26.trace.gz", "../../testdata/pprof/node-datadog-timeline-wall.pb.gz",
		"cpuprofile/testdata/node20.cpuprofile",
		"perfscript/testdata/burn.perf.txt", "jfr/testdata/dump2.jfr.gz",
		"../../testdata/splunk/v4.11.0-002-cpu-continuous.otlp-logs.pb",
		"../../testdata/splunk/v4.11.0-003-allocation-continuous.otlp-logs.pb",
	}
	for _, path := range append(paths, filepath.SplitList(os.Getenv("EVENT_FILES"))...) {
		data, err := os.ReadFile(path)
		require.NoError(b, err)
		if plain, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(plain)
			require.NoError(b, err)
		}
		b.Run(filepath.Base(path), func(b *testing.B) { reportSizes(b, data) })
		if strings.Contains(path, "dump2") {
			b.Run("folded "+filepath.Base(path), func(b *testing.B) { reportSizes(b, foldedLines(b, data)) })
		}
	}
}

// decodeEvents returns what the receiver makes of a payload.
func decodeEvents(b *testing.B, data []byte) (pd pprofile.Profiles) {
	b.Helper()
	var err error
	switch format := formats.Sniff(data); format {
	case formats.Pprof:
		pd, _, err = decode.Decode(data, decode.Options{TimestampLabels: decode.DefaultTimestampLabels()})
	case formats.OTLPLogs:
		request := plogotlp.NewExportRequest()
		err = request.UnmarshalProto(data)
		pd = records.Translate(request.Logs(), records.Options{}).Profiles
	default:
		pd, _, err = formats.Decode(data, format,
			formats.Options{Options: events.Options{Anchor: events.Anchor{EndNanos: 1795297434e9}}})
	}
	require.NoError(b, err)
	return pd
}

// foldedLines returns the events of a payload as OTEP 239 writes them.
func foldedLines(b *testing.B, data []byte) []byte {
	var lines []string
	for event, n := range profiletest.Events(decodeEvents(b, data)) {
		stack := strings.Split(event.Stack, ";")
		slices.Reverse(stack)
		line := fmt.Sprintf("%s %d type=%s %d\n", strings.Join(stack, ";"), event.Value, event.SampleType, event.Timestamp)
		lines = append(lines, strings.Repeat(line, n))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func reportSizes(b *testing.B, data []byte) {
	var pd pprofile.Profiles
	for b.Loop() {
		pd = decodeEvents(b, data)
	}
	count := 0
	for _, n := range profiletest.Events(pd) {
		count += n
	}
	marshal := func(pd pprofile.Profiles) []byte {
		message, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(b, err)
		return message
	}
	before := marshal(pd)
	var batch compact.Batch
	batch.Reset(compact.Options{OrderByFrequency: true, CombineSamples: true})
	batch.Add(pd)
	var after []byte
	for part := range batch.Parts() {
		after = append(after, marshal(part.Profiles)...)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(count), "events")
	for name, message := range map[string][]byte{"source": data, "otlp": before, "dedup": after} {
		b.ReportMetric(float64(len(message)), name+"-bytes")
		b.ReportMetric(float64(len(compressed(b, message))), name+"-zstd-bytes")
		b.ReportMetric(float64(count)/float64(len(message))*1e6, name+"-events/MB")
	}
}

func compressed(b *testing.B, data []byte) []byte {
	encoder, err := zstd.NewWriter(nil)
	require.NoError(b, err)
	defer func() { require.NoError(b, encoder.Close()) }()
	return encoder.EncodeAll(data, nil)
}
