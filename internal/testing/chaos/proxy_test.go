// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy forwards TCP connections to an address, and ends each as its fate says.
type proxy struct {
	address, to string
	// next returns the fate of the next connection.
	next func() fate
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// fate is how many bytes of requests and answers pass before a connection ends. If only the answers end, requests are
// accepted and their senders do not learn it.
type fate struct {
	requests, answers int64
	// reset ends the connection with RST instead of FIN.
	reset bool
}

func startProxy(t testing.TB, to string, next func() fate) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: listener.Addr().String(), to: to, next: next, open: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for connection := range p.open {
			_ = connection.Close()
		}
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(connection.(*net.TCPConn))
		}
	}()
	return p
}

func (p *proxy) pass(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.to, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	f := p.next()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var once sync.Once
	end := func() {
		if f.reset {
			_ = client.SetLinger(0)
			_ = server.(*net.TCPConn).SetLinger(0)
		}
		_ = client.Close()
		_ = server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, client)
		delete(p.open, server)
	}
	go func() {
		_, _ = io.CopyN(server, client, f.requests)
		once.Do(end)
	}()
	_, _ = io.CopyN(client, server, f.answers)
	once.Do(end)
}
