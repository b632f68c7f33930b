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

// The ports that tests listen on lie below those that operating systems give to outgoing connections (from 32768 on
// Linux, 49152 elsewhere). A port that was free a moment ago could otherwise be taken by a connection before the
// collector listens on it.
const (
	firstPort = 12_000
	ports     = 20_000
)

// nextPort begins anywhere, since another run of the tests may go on beside this one.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(ports)) }

// FreeAddress returns a loopback address where nobody listens, another one each time.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range ports {
		port := firstPort + int(nextPort.Add(1)%ports)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		// Not for the loopback interface alone: the address may become one of all interfaces.
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
