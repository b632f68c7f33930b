// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// testKubernetesToken makes the Secret as the component's comment says. The backend gets the token.
func testKubernetesToken(t *testing.T, c *cluster) {
	c.kubectl(t, "-n", installed, "create", "secret", "generic", "otelcol-profiles-backend", "--from-literal=token=s3cret")
	c.apply(t, overlayOf(t, "overlays/agent", "components/backend-token"))
	pod := c.addAgentPod(t, "token", "node-d", podIP(5))

	to, authorization := newBackend(t), make(chan []string, 1)
	to.start(t, grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
		handle grpc.UnaryHandler) (any, error) {
		select {
		case authorization <- metadata.ValueFromIncomingContext(ctx, "authorization"):
		default: // one is enough
		}
		return handle(ctx, request)
	}))
	agent := c.runPod(t, pod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})
	postFromPod(t, agent, podIP(51), ":4040/v1/pprof", "application/octet-stream",
		capturedPayloads(t)["go-cpu-labels.pb.gz"])
	select {
	case got := <-authorization:
		require.Equal(t, []string{"Bearer s3cret"}, got)
	case <-time.After(startTimeout):
		t.Fatal("nothing arrived")
	}
}
