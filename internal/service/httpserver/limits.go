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
	"google.golang.org/grpc/peer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
)

// Bounds on a server's open connections, streams and requests, which take memory that no reservation on the budget
// counts.
const (
	// MaxConnections is for all clients, MaxConnectionsEach for one that is alone (shares).
	MaxConnections     = 4096
	MaxConnectionsEach = MaxConnections / 2
	// MaxStreams is how many requests one HTTP/2 connection has, unless the configuration has another number.
	MaxStreams = 64
	// MaxRequests is how many requests are handled, for all clients and for one that is alone. More are refused for the
	// moment.
	MaxRequests     = 4096
	MaxRequestsEach = MaxRequests / 2
)

// shares bounds the open ones, for all clients and for each address, or IPv6 network of 64 bits: one has at
// most half of what the others leave. So an address of many clients, such as a load balancer's, has room while nobody
// else needs it, and none can keep the others out.
type shares struct {
	all  int
	each map[netip.Addr]int
}

// add adds one of an address, or returns why there are too many.
func (s *shares) add(from netip.Addr, limit int) (refusedFor string) {
	ofAddress := s.each[from]
	switch left := limit - (s.all - ofAddress); {
	case s.all >= limit:
		return refusedForAll
	case ofAddress >= (left+1)/2: // the last one is for somebody who has none
		return refusedForAddress
	}
	if s.each == nil {
		s.each = map[netip.Addr]int{}
	}
	s.all++
	s.each[from]++
	return ""
}

// remove removes one that was added.
func (s *shares) remove(from netip.Addr) {
	s.all--
	if s.each[from]--; s.each[from] == 0 {
		delete(s.each, from)
	}
}

// requests are the requests that a server handles. The zero value has none.
type requests struct {
	mu      sync.Mutex
	shares  shares
	refused *refusals
}

// begin adds a request, and returns false if there are too many. Otherwise end must be called.
func (r *requests) begin(from netip.Addr) bool {
	r.mu.Lock()
	refusedFor := r.shares.add(from, MaxRequests)
	r.mu.Unlock()
	if refusedFor != "" {
		r.refused.note(from, refusedFor)
	}
	return refusedFor == ""
}

func (r *requests) end(from netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shares.remove(from)
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shares.all
}

// connections are the open connections of a server. The zero value has none.
type connections struct {
	mu      sync.Mutex
	open    map[net.Conn]netip.Addr
	shares  shares
	refused *refusals
}

// add adds a connection, and returns false if there are too many.
func (c *connections) add(conn net.Conn) bool {
	from := networkOf(conn.RemoteAddr())
	c.mu.Lock()
	refusedFor := c.shares.add(from, MaxConnections)
	if refusedFor == "" {
		if c.open == nil {
			c.open = map[net.Conn]netip.Addr{}
		}
		c.open[conn] = from
	}
	c.mu.Unlock()
	if refusedFor != "" {
		c.refused.note(from, refusedFor)
	}
	return refusedFor == ""
}

// remove removes a connection, if it was added.
func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from, isOpen := c.open[conn]; isOpen {
		delete(c.open, conn)
		c.shares.remove(from)
	}
}

// networkOf returns the address of a client: of IPv6 the first 64 bits, since one client has all of the others. It is
// the zero value for what is no IP address.
func networkOf(address net.Addr) netip.Addr {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return networkOfIP(tcp.AddrPort().Addr())
}

// networkOfRequest is networkOf the client of a request.
func networkOfRequest(r *http.Request) netip.Addr {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return networkOfIP(address.Addr())
}

func networkOfIP(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64)
		return network.Addr()
	}
	return ip
}

// limitHTTP closes new connections where there are too many. It does not wrap connections: net/http would not recognise
// TLS.
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

// limitedListener closes new connections where there are too many. It can close the others, too: a gRPC server that
// stops waits two minutes for connections that have sent nothing.
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

// limitCalls refuses calls for the moment where too many are handled.
func limitCalls(refused *refusals) grpc.ServerOption {
	calls := requests{refused: refused}
	return grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
		next grpc.StreamHandler) error {
		var from netip.Addr
		if client, ok := peer.FromContext(stream.Context()); ok {
			from = networkOf(client.Addr)
		}
		if !calls.begin(from) {
			return otlpstatus.Of(errTooManyRequests).Err()
		}
		defer calls.end(from)
		return next(service, stream)
	})
}
