// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// startSink starts a backend that accepts all calls of gRPC, and does not decode them.
func startSink(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(1<<30), grpc.ForceServerCodecV2(httpserver.RawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			var message []byte
			if err := stream.RecvMsg(&message); err != nil {
				return err
			}
			return stream.SendMsg(new([]byte))
		}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

const kafkaTopic = "otlp_profiles"

// startBroker starts a broker of Kafka with the topic of the configurations.
func startBroker(t *testing.T) (address string) {
	t.Helper()
	address = collectortest.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(number), kfake.SeedTopics(8, kafkaTopic))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return address
}
