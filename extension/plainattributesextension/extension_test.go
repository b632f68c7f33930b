// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package plainattributesextension

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/extension/plainattributesextension/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// export sends profiles, and logs, with or without the extension. It returns the bytes of both requests.
func export(t *testing.T, isPlain bool) (profiles, logs []byte) {
	received := map[string][]byte{}
	server := grpc.NewServer(grpc.ForceServerCodecV2(httpserver.RawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			var data []byte
			if err := stream.RecvMsg(&data); err != nil {
				return err
			}
			method, _ := grpc.MethodFromServerStream(stream)
			received[method] = data
			return stream.SendMsg(new([]byte))
		}))
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	id := component.NewID(metadata.Type)
	made, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type),
		NewFactory().CreateDefaultConfig())
	require.NoError(t, err)
	config := configgrpc.NewDefaultClientConfig()
	config.Endpoint, config.TLS.Insecure = listener.Addr().String(), true
	config.BalancerName = "pick_first"
	config.Keepalive = configoptional.None[configgrpc.KeepaliveClientConfig]()
	if isPlain {
		config.Middlewares = []configmiddleware.Config{{ID: id}}
	}
	conn, err := config.ToClientConn(t.Context(), host{id: made}.GetExtensions(), componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()

	pd := profiletest.New().Resource("service.name", "shop").Scope("scope", "1").
		Profile("samples", "count").Time(1_000, 5_000).Sample(profiletest.Observed([]uint64{1_000}, "leaf", "main")).Build()
	_, err = pprofileotlp.NewGRPCClient(conn).Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(pd))
	require.NoError(t, err)
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().Resource().Attributes().PutStr("service.name", "shop")
	_, err = plogotlp.NewGRPCClient(conn).Export(t.Context(), plogotlp.NewExportRequestFromLogs(ld))
	require.NoError(t, err)
	return received["/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"],
		received["/opentelemetry.proto.collector.logs.v1.LogsService/Export"]
}

// firstKey returns the key of the first attribute of the first resource as a reader sees it that knows no references.
func firstKey(message []byte) string {
	for range 4 { // resource profiles, resource, attribute, key
		next := []byte(nil)
		for content := range wire.Messages(message, 1) {
			next = content
			break
		}
		message = next
	}
	return string(message)
}

func TestAttributesArePlain(t *testing.T) {
	interned, logs := export(t, false)
	plain, sameLogs := export(t, true)
	assert.Empty(t, firstKey(interned))
	assert.Equal(t, "service.name", firstKey(plain))
	assert.Equal(t, logs, sameLogs)
	for _, message := range [][]byte{interned, plain} {
		pd := profiletest.Unmarshal(t, message)
		assert.Equal(t, map[string]any{"service.name": "shop"}, pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
	}
}
