// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confignet"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// dialMany opens more connections than one address may have, and returns how many stay open, with a function that
// closes one of them.
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
	listener := listen(t)
	url := "http://" + listener.Addr().String()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	s := Start(&http.Server{Handler: http.NotFoundHandler()}, listener, Options{Telemetry: tel.NewTelemetrySettings()})
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	open, closeOne := dialMany(t, listener.Addr().String())
	assert.Equal(t, MaxConnectionsEach, open)
	assert.EqualValues(t, 20, collectortest.Sum(t, tel, refusedConnections))
	assert.EqualValues(t, 20, collectortest.Sum(t, tel, refusedConnections, "reason", "address"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := client.Get(url) //nolint:bodyclose // there is no answer
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
	c := newConnections(nil)
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
	assert.Len(t, c.shares.each, MaxConnections)
}

func TestNetworks(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "::1": "::",
	} {
		assert.Equal(t, want, networkOf(netip.AddrPortFrom(netip.MustParseAddr(address), 80).String()).String())
	}
	assert.Equal(t, netip.Addr{}, networkOf((&net.UnixAddr{Name: "socket"}).String()))
}

// A connection that has sent a part of its preface ends with the shutdown.
func TestShutdownBesideAStalledConnection(t *testing.T) {
	listener := listen(t)
	var g GRPC
	g.serve(grpc.NewServer(), &limitedListener{listener, newConnections(nil)}, nil)
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("PRI *"))
	require.NoError(t, err)
	require.Eventually(t, func() (hasSent bool) {
		g.listener.all.Range(func(conn, _ any) bool {
			hasSent = conn.(*limitedConn).hasSent.Load()
			return false
		})
		return hasSent
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
	plain := listen(t)
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

// An address has half of what the others leave: there is always room for another one, and all together are bounded.
func TestShares(t *testing.T) {
	const limit = 100
	var s shares
	address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }
	fill := func(from netip.Addr) (added int, refusedFor string) {
		for {
			if refusedFor = s.add(from, limit); refusedFor != "" {
				return added, refusedFor
			}
			added++
		}
	}
	for n, want := range []int{50, 25, 13, 6, 3, 2, 1} {
		added, refusedFor := fill(address(n))
		assert.Equal(t, want, added, n)
		assert.Equal(t, map[bool]string{true: "all", false: "address"}[s.all == limit], refusedFor, n)
	}
	assert.Equal(t, limit, s.all)
	assert.Equal(t, "all", s.add(address(8), limit))
	s.remove(address(1))
	assert.Equal(t, "address", s.add(address(0), limit), "it has its share")
	assert.Empty(t, s.add(address(8), limit))
	s.remove(address(8))
	for n, added := range []int{50, 24, 13, 6, 3, 2, 1} {
		for range added {
			s.remove(address(n))
		}
	}
	assert.Zero(t, s.all)
	assert.Empty(t, s.each)
}

// clientFrom returns a client whose connections come from an address of the loopback network. Other systems than Linux
// have only the first of them.
func clientFrom(t *testing.T, address string) *http.Client {
	if runtime.GOOS != "linux" {
		t.Skip("needs a second address of the loopback network")
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Connections of HTTP/2 whose requests have headers and no body do not keep other addresses out.
func TestRequestsOfAnAddressAreBounded(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := tel.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	listener := listen(t)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := Start(&http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}, listener, Options{Telemetry: set})
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	quiet, get := clientFrom(t, "127.0.0.2"), func(client *http.Client) (int, string) {
		response, err := client.Get("http://" + listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("Retry-After")
	}

	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "localhost"},
		{":path", "/"}} {
		require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	var open []net.Conn
	for range MaxRequests / MaxStreams {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		open = append(open, conn)
		var sent bytes.Buffer
		sent.WriteString(http2.ClientPreface)
		framer := http2.NewFramer(&sent, nil)
		require.NoError(t, framer.WriteSettings())
		for n := range uint32(MaxStreams) {
			require.NoError(t,
				framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: header.Bytes(), EndHeaders: true}))
		}
		_, err = conn.Write(sent.Bytes())
		require.NoError(t, err)
	}
	const refused = MaxRequests - MaxRequestsEach
	require.Eventually(t, func() bool { return collectortest.Sum(t, tel, refusedRequests) == refused }, 30*time.Second,
		10*time.Millisecond)
	assert.EqualValues(t, refused, collectortest.Sum(t, tel, refusedRequests, "reason", "address"))
	assert.Equal(t, MaxRequestsEach, s.requests.count())
	code, _ := get(quiet)
	assert.Equal(t, http.StatusOK, code)
	code, retryAfter := get(clientFrom(t, "127.0.0.1"))
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.NotEmpty(t, retryAfter)
	assert.Equal(t, 1, logs.Len(), "one line a minute")

	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool { return s.requests.count() == 0 }, 30*time.Second, time.Millisecond)
	code, _ = get(clientFrom(t, "127.0.0.1"))
	assert.Equal(t, http.StatusOK, code)
}

// Streams, calls and connections of a gRPC server are bounded, too.
func TestGRPCIsBounded(t *testing.T) {
	listener := listen(t)
	began, release := make(chan struct{}, 2*MaxRequests), make(chan struct{})
	server := grpc.NewServer(grpc.MaxConcurrentStreams(MaxStreams), limitCalls(nil), grpc.ForceServerCodecV2(RawCodec{}))
	server.RegisterService(exportService("test", func(stream grpc.ServerStream) error {
		began <- struct{}{}
		<-release
		return stream.SendMsg(new([]byte))
	}), nil)
	var g GRPC
	g.serve(server, &limitedListener{listener, newConnections(nil)}, nil)
	var calls sync.WaitGroup
	call := func(client *grpc.ClientConn) error {
		stream, err := client.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/test/Export",
			grpc.ForceCodecV2(RawCodec{}))
		if err == nil {
			err = stream.RecvMsg(new([]byte))
		}
		return err
	}
	var clients []*grpc.ClientConn
	newClient := func(from string) *grpc.ClientConn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", address)
			}))
		require.NoError(t, err)
		return client
	}
	for range MaxRequestsEach / MaxStreams {
		client := newClient("127.0.0.1")
		clients = append(clients, client)
		for range MaxStreams + 1 {
			calls.Go(func() { assert.NoError(t, call(client)) })
		}
	}
	for range MaxRequestsEach {
		<-began
	}
	assert.Empty(t, began, "the last call of each connection waits")
	one := newClient("127.0.0.1")
	err := call(one)
	assert.Equal(t, codes.Unavailable, status.Code(err), err)
	assert.Positive(t, otlpstatus.RetryDelay(err))
	if runtime.GOOS == "linux" { // other systems have no second address of the loopback network
		other := newClient("127.0.0.2")
		clients = append(clients, other)
		calls.Go(func() { assert.NoError(t, call(other)) })
		<-began
	}
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

// An address may have so many connections because those that are idle take little.
func TestIdleConnectionsOfGRPCTakeLittle(t *testing.T) {
	config := configgrpc.NewDefaultServerConfig()
	config.NetAddr.Endpoint, config.NetAddr.Transport = "127.0.0.1:0", confignet.TransportTypeTCP
	g := &GRPC{Config: &config}
	require.NoError(t,
		g.Start(t.Context(), Env{Host: componenttest.NewNopHost(), Telemetry: componenttest.NewNopTelemetrySettings()}))
	memory := func() int64 {
		runtime.GC()
		runtime.GC() // frees what pools hold
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc + stats.StackInuse)
	}
	before := memory()
	const n = 500
	for range n {
		conn, err := net.Dial("tcp", g.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00")) // empty settings
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, 9))
		require.NoError(t, err, "the server's settings")
	}
	assert.Less(t, (memory()-before)/n, int64(32<<10), "bytes of each")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = g.Shutdown(ctx)
}
