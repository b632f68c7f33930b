// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
)

// TestDrainTimeout stops exporters whose peer does not answer, with a queue that is full and senders that wait.
func TestDrainTimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "localhost:0") // accepts connections, and does not answer
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for section, peer := range map[string]map[string]any{
		"grpc": {"endpoint": silent.Addr().String(), "tls": map[string]any{"insecure": true}, "wait_for_ready": true},
		"http": {"endpoint": "http://" + silent.Addr().String()},
		"hec":  {"endpoint": "http://" + silent.Addr().String(), "token": "x"},
	} {
		t.Run(section, func(t *testing.T) {
			cfg, err := load(map[string]any{
				section: peer, "timeout": 0, "drain_timeout": "300ms", "retry_on_failure": map[string]any{"max_elapsed_time": 0},
				"sending_queue": map[string]any{"queue_size": 2, "block_on_overflow": true, "num_consumers": 1},
			})
			require.NoError(t, err)
			set := exporter.Settings{ID: component.MustNewID("profiles_to_logs"), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
			e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
			require.NoError(t, err)
			require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
			var waiting atomic.Int64
			ended := make(chan error, 6)
			for range 6 {
				go func() {
					waiting.Add(1)
					err := e.ConsumeProfiles(context.Background(), batch("x", 1))
					waiting.Add(-1)
					ended <- err
				}()
			}
			require.Eventually(t, func() bool { return len(ended) >= 2 && waiting.Load() > 0 }, 30*time.Second, time.Millisecond)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				assert.NoError(t, e.Shutdown(context.Background()))
			}()
			select {
			case <-stopped:
			case <-time.After(30 * time.Second):
				t.Fatal("the exporter does not stop")
			}
			require.Eventually(t, func() bool { return len(ended) == 6 }, 30*time.Second, time.Millisecond, "no sender waits any more")
		})
	}
}
