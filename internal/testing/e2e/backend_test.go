// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"iter"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/collector/config/configgrpc" // gzip and zstd: the exporters compress
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// backend is a gRPC server at the end of a pipeline. It can be killed at any moment, and started again at the same
// address. It keeps the requests that it has answered.
type backend struct {
	pprofileotlp.UnimplementedGRPCServer
	address string

	mu       sync.Mutex
	server   *grpc.Server
	received []pprofile.Profiles
	// dying is set from the start of kill on: requests get no answer until the server is stopped.
	dying chan struct{}
}

// newBackend returns a backend that does not listen yet. It ends with the test.
func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{address: freeAddress(t)}
	t.Cleanup(func() {
		if b.server != nil {
			b.server.Stop()
		}
	})
	return b
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := newBackend(t)
	b.start(t)
	return b
}

func (b *backend) Export(ctx context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dying != nil {
		select {
		case b.dying <- struct{}{}:
		default:
		}
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return pprofileotlp.NewExportResponse(), ctx.Err()
	}
	pd := pprofile.NewProfiles()
	request.Profiles().CopyTo(pd)
	b.received = append(b.received, pd)
	return pprofileotlp.NewExportResponse(), nil
}

// start listens at the backend's address. options are further ones of the server.
func (b *backend) start(t *testing.T, options ...grpc.ServerOption) {
	t.Helper()
	var listener net.Listener
	require.Eventually(t, func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", b.address)
		return err == nil
	}, startTimeout, 50*time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dying = nil
	b.server = grpc.NewServer(append(options, grpc.MaxRecvMsgSize(4<<20))...) // the default of gRPC servers
	pprofileotlp.RegisterGRPCServer(b.server, b)
	server := b.server
	go func() { _ = server.Serve(listener) }()
}

// kill waits for a request and then cuts all connections. Answers to earlier requests have reached the gateway, because
// that request came after them on the same connection.
func (b *backend) kill(t *testing.T) {
	t.Helper()
	dying := make(chan struct{}, 1)
	b.mu.Lock()
	b.dying = dying
	b.mu.Unlock()
	select {
	case <-dying:
	case <-time.After(startTimeout):
		t.Fatal("no request came to be cut off")
	}
	time.Sleep(300 * time.Millisecond) // for answers that are still on their way
	b.server.Stop()
}

// messages returns the messages that the backend has accepted so far.
func (b *backend) messages() []pprofile.Profiles {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func (b *backend) requireConformant(t *testing.T) {
	t.Helper()
	for _, pd := range b.messages() {
		require.NoError(t, profiletest.Check(pd))
	}
}

// profiles iterates over the profiles of a service that have arrived.
func (b *backend) profiles(service string) iter.Seq[located] {
	return profilesOf(service, b.messages()...)
}

// profilesOf iterates over the profiles of a service.
func profilesOf(service string, messages ...pprofile.Profiles) iter.Seq[located] {
	return func(yield func(located) bool) {
		for p := range profilesIn(messages...) {
			if p.service() == service && !yield(p) {
				return
			}
		}
	}
}

// types returns the sample types of a service that have arrived.
func (b *backend) types(service string) map[string]bool { return sampleTypes(b.profiles(service)) }

// services returns the resource attributes that have arrived, by service.name.
func (b *backend) services() map[string]map[string]any {
	services := map[string]map[string]any{}
	for p := range profilesIn(b.messages()...) {
		if services[p.service()] == nil {
			services[p.service()] = map[string]any{}
		}
		maps.Copy(services[p.service()], p.resource.AsRaw())
	}
	return services
}

func (b *backend) service(name string) map[string]any { return b.services()[name] }

// leaves counts the samples of conformant messages by the name of the leaf function. Samples without a stack do not
// count: the runtime adds some to the collector's own profiles.
func leaves(t *testing.T, messages []pprofile.Profiles) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, pd := range messages {
		require.NoError(t, profiletest.Check(pd))
		for p := range profilesIn(pd) {
			for _, sample := range p.Samples().All() {
				if functions := p.functions(sample); len(functions) > 0 {
					counts[functions[0]]++
				}
			}
		}
	}
	return counts
}

// requireSamples waits until all these samples have arrived, by service, and requires that no others of these services
// have.
func (b *backend) requireSamples(t *testing.T, want map[string]int) {
	t.Helper()
	var got map[string]int
	require.Eventually(t, func() bool {
		got = samplesByService(profilesIn(b.messages()...))
		for service, samples := range want {
			if got[service] < samples {
				return false
			}
		}
		return true
	}, startTimeout, 100*time.Millisecond, "all that was acknowledged arrives: %v", want)
	b.requireConformant(t)
	for service, samples := range want {
		require.Equal(t, samples, got[service], service)
	}
}

// dial returns a client of OTLP profiles over gRPC.
func dial(t testing.TB, address string, options ...grpc.DialOption) pprofileotlp.GRPCClient {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	connection, err := grpc.NewClient(address, options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return pprofileotlp.NewGRPCClient(connection)
}

// export sends a message, and waits for the answer.
func export(client pprofileotlp.GRPCClient, pd pprofile.Profiles) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, err := client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
	return err
}
