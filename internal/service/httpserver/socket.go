// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"go.opentelemetry.io/collector/config/confignet"
)

// removeDeadSocket removes the file of a Unix socket on which nobody listens. A process that was killed leaves it, and
// the next one could not bind it.
func removeDeadSocket(ctx context.Context, address *confignet.AddrConfig) {
	if address.Transport != confignet.TransportTypeUnix {
		return
	}
	info, err := os.Stat(address.Endpoint)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address.Endpoint)
	switch {
	case err == nil:
		_ = conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		_ = os.Remove(address.Endpoint) // if it fails, so does binding
	}
}
