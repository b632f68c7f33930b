// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// retrying has short waits and no end.
var retrying = map[string]any{"initial_interval": "10ms", "max_interval": "20ms", "max_elapsed_time": 0}

// While no file can be written, messages wait. What the queue refuses has an error and is counted; the others have one
// file each, as soon as they can be written.
func TestNothingVanishesWhileTheDiskFails(t *testing.T) {
	const messages, size = 40, 5
	folder := t.TempDir()
	f := startExporter(t, folder, map[string]any{
		"sending_queue":    map[string]any{"enabled": true, "sizer": "requests", "queue_size": size},
		"retry_on_failure": retrying,
	})
	blocked := filepath.Join(folder, "shop")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	refused := 0
	for range messages {
		if f.ConsumeProfiles(t.Context(), small("shop")) != nil {
			refused++
		}
	}
	count := func(name string) int { return int(collectortest.Sum(t, f.telemetry, "otelcol_exporter_"+name)) }
	assert.Positive(t, refused)
	assert.Equal(t, refused, count("enqueue_failed_profile_samples"))
	require.NoError(t, os.Remove(blocked))
	require.Eventually(t, func() bool { return count("sent_profile_samples")+refused == messages }, time.Minute,
		10*time.Millisecond)
	assert.Len(t, filesIn(t, folder), messages-refused)
	assert.Equal(t, messages-refused, count("pprof_file_written"))
}

// A queue that counted requests would have no bound on memory: ten thousand messages of 4 MB are 40 GB.
func TestTheQueueIsBoundedByBytes(t *testing.T) {
	queue := createDefaultConfig().(*Config).Queue.Get()
	assert.Equal(t, exporterhelper.RequestSizerTypeBytes, queue.Sizer)
	assert.EqualValues(t, 32<<20, queue.QueueSize)

	const messages = 40
	folder := t.TempDir()
	f := startExporter(t, folder, map[string]any{
		"sending_queue":    map[string]any{"enabled": true, "queue_size": 100_000, "num_consumers": 1},
		"retry_on_failure": retrying,
	})
	blocked := filepath.Join(folder, "shop")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	large := small("shop", profiletest.Value(1, strings.Repeat("x", 10_000)))
	refused := 0
	for range messages {
		if f.ConsumeProfiles(t.Context(), large) != nil {
			refused++
		}
	}
	assert.Contains(t, []int{messages - 9, messages - 10}, refused, "nine messages of 10 KB fit, and one is being written")
	require.NoError(t, os.Remove(blocked))
}
