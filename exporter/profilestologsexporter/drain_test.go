// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestShutdownIsBounded stops exporters whose peer does not answer, with a queue that is full and senders that wait.
func TestShutdownIsBounded(t *testing.T) {
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
				section: peer, "timeout": 0, "retry_on_failure": map[string]any{"max_elapsed_time": 0},
				"sending_queue": map[string]any{"queue_size": 2, "block_on_overflow": true, "num_consumers": 1},
			})
			require.NoError(t, err)
			set := exporter.Settings{ID: component.MustNewID("profiles_to_logs"),
				TelemetrySettings: componenttest.NewNopTelemetrySettings()}
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
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				assert.NoError(t, e.Shutdown(ctx))
			}()
			select {
			case <-stopped:
			case <-time.After(30 * time.Second):
				t.Fatal("the exporter does not stop")
			}
			require.Eventually(t, func() bool { return len(ended) == 6 }, 30*time.Second, time.Millisecond,
				"no sender waits any more")
		})
	}
}

// itemsOf counts what is in the queue, waiting or under way.
func itemsOf(d *collectortest.Disk) (n int) {
	for key := range d.Content() {
		if _, err := strconv.Atoi(key); err == nil {
			n++
		}
	}
	return n
}

// A queue on disk keeps what it has not read, and a batch under way when the exporter stops only if that may be
// retried: the README and docs/reliability.md say so.
func TestQueueOnDiskAtShutdown(t *testing.T) {
	for _, test := range []struct {
		retries bool
		kept    int
	}{{true, 2}, {false, 1}} {
		asked := make(chan struct{}, 1)
		peer := httpServerOf(t, &inbox{}, func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
			asked <- struct{}{}
			<-r.Context().Done()
			return true
		})
		cfg, err := load(map[string]any{
			"http": peer, "timeout": 0, "retry_on_failure": map[string]any{"enabled": test.retries},
			"sending_queue": map[string]any{"storage": "disk", "num_consumers": 1},
		})
		require.NoError(t, err)
		set := exporter.Settings{ID: component.MustNewID("profiles_to_logs"),
			TelemetrySettings: componenttest.NewNopTelemetrySettings()}
		e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
		require.NoError(t, err)
		queue := collectortest.NewDisk(nil)
		require.NoError(t, e.Start(t.Context(), queue))
		for range 2 {
			require.NoError(t, e.ConsumeProfiles(t.Context(), batch("x", 1)))
		}
		<-asked
		require.Equal(t, 2, itemsOf(queue))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		require.NoError(t, e.Shutdown(ctx))
		assert.Equal(t, test.kept, itemsOf(queue), "retries: %t", test.retries)
	}
}
