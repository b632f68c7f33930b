// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// gatewayWith starts config/gateway.yaml before a backend, with further flags.
func gatewayWith(t *testing.T, to *backend, storage string, flags ...string) (gateway *collector, http string) {
	t.Helper()
	endpoint, http := freeAddress(t), freeAddress(t)
	return launchWith(t, endpoint, "", "config/gateway.yaml", flags,
		"OTLP_GRPC_ENDPOINT="+endpoint, "OTLP_HTTP_ENDPOINT="+http, "HEALTH_ENDPOINT="+freeAddress(t),
		"BACKEND_ENDPOINT="+to.address, "GATEWAY_STORAGE="+storage), http
}

// TestStopsThoughSendersWait stops a gateway while requests wait in the stock otlp receiver for dictionary_dedup, and
// that waits for a full queue that blocks. The process ends in time, and no sender is left without an answer.
func TestStopsThoughSendersWait(t *testing.T) {
	t.Parallel()
	to := &backend{address: freeAddress(t)} // never started: nothing is ever taken
	for _, acknowledge := range []string{"batched", "delivered"} {
		t.Run(acknowledge, func(t *testing.T) {
			t.Parallel()
			gateway, httpEndpoint := gatewayWith(t, to, t.TempDir(),
				"--config=yaml:receivers::otlp::protocols: "+
					"{grpc: {endpoint: '${env:OTLP_GRPC_ENDPOINT}'}, http: {endpoint: '${env:OTLP_HTTP_ENDPOINT}'}}",
				"--config=yaml:service::pipelines::profiles::receivers: [otlp]",
				"--set=processors.dictionary_dedup.acknowledge="+acknowledge,
				"--set=processors.dictionary_dedup.timeout=20ms",
				"--set=exporters.otlp_grpc.sending_queue.sizer=requests",
				"--set=exporters.otlp_grpc.sending_queue.queue_size=1",
				"--set=exporters.otlp_grpc.sending_queue.num_consumers=1")
			connection, err := grpc.NewClient(gateway.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
			require.NoError(t, err)
			defer connection.Close()
			client := pprofileotlp.NewGRPCClient(connection)

			from := &agents{t: t, acked: map[string]int{}}
			var running sync.WaitGroup
			var stopping atomic.Bool
			var refused atomic.Int64
			for range 10 {
				running.Go(func() {
					for !stopping.Load() {
						pd, _ := from.message(1)
						_, err := client.Export(context.Background(), pprofileotlp.NewExportRequestFromProfiles(pd))
						if err != nil {
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
						answer, err := http.Post("http://"+httpEndpoint+"/v1development/profiles", "application/x-protobuf", bytes.NewReader(body))
						if err != nil {
							continue // the listener is closed
						}
						assert.NoError(t, answer.Body.Close())
						if answer.StatusCode != http.StatusOK {
							refused.Add(1)
							assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
						}
					}
				})
			}
			require.Eventually(t, func() bool { return refused.Load() >= 10 }, startTimeout, 10*time.Millisecond, "senders are held, then told to come back")
			begin := time.Now()
			stopping.Store(true)
			gateway.Terminate(t)
			took := time.Since(begin)
			running.Wait()
			assert.Less(t, took, 30*time.Second)
			t.Logf("stopped in %v, %d requests were asked to come back", took.Round(time.Millisecond), refused.Load())
		})
	}
}

// TestDeliveredIsNotLost kills a gateway with `acknowledge: delivered` again and again. What it acknowledged is in its
// queue on disk, and arrives.
func TestDeliveredIsNotLost(t *testing.T) {
	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	storage := t.TempDir()
	from := &agents{t: t, acked: map[string]int{}}
	for range 4 {
		gateway, _ := gatewayWith(t, to, storage,
			"--set=processors.dictionary_dedup.acknowledge=delivered", "--set=processors.dictionary_dedup.timeout=50ms")
		connection, err := grpc.NewClient(gateway.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		var running sync.WaitGroup
		for agent := range 6 {
			running.Go(func() {
				for {
					pd, functions := from.message(agent)
					_, err := pprofileotlp.NewGRPCClient(connection).Export(context.Background(), pprofileotlp.NewExportRequestFromProfiles(pd))
					if err != nil {
						return // killed
					}
					from.acknowledge(functions)
				}
			})
		}
		time.Sleep(700 * time.Millisecond)
		gateway.Kill()
		running.Wait()
		assert.NoError(t, connection.Close())
	}
	require.NotEmpty(t, from.acked)
	gateway, _ := gatewayWith(t, to, storage)
	require.Eventually(t, func() bool {
		got := to.functions(t)
		for name := range from.acked {
			if got[name] == 0 {
				return false
			}
		}
		return true
	}, startTimeout, 100*time.Millisecond, "every acknowledged sample arrives")
	gateway.Terminate(t)
	t.Logf("%d samples were acknowledged", len(from.acked))
}
