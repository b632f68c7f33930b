// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// recordingEnd is when the recordings without a wall clock ended.
var recordingEnd = time.Date(2026, 11, 21, 21, 30, 0, 0, time.UTC)

// timedPayloads returns a payload of every producer of profiles with times, by service.
func timedPayloads(t *testing.T) map[string][]byte {
	t.Helper()
	payloads := map[string][]byte{
		// The example of OTEP 239, and more in its format.
		"folded": []byte(
			"foo;bar;baz 100 region=us,trace_id=0x01020304010203040102030401020304,span_id=0x9999999999999999 1687841528000000\n" +
				"main;foo 3 k1=v1,k2=v2 1687841528000000\n" +
				"main;foo;bar 5 trace_id=0123456789abcdef0123456789abcdef,span_id=0123456789abcdef 1687841528000001\n" +
				"main;foo;bar 1 1687841528000002\nmain;foo;bar 1 1687841528000002\n"),
	}
	for service, path := range map[string]string{
		"go":      "internal/formats/gotrace/testdata/go1.26.trace.gz",
		"old-go":  "internal/formats/gotrace/testdata/go1.21.trace.gz",
		"perf":    "internal/formats/perfscript/testdata/burn.perf.txt",
		"node":    "internal/formats/cpuprofile/testdata/node20.cpuprofile",
		"java":    "internal/formats/jfr/testdata/dump2.jfr.gz",      // large enough to be split
		"datadog": "testdata/pprof/node-datadog-timeline-wall.pb.gz", // end_timestamp_ns
	} {
		data, err := os.ReadFile(filepath.Join(repository, path))
		require.NoError(t, err)
		payloads[service] = data
	}
	return payloads
}

// eventsOf returns the events that the translators make of the payloads.
func eventsOf(t *testing.T, payloads map[string][]byte) map[profiletest.Event]int {
	t.Helper()
	var all []pprofile.Profiles
	for service, data := range payloads {
		if plain, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(plain)
			require.NoError(t, err)
		}
		format := formats.Sniff(data)
		var pd pprofile.Profiles
		var err error
		if format == formats.Pprof {
			pd, _, err = decode.Decode(data, decode.Options{TimestampLabels: decode.DefaultTimestampLabels()})
		} else {
			pd, _, err = formats.Decode(data, format,
				formats.Options{Options: events.Options{Anchor: events.Anchor{EndNanos: uint64(recordingEnd.UnixNano())}}})
		}
		require.NoError(t, err, service)
		for _, rp := range pd.ResourceProfiles().All() {
			rp.Resource().Attributes().PutStr("service.name", service)
		}
		require.NotEmpty(t, profiletest.Events(pd), service)
		all = append(all, pd)
	}
	return profiletest.Events(all...)
}

// pushTimed pushes the payloads to a collector at the same time, so that they are merged.
func (c *collector) pushTimed(t *testing.T, payloads map[string][]byte) {
	t.Helper()
	var pushing sync.WaitGroup
	for service, data := range payloads {
		pushing.Go(func() {
			query := url.Values{"service.name": {service}, "at": {recordingEnd.Format(time.RFC3339)}}
			status, answer, err := post("http://"+c.endpoint+"/v1/profiles?"+query.Encode(), "", data)
			assert.NoError(t, err)
			assert.Equal(t, http.StatusNoContent, status, "%s: %s", service, answer)
		})
	}
	pushing.Wait()
	require.False(t, t.Failed())
}

// requireEvents compares event by event. It ignores other services, such as the collector's own.
func requireEvents(t *testing.T, want, got map[profiletest.Event]int, name string) {
	t.Helper()
	services := map[string]bool{}
	for e := range want {
		services[e.Service] = true
	}
	for e, count := range got {
		if services[e.Service] {
			require.Equal(t, want[e], count, "%s: %v", name, e)
		}
	}
	for e, count := range want {
		require.Equal(t, count, got[e], "%s: %v", name, e)
	}
}

// TestTimestampsThroughKafka sends the payloads through config/kafka-agent.yaml, which merges them and splits the
// result, a broker and config/kafka-gateway.yaml.
func TestTimestampsThroughKafka(t *testing.T) {
	to, broker := startBackend(t), freeAddress(t)
	startKafka(t, broker)
	agent := startKafkaAgent(t, kafkaAgentConfig, broker, t.TempDir(), nil)
	gateway := startKafkaGateway(t, kafkaGatewayConfig, broker, to, nil)
	payloads := timedPayloads(t)
	want := eventsOf(t, payloads)
	agent.pushTimed(t, payloads)
	agent.Terminate(t)
	total := func(of map[profiletest.Event]int) (n int) {
		for e, count := range of {
			if _, isOurs := payloads[e.Service]; isOurs {
				n += count
			}
		}
		return n
	}
	received := func() map[profiletest.Event]int { return profiletest.Events(to.messages()...) }
	require.Eventually(t, func() bool { return total(received()) >= total(want) }, 2*startTimeout, 50*time.Millisecond)
	gateway.Terminate(t)
	requireEvents(t, want, received(), "kafka")
	t.Logf("%d events arrived in %d messages", total(want), len(to.messages()))
}

// TestTimestampsThroughFilesAndLogs sends the payloads through dictionary_dedup, which merges them and splits the
// result, to the file exporter, and by profiles_to_logs in every format to splunk_profiling and from there to files.
func TestTimestampsThroughFilesAndLogs(t *testing.T) {
	out, logsFormats := t.TempDir(), []string{"otlp", "pprof"}
	var receivers, logsExporters, files, pipelines, exporters strings.Builder
	for _, format := range logsFormats {
		address := freeAddress(t)
		fmt.Fprintf(&receivers, "  splunk_profiling/%s: {protocols: {grpc: {endpoint: %q}}}\n", format, address)
		fmt.Fprintf(&files, "  file/%s: {path: %q, create_directory: true}\n", format,
			filepath.Join(out, format, "profiles.jsonl"))
		fmt.Fprintf(&pipelines, "    profiles/%s: {receivers: [splunk_profiling/%[1]s], exporters: [file/%[1]s]}\n", format)
		fmt.Fprintf(&logsExporters,
			"  profiles_to_logs/%s: {mode: always, format: %[1]s, timeout: 60s, grpc: {endpoint: %q, tls: {insecure: true}}}\n",
			format, address)
		fmt.Fprintf(&exporters, ", profiles_to_logs/%s", format)
	}
	const telemetry = "  telemetry: {metrics: {level: none}}\n"
	end := launch(t, "yaml:\nreceivers:\n"+receivers.String()+"exporters:\n"+files.String()+
		"service:\n  pipelines:\n"+pipelines.String()+telemetry)
	agent := launch(t, "yaml:\nreceivers: {pprof: {server: {endpoint: \"${env:PPROF_ENDPOINT}\"}}}\n"+
		"processors: {dictionary_dedup: {timeout: 1s, max_batch_bytes: 65536}}\n"+
		"exporters:\n  file: {path: \"${env:PROFILES_OUT}/profiles.jsonl\", create_directory: true}\n"+logsExporters.String()+
		"service:\n  pipelines:\n    profiles: {receivers: [pprof], processors: [dictionary_dedup], exporters: [file"+
		exporters.String()+"]}\n"+telemetry)
	payloads := timedPayloads(t)
	want := eventsOf(t, payloads)
	agent.pushTimed(t, payloads)
	agent.Terminate(t)
	end.Terminate(t)

	direct := readProfiles(t, agent.outputDir)
	require.Greater(t, len(direct), 3, "the batch was split")
	for _, pd := range direct {
		require.NoError(t, profiletest.Check(pd), "the windows contain all times")
	}
	requireEvents(t, want, profiletest.Events(direct...), "file")
	for _, format := range logsFormats {
		requireEvents(t, want, profiletest.Events(readProfiles(t, filepath.Join(out, format))...), format+" in logs")
	}
}
