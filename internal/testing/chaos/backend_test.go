// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/collector/config/configgrpc" // gzip and zstd: the exporters compress
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// backend receives OTLP profiles over gRPC, and log records that carry them, and enters them into a ledger.
type backend struct {
	pprofileotlp.UnimplementedGRPCServer
	address string
	ledger  *ledger
	// refuse returns the error to answer a request of profiles with. Such a request is not entered. It may be nil.
	refuse func(request int64) error

	requests atomic.Int64
	mu       sync.Mutex
	server   *grpc.Server
}

// startBackend starts a backend with a new ledger.
func startBackend(t testing.TB) (*ledger, *backend) {
	t.Helper()
	l := newLedger()
	to := newBackend(t, l)
	to.start(t)
	return l, to
}

// newBackend returns a backend that does not listen yet.
func newBackend(t testing.TB, l *ledger) *backend {
	t.Helper()
	b := &backend{address: collectortest.FreeAddress(t), ledger: l}
	t.Cleanup(b.stop)
	return b
}

func (b *backend) start(t testing.TB) {
	t.Helper()
	var listener net.Listener
	require.Eventually(t, func() bool {
		var err error
		listener, err = net.Listen("tcp", b.address)
		return err == nil
	}, collectortest.StartTimeout, 50*time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server = grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	pprofileotlp.RegisterGRPCServer(b.server, b)
	plogotlp.RegisterGRPCServer(b.server, &logs{ledger: b.ledger})
	server := b.server
	go func() { _ = server.Serve(listener) }()
}

// stop cuts all connections.
func (b *backend) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		b.server.Stop()
		b.server = nil
	}
}

// Export enters a request into the ledger.
func (b *backend) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	n := b.requests.Add(1)
	if b.refuse != nil {
		if err := b.refuse(n); err != nil {
			return pprofileotlp.NewExportResponse(), err
		}
	}
	b.ledger.add(request.Profiles())
	return pprofileotlp.NewExportResponse(), nil
}

type logs struct {
	plogotlp.UnimplementedGRPCServer
	ledger *ledger
}

// Export enters the profiles that log records carry.
func (s *logs) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	s.ledger.add(records.Translate(request.Logs(), records.Options{}).Profiles)
	return plogotlp.NewExportResponse(), nil
}
