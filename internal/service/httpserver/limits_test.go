// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
)

// dialMany opens more connections than one address may have, and returns how many stay open, with a function that closes one of them.
func dialMany(t *testing.T, address string) (open int, closeOne func()) {
	var all []net.Conn
	for range MaxConnectionsEach + 20 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		all = append(all, conn)
	}
	var mu sync.Mutex
	var left []net.Conn
	var reading sync.WaitGroup
	for _, conn := range all {
		reading.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			for {
				_, err := conn.Read(make([]byte, 64)) // gRPC sends its settings
				if errors.Is(err, os.ErrDeadlineExceeded) {
					mu.Lock()
					left = append(left, conn)
					mu.Unlock()
				}
				if err != nil {
					return
				}
			}
		})
	}
	reading.Wait()
	return len(left), func() { _ = left[0].Close() }
}

func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + listener.Addr().String()
	s := Start(&http.Server{Handler: http.NotFoundHandler()}, listener, Options{})
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	open, closeOne := dialMany(t, listener.Addr().String())
	assert.Equal(t, MaxConnectionsEach, open)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err = client.Get(url) //nolint:bodyclose // there is no answer
	require.Error(t, err)
	closeOne()
	assert.Eventually(t, func() bool {
		response, err := client.Get(url)
		return err == nil && response.Body.Close() == nil
	}, 30*time.Second, 10*time.Millisecond, "there is room for another one")
}

type connFrom struct {
	net.Conn
	address netip.Addr
}

func (c *connFrom) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.address, 80))
}

func TestConnectionsOfAllAddressesAreBounded(t *testing.T) {
	var c connections
	var conns []net.Conn
	for n := range MaxConnections {
		conns = append(conns, &connFrom{address: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})})
		require.True(t, c.add(conns[n]))
	}
	other := &connFrom{address: netip.MustParseAddr("192.0.2.1")}
	assert.False(t, c.add(other))
	c.remove(other) // net/http closes it
	assert.False(t, c.add(other))
	c.remove(conns[1])
	assert.True(t, c.add(other))
	assert.Len(t, c.each, MaxConnections)
}

func TestNetworks(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "::1": "::",
	} {
		assert.Equal(t, want, networkOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 80))).String())
	}
	assert.Equal(t, netip.Addr{}, networkOf(&net.UnixAddr{Name: "socket"}))
}

// A connection that has sent a part of its preface ends with the shutdown.
func TestShutdownBesideAStalledConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var g GRPC
	g.serve(grpc.NewServer(), listener, nil)
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("PRI *"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		g.listener.mu.Lock()
		defer g.listener.mu.Unlock()
		for open := range g.listener.open {
			return open.(*limitedConn).hasSent.Load()
		}
		return false
	}, 30*time.Second, time.Millisecond)
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorContains(t, g.Shutdown(ctx), "had not ended")
	assert.Less(t, time.Since(start), time.Minute)
}

// HTTP/2 still works over TLS, with the bound on streams.
func TestStreamsAreBounded(t *testing.T) {
	certificate := httptest.NewTLSServer(nil)
	defer certificate.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := certificate.TLS.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	var mu sync.Mutex
	running := map[string]int{} // by connection: the client can open a second one, whatever its limit
	full := false
	release := make(chan struct{})
	s := Start(&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
		assert.NotNil(t, r.TLS)
		mu.Lock()
		running[r.RemoteAddr]++
		assert.LessOrEqual(t, running[r.RemoteAddr], MaxStreams)
		full = full || running[r.RemoteAddr] == MaxStreams
		mu.Unlock()
		<-release
		mu.Lock()
		running[r.RemoteAddr]--
		mu.Unlock()
	})}, tls.NewListener(plain, config), Options{})
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	client := certificate.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	client.Transport.(*http.Transport).MaxConnsPerHost = 1
	var requests sync.WaitGroup
	for range MaxStreams * 2 {
		requests.Go(func() {
			response, err := client.Get("https://" + plain.Addr().String())
			if assert.NoError(t, err) {
				assert.NoError(t, response.Body.Close())
			}
		})
	}
	assert.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return full
	}, 30*time.Second, time.Millisecond)
	close(release)
	requests.Wait()
	client.CloseIdleConnections()
}

func TestRequestsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := Start(&http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, listener, Options{})
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	s.requests.Store(MaxRequests)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, http.StatusServiceUnavailable, answer.Code)
	assert.NotEmpty(t, answer.Header().Get("Retry-After"))
	assert.Contains(t, answer.Body.String(), "too many requests")
	s.requests.Store(MaxRequests - 1)
	answer = httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, http.StatusOK, answer.Code)
	s.requests.Store(0)
}

// Streams, calls and connections of a gRPC server are bounded, too.
func TestGRPCIsBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	began, release := make(chan struct{}, 2*MaxRequests), make(chan struct{})
	server := grpc.NewServer(grpc.MaxConcurrentStreams(MaxStreams), limitCalls(), grpc.ForceServerCodecV2(RawCodec{}))
	server.RegisterService(exportService("test", func(stream grpc.ServerStream) error {
		began <- struct{}{}
		<-release
		return stream.SendMsg(new([]byte))
	}), nil)
	var g GRPC
	g.serve(server, listener, nil)
	var calls sync.WaitGroup
	call := func(client *grpc.ClientConn) error {
		stream, err := client.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/test/Export", grpc.ForceCodecV2(RawCodec{}))
		if err == nil {
			err = stream.RecvMsg(new([]byte))
		}
		return err
	}
	var clients []*grpc.ClientConn
	for range MaxRequests / MaxStreams {
		client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		clients = append(clients, client)
		for range MaxStreams + 1 {
			calls.Go(func() { assert.NoError(t, call(client)) })
		}
	}
	for range MaxRequests {
		<-began
	}
	assert.Empty(t, began, "the last call of each connection waits")
	one, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	err = call(one)
	assert.Equal(t, codes.Unavailable, status.Code(err), err)
	assert.Positive(t, otlpstatus.RetryDelay(err))
	close(release)
	calls.Wait()
	for _, client := range append(clients, one) {
		require.NoError(t, client.Close())
	}
	open, _ := dialMany(t, listener.Addr().String())
	assert.LessOrEqual(t, open, MaxConnectionsEach)
	assert.Greater(t, open, MaxConnectionsEach-100)
	require.NoError(t, g.Shutdown(t.Context()), "connections that have sent nothing")
}
