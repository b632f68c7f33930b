// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestProfilesCrossLogs sends profiles across a collector that has logs pipelines only, in each format; that one is
// killed and started again meanwhile. Nothing that was acknowledged is lost, and only what was on its way at the kill
// may arrive twice.
func TestProfilesCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"pprof", "text", "otlp"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := startWay(t, format)
			acked := w.sendMessages(t, 0, 40)
			require.Zero(t, w.requireSeen(t, acked), "without a kill everything arrives once")

			var sending sync.WaitGroup
			var more seen
			sending.Go(func() { more = w.sendMessages(t, 40, 240) })
			time.Sleep(100 * time.Millisecond)
			w.middle.Kill()
			time.Sleep(500 * time.Millisecond)
			w.middle = w.startMiddle()
			sending.Wait()
			maps.Copy(acked, more)
			again := w.requireSeen(t, acked)
			// Ten requests of up to twenty samples are under way at most, in the agent and in the middle.
			require.LessOrEqual(t, again, 2*10*20)
			require.Contains(t, w.agent.ownMetrics(t), "otelcol_exporter_profiles_to_logs_mode")
			w.agent.Terminate(t)
			w.middle.Terminate(t)
			w.end.Terminate(t)
			require.Contains(t, w.agent.Log.String(), "the peer does not accept OTLP profiles")
			t.Logf("%d samples arrived, %d of them twice", len(acked), again)
		})
	}
}

// TestPayloadsCrossLogs pushes every captured pprof across the same way. In the format otlp what is written at the end is
// the payload; in the others each sample is, in all that they can say.
func TestPayloadsCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"otlp", "pprof", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := startWay(t, format)
			payloads := capturedPayloads(t)
			if format == "text" {
				// A gigabyte of text has nothing that the smaller one has not.
				delete(payloads, hugePayload)
			}
			push := &collector{endpoint: w.pprof}
			for name, payload := range payloads {
				status, answer, err := push.push(name, payload)
				require.NoError(t, err, name)
				require.Equal(t, http.StatusNoContent, status, "%s: %s", name, answer)
			}
			w.requirePayloads(t, payloads)
			w.agent.Terminate(t)
			w.middle.Terminate(t)
			w.end.Terminate(t)
		})
	}
}

// hugePayload is larger than a request may be.
const hugePayload = "go-compile-nethttp-heap-huge.pb.gz"

// requirePayloads waits until all samples of the payloads are at the end, and compares them.
func (w *way) requirePayloads(t *testing.T, payloads map[string][]byte) {
	t.Helper()
	want := map[string]pprofile.Profiles{}
	for name, payload := range payloads {
		pd, _, err := pprofconv.Decode(payload, pprofconv.DecodeOptions{})
		require.NoError(t, err)
		resource := pd.ResourceProfiles().At(0).Resource().Attributes()
		resource.PutStr("service.name", name)
		resource.PutStr("region", "eu")
		// The receiver of the agent sets the scope, which Splunk's records have in attributes.
		scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope()
		scope.SetName("github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver")
		scope.SetVersion("0.1.0")
		if w.format != "otlp" {
			scope.Attributes().PutStr("otel.scope.name", scope.Name())
			scope.Attributes().PutStr("otel.scope.version", scope.Version())
			scope.SetName("otel.profiling")
			scope.SetVersion("")
		}
		want[name] = pd
	}
	got := map[string][]pprofile.Profiles{}
	values := map[string]int64{}
	var read outputReader
	require.Eventually(t, func() bool {
		for _, pd := range read.next(t, w.end) {
			name := serviceName(t, pd)
			got[name] = append(got[name], pd)
			values[name] += totalValue(pd)
		}
		for name, pd := range want {
			if values[name] != totalValue(pd) {
				return false
			}
		}
		return true
	}, 4*startTimeout, 500*time.Millisecond, "every sample arrives")
	for name, payload := range payloads {
		wanted, arrived := seen{}, seen{}
		wanted.add(want[name], w.detail)
		for _, part := range got[name] {
			require.NoError(t, profiletest.Check(part, profiletest.AllowRepeatedSamples()), name)
			arrived.add(part, w.detail)
		}
		require.True(t, maps.Equal(wanted, arrived), "%s\n%s", name, wanted.difference(arrived))
		if w.format == "otlp" && len(got[name]) == 1 {
			requireSame(t, payload, got[name][0])
		}
	}
}

// outputReader reads what a collector has written, once.
type outputReader struct{ offset int64 }

// next gives the messages that have been written since.
func (r *outputReader) next(t *testing.T, c *collector) (messages []pprofile.Profiles) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.outputDir, "*.jsonl"))
	require.NoError(t, err)
	if len(files) == 0 {
		return nil
	}
	require.Len(t, files, 1)
	file, err := os.Open(files[0])
	require.NoError(t, err)
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, r.offset, math.MaxInt64-r.offset))
	require.NoError(t, err)
	messages, decoded := decodeLines(t, content)
	r.offset += decoded
	return messages
}
