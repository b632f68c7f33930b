// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"errors"
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

// open counts the open connections, or the requests under way, of a server: at most limit.
type open struct {
	limit   int
	mu      sync.Mutex
	shares  shares
	refused *refusals
}

// begin adds one, and returns false if there are too many. Otherwise end must be called.
func (o *open) begin(from netip.Addr) bool {
	o.mu.Lock()
	refusedFor := o.shares.add(from, o.limit)
	o.mu.Unlock()
	if refusedFor != "" {
		o.refused.note(from, refusedFor)
	}
	return refusedFor == ""
}

func (o *open) end(from netip.Addr) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shares.remove(from)
}

func (o *open) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shares.all
}

// connections are the open connections of a server, with their addresses.
type connections struct {
	open
	all sync.Map
}

func newConnections(refused *refusals) *connections {
	return &connections{open: open{limit: MaxConnections, refused: refused}}
}

// add adds a connection, and returns false if there are too many.
func (c *connections) add(conn net.Conn) bool {
	from := networkOf(conn.RemoteAddr().String())
	isAdded := c.begin(from)
	if isAdded {
		c.all.Store(conn, from)
	}
	return isAdded
}

// remove removes a connection, if it was added.
func (c *connections) remove(conn net.Conn) {
	if from, wasOpen := c.all.LoadAndDelete(conn); wasOpen {
		c.end(from.(netip.Addr))
	}
}

// networkOf returns the IP address of a client: of IPv6 the first 64 bits, since one client has all of the others. It
// is the zero value for any other address.
func networkOf(address string) netip.Addr {
	client, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}
	}
	ip := client.Addr().Unmap().WithZone("")
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
	*connections
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if limited := (&limitedConn{Conn: conn, of: l.connections}); l.add(limited) {
			return limited, nil
		}
		_ = conn.Close()
	}
}

// closeAll closes the connections, or only those that have sent nothing.
func (l *limitedListener) closeAll(onlySilent bool) {
	l.all.Range(func(conn, _ any) bool {
		if c := conn.(*limitedConn); !onlySilent || !c.hasSent.Load() {
			_ = c.Close()
		}
		return true
	})
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
	calls := open{limit: MaxRequests, refused: refused}
	return grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
		next grpc.StreamHandler) error {
		var from netip.Addr
		if client, ok := peer.FromContext(stream.Context()); ok {
			from = networkOf(client.Addr.String())
		}
		if !calls.begin(from) {
			return otlpstatus.Of(errTooManyRequests).Err()
		}
		defer calls.end(from)
		return next(service, stream)
	})
}
