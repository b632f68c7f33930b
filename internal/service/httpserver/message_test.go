// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// serveGRPC starts a server that answers with the message that it received, and returns a client of it.
func serveGRPC(t *testing.T, readTimeout time.Duration) *grpc.ClientConn {
	config := configgrpc.NewDefaultServerConfig()
	config.NetAddr.Endpoint = "localhost:0"
	config.NetAddr.Transport = "tcp"
	config.MaxRecvMsgSizeMiB = 8
	g := &GRPC{Config: &config, ReadTimeout: readTimeout, Services: map[string]Export{
		"test": func(_ context.Context, message []byte, reservation *budget.Reservation) ([]byte, error) {
			assert.GreaterOrEqual(t, reservation.HeldBytes(), int64(len(message)))
			return bytes.Clone(message), nil
		},
	}}
	require.NoError(t,
		g.Start(t.Context(), Env{Host: componenttest.NewNopHost(), Telemetry: componenttest.NewNopTelemetrySettings()}))
	client, err := grpc.NewClient(g.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(RawCodec{}), grpc.MaxCallRecvMsgSize(16*mib)))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, g.Shutdown(context.Background()))
		require.Eventually(t, func() bool { return budget.Process().HeldBytes() == 0 }, 30*time.Second, time.Millisecond)
	})
	return client
}

func TestMessagesInEveryEncoding(t *testing.T) {
	profiletest.SkipLarge(t)
	client := serveGRPC(t, 0)
	for _, name := range []string{"", "gzip", "zstd", "snappy"} {
		for size, want := range map[int]codes.Code{0: codes.OK, 1: codes.OK, 100_000: codes.OK, 8 * mib: codes.OK, 8*mib +
			1: codes.ResourceExhausted} {
			message, answer := bytes.Repeat([]byte("0123456789"), size/10+1)[:size], []byte(nil)
			var options []grpc.CallOption
			if name != "" {
				require.NotNil(t, encoding.GetCompressor(name), name)
				options = append(options, grpc.UseCompressor(name))
			}
			err := client.Invoke(t.Context(), "/test/Export", &message, &answer, options...)
			require.Equal(t, want, status.Code(err), "%s of %d bytes: %v", name, size, err)
			if want == codes.OK {
				assert.True(t, bytes.Equal(message, answer))
			} else {
				assert.Zero(t, otlpstatus.RetryDelay(err))
			}
		}
	}
}

func TestCallWithoutAMessage(t *testing.T) {
	client := serveGRPC(t, 0)
	stream, err := client.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		"/test/Export")
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	err = stream.RecvMsg(new([]byte))
	assert.Equal(t, codes.InvalidArgument, status.Code(err), err)
}

// Calls that send nothing hold nothing, whatever their number: others are received meanwhile, and later they are told
// that they are late.
func TestIdleCallsHoldNothing(t *testing.T) {
	client := serveGRPC(t, 3*time.Second)
	var idle []grpc.ClientStream
	for range 50 {
		stream, err := client.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
			"/test/Export")
		require.NoError(t, err)
		idle = append(idle, stream)
	}
	message, answer := make([]byte, 7*mib), []byte(nil)
	require.NoError(t, client.Invoke(t.Context(), "/test/Export", &message, &answer))
	assert.Zero(t, budget.Process().HeldBytes())
	err := idle[0].RecvMsg(&answer)
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err), err)
	assert.ErrorContains(t, err, "`read_timeout`")
}
