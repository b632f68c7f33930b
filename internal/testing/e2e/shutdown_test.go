// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTerminationLosesNothingAcknowledged stops the collector while several clients push as fast as they can. The
// output has every push that was answered with 204.
func TestTerminationLosesNothingAcknowledged(t *testing.T) {
	t.Run("the exporter writes at once", func(t *testing.T) {
		terminateUnderLoad(t, startQuickstart(t))
	})
	t.Run("the exporter buffers", func(t *testing.T) {
		// Without rotation the file exporter writes when its buffer is full, and when it shuts down.
		terminateUnderLoad(t, startQuickstart(t,
			"--config=yaml:exporters::file/buffered: "+
				"{path: '${env:PROFILES_OUT}/profiles.jsonl', create_directory: true, flush_interval: 1h}",
			"--config=yaml:service::pipelines::profiles::exporters: [file/buffered]"))
	})
}

func terminateUnderLoad(t *testing.T, c *collector) {
	t.Helper()
	const pushers = 8
	payloads := capturedPayloads(t)
	small, large := payloads["go-heap.pb.gz"], payloads["go-build-merged-cpu-large.pb.gz"]

	var (
		mu           sync.Mutex
		acknowledged []string
		running      sync.WaitGroup
	)
	for pusher := range pushers {
		running.Go(func() {
			payload := small
			if pusher%2 == 1 {
				// Slow enough that some are under way when the signal arrives.
				payload = large
			}
			for i := 0; ; i++ {
				name := fmt.Sprintf("pusher-%d-%d", pusher, i)
				status, _, err := c.push(name, payload)
				if err != nil {
					// The listener is closed.
					return
				}
				if status == http.StatusNoContent {
					mu.Lock()
					acknowledged = append(acknowledged, name)
					mu.Unlock()
				}
			}
		})
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged) >= 2*pushers
	}, startTimeout, 10*time.Millisecond)
	c.Terminate(t)
	running.Wait()

	written := c.output(t)
	for _, name := range acknowledged {
		require.Len(t, written[name], 1, "%s was acknowledged", name)
	}
	t.Logf("%d pushes were acknowledged", len(acknowledged))
}
