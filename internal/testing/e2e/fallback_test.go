// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestProfilesCrossLogs sends profiles, in each format, through a collector that has logs pipelines only, which is
// killed and restarted in between. Nothing that was acknowledged is lost, and only what was under way at the kill can
// arrive twice.
func TestProfilesCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"pprof", "otlp"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := startChain(t, format)
			acked := c.sendMessages(t, 0, 40)
			require.Zero(t, c.requireSeen(t, acked), "without a kill everything arrives once")

			var sending sync.WaitGroup
			var more observations
			sending.Go(func() { more = c.sendMessages(t, 40, 240) })
			time.Sleep(100 * time.Millisecond)
			c.middle.Kill()
			time.Sleep(500 * time.Millisecond)
			c.startMiddle(t)
			sending.Wait()
			maps.Copy(acked, more)
			again := c.requireSeen(t, acked)
			// Ten requests of up to twenty samples are under way at most, in the agent and in the middle.
			require.LessOrEqual(t, again, 2*10*20)
			require.Contains(t, c.agent.ownMetrics(t), "otelcol_exporter_profiles_to_logs_mode")
			c.terminate(t)
			require.Contains(t, c.agent.Log.String(), "the peer does not accept OTLP profiles")
			t.Logf("%d samples arrived, %d of them twice", len(acked), again)
		})
	}
}

// TestPayloadsCrossLogs pushes every captured pprof through the same collectors. In the format otlp the last one writes
// the payload; in the others each sample keeps all that the format has fields for.
func TestPayloadsCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"otlp", "pprof"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := startChain(t, format)
			payloads := capturedPayloads(t)
			for name, payload := range payloads {
				c.agent.requirePush(t, name, payload)
			}
			c.requirePayloads(t, payloads)
			c.terminate(t)
		})
	}
}

// requirePayloads waits until all samples of the payloads are at the end, and compares them.
func (c *chain) requirePayloads(t *testing.T, payloads map[string][]byte) {
	t.Helper()
	want := map[string]pprofile.Profiles{}
	for name, payload := range payloads {
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(t, err)
		resource := pd.ResourceProfiles().At(0).Resource().Attributes()
		resource.PutStr("service.name", name)
		resource.PutStr("region", "eu")
		// The agent's receiver sets the scope. Splunk's records have it in attributes.
		scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope()
		scope.SetName("github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver")
		scope.SetVersion("0.1.0")
		if c.format != "otlp" {
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
		for _, pd := range read.next(t, c.end) {
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
		wanted, arrived := observations{}, observations{}
		wanted.add(want[name])
		for _, part := range got[name] {
			require.NoError(t, profiletest.Check(part, profiletest.AllowRepeatedSamples()), name)
			arrived.add(part)
		}
		require.True(t, maps.Equal(wanted, arrived), "%s\n%s", name, wanted.difference(arrived))
		if c.format == "otlp" && len(got[name]) == 1 {
			requireSame(t, payload, got[name][0])
		}
	}
}

// outputReader reads each message that a collector writes once.
type outputReader struct{ offset int64 }

// next returns the messages that have been written since the last call.
func (r *outputReader) next(t *testing.T, from *collector) (messages []pprofile.Profiles) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from.outputDir, "*.jsonl"))
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
