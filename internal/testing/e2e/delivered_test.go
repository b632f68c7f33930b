// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestStopsThoughSendersWait stops a gateway while requests in the Collector's otlp receiver wait for dictionary_dedup,
// which waits for room in the queue. The process ends in time, and every sender gets an answer.
func TestStopsThoughSendersWait(t *testing.T) {
	t.Parallel()
	to := newBackend(t) // never started: it accepts nothing
	for _, acknowledge := range []string{"batched", "delivered"} {
		t.Run(acknowledge, func(t *testing.T) {
			t.Parallel()
			gateway := startGateway(t, to, t.TempDir(),
				"--config=yaml:receivers::otlp::protocols: "+
					"{grpc: {endpoint: '${env:OTLP_GRPC_ENDPOINT}'}, http: {endpoint: '${env:OTLP_HTTP_ENDPOINT}'}}",
				"--config=yaml:service::pipelines::profiles::receivers: [otlp]",
				"--set=processors.dictionary_dedup.acknowledge="+acknowledge,
				"--set=processors.dictionary_dedup.timeout=20ms",
				"--set=exporters.otlp_grpc.sending_queue.sizer=requests",
				"--set=exporters.otlp_grpc.sending_queue.queue_size=1",
				"--set=exporters.otlp_grpc.sending_queue.num_consumers=1")
			client, from := dial(t, gateway.otlp), newAgents(t)
			var running sync.WaitGroup
			var stopping atomic.Bool
			var refused atomic.Int64
			for range 10 {
				running.Go(func() {
					for !stopping.Load() {
						pd, _ := from.message(1)
						if err := export(client, pd); err != nil {
							refused.Add(1)
							assert.Equal(t, codes.Unavailable, status.Code(err), err)
						}
					}
				})
				running.Go(func() {
					for !stopping.Load() {
						pd, _ := from.message(1)
						body, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
						require.NoError(t, err)
						code, _, err := post("http://"+gateway.otlpHTTP+"/v1development/profiles", protobuf, body)
						if err != nil {
							continue // the listener is closed
						}
						if code != http.StatusOK {
							refused.Add(1)
							assert.Equal(t, http.StatusServiceUnavailable, code)
						}
					}
				})
			}
			require.Eventually(t, func() bool { return refused.Load() >= 10 }, startTimeout, 10*time.Millisecond,
				"senders wait, then they are asked to retry")
			begin := time.Now()
			stopping.Store(true)
			gateway.Terminate(t)
			took := time.Since(begin)
			running.Wait()
			assert.Less(t, took, 30*time.Second)
			t.Logf("stopped in %v, %d requests were asked to retry", took.Round(time.Millisecond), refused.Load())
		})
	}
}
