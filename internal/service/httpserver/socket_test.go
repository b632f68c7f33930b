// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confignet"
)

// A collector that was killed leaves its socket behind, and the next one binds it. One that lives keeps it, and so does
// a file that is no socket.
func TestSocketOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	start := func() error {
		config := configgrpc.NewDefaultServerConfig()
		config.NetAddr = confignet.AddrConfig{Endpoint: path, Transport: confignet.TransportTypeUnix}
		g := &GRPC{Config: &config}
		err := g.Start(t.Context(), Env{Host: componenttest.NewNopHost(), Telemetry: componenttest.NewNopTelemetrySettings()})
		if err == nil {
			require.NoError(t, g.Shutdown(t.Context()))
		}
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	assert.ErrorContains(t, start(), "address already in use")
	require.NoError(t, listener.Close())
	assert.NoError(t, start())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.ErrorContains(t, start(), "address already in use")
}
