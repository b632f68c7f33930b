// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The page has every message at once and exactly once while no file can be written: with all consumers of the queue in retries, with
// a queue that is full, and after the files are written at last. What has no file is counted.
func TestThePageDoesNotWaitForFiles(t *testing.T) {
	const messages, room = 40, 5
	folder, address := t.TempDir(), collectortest.FreeAddress(t)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"server":           map[string]any{"endpoint": address},
		"files":            map[string]any{"directory": folder},
		"sending_queue":    map[string]any{"sizer": "requests", "queue_size": room},
		"retry_on_failure": map[string]any{"initial_interval": "10ms", "max_interval": "20ms", "max_elapsed_time": 0},
	}).Unmarshal(cfg))
	telemetry := componenttest.NewTelemetry()
	set := exporter.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: telemetry.NewTelemetrySettings()}
	e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		assert.NoError(t, e.Shutdown(context.Background()))
		assert.NoError(t, telemetry.Shutdown(context.Background()))
	})
	inPage := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/api/services", address), http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		var services struct{ Services []struct{ Samples int } }
		require.NoError(t, json.NewDecoder(response.Body).Decode(&services))
		require.Len(t, services.Services, 1)
		return services.Services[0].Samples
	}
	blocked := filepath.Join(folder, "shop")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	for i := range messages {
		require.NoError(t, e.ConsumeProfiles(t.Context(), small("shop")))
		require.Equal(t, i+1, inPage())
	}
	count := func(name string) int64 { return collectortest.Sum(t, telemetry, "otelcol_exporter_"+name) }
	require.NoError(t, os.Remove(blocked))
	require.Eventually(t, func() bool {
		return count("sent_profile_samples")+count("enqueue_failed_profile_samples") == messages
	}, time.Minute, 10*time.Millisecond)
	assert.Positive(t, count("enqueue_failed_profile_samples"))
	assert.Len(t, filesIn(t, folder), int(count("sent_profile_samples")))
	assert.Equal(t, messages, inPage())
}

// A queue that counted requests would have no bound on memory: ten thousand messages of 4 MB are 40 GB.
func TestTheQueueIsBoundedByBytes(t *testing.T) {
	queue := createDefaultConfig().(*Config).Queue.Get()
	assert.Equal(t, exporterhelper.RequestSizerTypeBytes, queue.Sizer)
	assert.EqualValues(t, 32<<20, queue.QueueSize)

	const messages = 40
	folder := t.TempDir()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"server":           map[string]any{"endpoint": "localhost:0"},
		"files":            map[string]any{"directory": folder},
		"sending_queue":    map[string]any{"queue_size": 100_000, "num_consumers": 1},
		"retry_on_failure": map[string]any{"initial_interval": "10ms", "max_interval": "20ms", "max_elapsed_time": 0},
	}).Unmarshal(cfg))
	telemetry := componenttest.NewTelemetry()
	set := exporter.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: telemetry.NewTelemetrySettings()}
	e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	blocked := filepath.Join(folder, "shop")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	large := small("shop", profiletest.Value(1, strings.Repeat("x", 10_000)))
	for range messages {
		require.NoError(t, e.ConsumeProfiles(t.Context(), large))
	}
	failed := collectortest.Sum(t, telemetry, "otelcol_exporter_enqueue_failed_profile_samples")
	assert.Contains(t, []int64{messages - 9, messages - 10}, failed, "nine messages of 10 KB have room, and one is being written")
	require.NoError(t, os.Remove(blocked))
	require.Eventually(t, func() bool {
		return failed+collectortest.Sum(t, telemetry, "otelcol_exporter_sent_profile_samples") == messages
	}, time.Minute, 10*time.Millisecond)
	assert.NoError(t, e.Shutdown(context.Background()))
	assert.NoError(t, telemetry.Shutdown(context.Background()))
}

// Whatever a shipped configuration says of the queue of the page, it says it in bytes.
func TestShippedQueuesAreBoundedByBytes(t *testing.T) {
	checked := 0
	require.NoError(t, filepath.WalkDir("../../config", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var config struct {
			Exporters map[string]struct {
				Queue map[string]any `yaml:"sending_queue"`
			}
		}
		if yaml.Unmarshal(text, &config) != nil {
			return nil // several documents of Kubernetes
		}
		for id, exporter := range config.Exporters {
			if kind, _, _ := strings.Cut(id, "/"); kind != "pprof" {
				continue
			}
			checked++
			if size, isSet := exporter.Queue["queue_size"]; isSet {
				assert.Contains(t, []any{nil, "bytes"}, exporter.Queue["sizer"], "%s: %v", path, size)
			}
		}
		return nil
	}))
	assert.GreaterOrEqual(t, checked, 4)
}
