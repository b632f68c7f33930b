// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
)

// What a server has open at a time. Each takes memory that no claim on the budget counts.
const (
	// MaxConnections is for all clients, MaxConnectionsEach for one address, or one IPv6 network of 64 bits.
	MaxConnections     = 4096
	MaxConnectionsEach = 1024
	// MaxStreams is how many requests one HTTP/2 connection has, unless the configuration has another number.
	MaxStreams = 64
	// MaxRequests is how many requests are handled. More are refused for the moment.
	MaxRequests = 4096
)

// connections are the open connections of a server. The zero value has none.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]netip.Addr
	each map[netip.Addr]int
}

// add adds a connection, and returns false if there are too many.
func (c *connections) add(conn net.Conn) bool {
	from := networkOf(conn.RemoteAddr())
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= MaxConnections || c.each[from] >= MaxConnectionsEach {
		return false
	}
	if c.open == nil {
		c.open, c.each = map[net.Conn]netip.Addr{}, map[netip.Addr]int{}
	}
	c.open[conn] = from
	c.each[from]++
	return true
}

// remove removes a connection, if it was added.
func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, isOpen := c.open[conn]
	if !isOpen {
		return
	}
	delete(c.open, conn)
	if c.each[from]--; c.each[from] == 0 {
		delete(c.each, from)
	}
}

// networkOf returns the address of a client: of IPv6 the first 64 bits, since one client has all of the others. It is the zero value for
// what is no IP address.
func networkOf(address net.Addr) netip.Addr {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64)
		return network.Addr()
	}
	return ip
}

// limitHTTP closes new connections where there are too many. It does not wrap connections: net/http would not recognise TLS.
func (c *connections) limitHTTP(server *http.Server) {
	if server.HTTP2 == nil {
		server.HTTP2 = &http.HTTP2Config{}
	}
	server.HTTP2.MaxConcurrentStreams = cmp.Or(server.HTTP2.MaxConcurrentStreams, MaxStreams)
	next := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if !c.add(conn) {
				_ = conn.Close()
			}
		case http.StateClosed, http.StateHijacked:
			c.remove(conn)
		}
		if next != nil {
			next(conn, state)
		}
	}
}

// limitedListener closes new connections where there are too many. It can close the others, too: a gRPC server that stops waits two
// minutes for connections that have sent nothing.
type limitedListener struct {
	net.Listener
	connections
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if limited := (&limitedConn{Conn: conn, of: &l.connections}); l.add(limited) {
			return limited, nil
		}
		_ = conn.Close()
	}
}

// closeAll closes the connections, or only those that have sent nothing.
func (l *limitedListener) closeAll(onlySilent bool) {
	l.mu.Lock()
	open := maps.Clone(l.open)
	l.mu.Unlock()
	for conn := range open {
		if !onlySilent || !conn.(*limitedConn).hasSent.Load() {
			_ = conn.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	of      *connections
	hasSent atomic.Bool
}

func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.hasSent.Store(true)
	}
	return n, err
}

func (c *limitedConn) Close() error {
	defer c.of.remove(c)
	return c.Conn.Close()
}

var errTooManyRequests = errors.New("too many requests are being handled at the moment")

// limitCalls refuses calls for the moment where MaxRequests are handled.
func limitCalls() grpc.ServerOption {
	var calls atomic.Int64
	return grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		defer calls.Add(-1)
		if calls.Add(1) > MaxRequests {
			return otlpstatus.Of(errTooManyRequests).Err()
		}
		return next(service, stream)
	})
}
