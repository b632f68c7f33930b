// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/extension/xextension/storage"
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

// disk is a storage extension, and its client, in memory.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client
	mu      sync.Mutex
	content map[string][]byte
}

func (d *disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("disk"): d}
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := d.Batch(ctx, get)
	return get.Value, err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Close(context.Context) error { return nil }

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, operation := range operations {
		switch operation.Type {
		case storage.Get:
			operation.Value = d.content[operation.Key]
		case storage.Set:
			d.content[operation.Key] = operation.Value
		default:
			delete(d.content, operation.Key)
		}
	}
	return nil
}

// items counts what is in the queue, waiting or under way.
func (d *disk) items() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for key := range d.content {
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
		queue := &disk{content: map[string][]byte{}}
		require.NoError(t, e.Start(t.Context(), queue))
		for range 2 {
			require.NoError(t, e.ConsumeProfiles(t.Context(), batch("x", 1)))
		}
		<-asked
		require.Equal(t, 2, queue.items())
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		require.NoError(t, e.Shutdown(ctx))
		assert.Equal(t, test.kept, queue.items(), "retries: %t", test.retries)
	}
}
