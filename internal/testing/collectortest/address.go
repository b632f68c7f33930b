// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports that tests listen on are below those of outgoing connections (from 32768 on Linux, from 49152 elsewhere).
// Otherwise a connection could use a free port before the collector listens on it.
const (
	firstPort = 12_000
	ports     = 20_000
)

// nextPort begins at random, since another run of the tests may use ports at the same time.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(ports)) }

// FreeAddress returns a loopback address on which nobody listens, another one each time.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range ports {
		port := firstPort + int(nextPort.Add(1)%ports)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		// Try all interfaces: the collector may listen on all of them.
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err == nil {
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
