// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestProfilesCrossOTLP pushes to a collector that sends OTLP to another one, over HTTP and over gRPC. What the second
// one writes is conformant and equals the payload.
func TestProfilesCrossOTLP(t *testing.T) {
	t.Parallel()
	payloads := capturedPayloads(t)
	for _, transport := range []struct{ protocol, limit, exporter, scheme string }{
		{protocol: "http", limit: "max_request_body_size: 134217728", exporter: "otlp_http", scheme: "http://"},
		// Its default of 4 MiB is less than the largest payload.
		{protocol: "grpc", limit: "max_recv_msg_size_mib: 128", exporter: "otlp_grpc"},
	} {
		t.Run(transport.protocol, func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			gateway := startQuickstart(t,
				"--config=yaml:receivers::otlp::protocols::"+transport.protocol+": "+
					"{endpoint: '"+address+"', "+transport.limit+"}",
				"--config=yaml:service::pipelines::profiles::receivers: [pprof, otlp]")
			agent := startQuickstart(t,
				"--config=yaml:exporters::"+transport.exporter+": "+
					"{endpoint: '"+transport.scheme+address+"', tls: {insecure: true}, timeout: 60s}",
				"--config=yaml:service::pipelines::profiles::exporters: ["+transport.exporter+"]")
			for name, payload := range payloads {
				agent.requirePush(t, name, payload)
			}
			// The agent delivers its queue before it ends.
			agent.Terminate(t)
			byService := gateway.output(t)
			for name, payload := range payloads {
				require.Len(t, byService[name], 1, name)
				pd := byService[name][0]
				requireIdentity(t, pd)
				require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()), name)
				requireSame(t, payload, pd)
			}
		})
	}
}
