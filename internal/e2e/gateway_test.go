// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/collector/config/configgrpc" // gzip and zstd: the exporters compress
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pdataiter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// backend is the receiving end: a gRPC server that can be killed, whatever it is doing, and comes back at
// the same address. It remembers what it has answered for.
type backend struct {
	pprofileotlp.UnimplementedGRPCServer
	address string

	mu       sync.Mutex
	server   *grpc.Server
	received []pprofile.Profiles
	// dying lets requests hang until the server is killed: it never answers for them.
	dying chan struct{}
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

func (b *backend) start(t *testing.T) {
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
	b.server = grpc.NewServer(grpc.MaxRecvMsgSize(4 << 20)) // as gRPC servers have it by default
	pprofileotlp.RegisterGRPCServer(b.server, b)
	server := b.server
	go func() { _ = server.Serve(listener) }()
}

// kill waits until a request is under way and cuts all connections. What was answered before has reached the gateway:
// a request of the same connection came after it.
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

// functions counts, for each name of a leaf function, the samples that arrived.
func (b *backend) functions(t *testing.T) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]int{}
	for _, pd := range b.received {
		require.NoError(t, profiletest.Check(pd))
		d := pd.Dictionary()
		for p := range pdataiter.Profiles(pd) {
			for _, s := range p.Samples().All() {
				stack := d.StackTable().At(int(s.StackIndex())).LocationIndices()
				if stack.Len() == 0 {
					continue // the runtime has such in the collector's own profiles
				}
				function := d.LocationTable().At(int(stack.At(0))).Lines().At(0).FunctionIndex()
				counts[d.StringTable().At(int(d.FunctionTable().At(int(function)).NameStrindex()))]++
			}
		}
	}
	return counts
}

// startGateway starts config/gateway.yaml before a backend. It can be started again on the same storage.
func startGateway(t *testing.T, to *backend, storage string) *collector {
	t.Helper()
	endpoint := freeAddress(t)
	// The test's clients send little: batches of a few requests, and tries in quick succession.
	return launchWith(t, endpoint, "", "config/gateway.yaml", []string{
		"--set=processors.dictionary_dedup.timeout=50ms",
		"--set=processors.dictionary_dedup.send_batch_size=100",
		"--set=exporters.otlp_grpc.retry_on_failure.initial_interval=50ms",
		"--set=exporters.otlp_grpc.retry_on_failure.max_interval=200ms",
	}, "OTLP_GRPC_ENDPOINT="+endpoint, "OTLP_HTTP_ENDPOINT="+freeAddress(t), "HEALTH_ENDPOINT="+freeAddress(t),
		"BACKEND_ENDPOINT="+to.address, "GATEWAY_STORAGE="+storage)
}

// agents are clients that send messages, each sample of a function of its own, and note those that were acknowledged.
type agents struct {
	t     *testing.T
	mu    sync.Mutex
	acked map[string]int
	sent  int
}

// send sends from several clients side by side, messages from each.
func (a *agents) send(to *collector, messages int) {
	a.t.Helper()
	connection, err := grpc.NewClient(to.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(a.t, err)
	defer connection.Close()
	client := pprofileotlp.NewGRPCClient(connection)
	var running sync.WaitGroup
	for agent := range 6 {
		running.Go(func() {
			for range messages {
				pd, functions := a.message(agent)
				ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
				_, err := client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
				cancel()
				if err != nil {
					a.t.Errorf("the gateway refused a message: %v", err)
					return
				}
				a.acknowledge(functions)
			}
		})
	}
	running.Wait()
}

func (a *agents) acknowledge(functions []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range functions {
		a.acked[name]++
	}
}

func (a *agents) message(agent int) (pd pprofile.Profiles, functions []string) {
	a.mu.Lock()
	a.sent++
	number := a.sent
	a.mu.Unlock()
	b := profiletest.New().Resource("service.name", fmt.Sprint("service-", agent%3)).
		Scope("agent", "1").Profile("cpu", "nanoseconds").Time(1_700_000_000_000_000_000, 10_000_000_000)
	for i := range 1 + number%20 {
		name := fmt.Sprintf("leaf-%d-%d", number, i)
		functions = append(functions, name)
		b.Sample(profiletest.Value(int64(i+1), name, "shared.handler", "main.main"))
	}
	return b.Build(), functions
}

func (a *agents) requireAll(to *backend) {
	a.t.Helper()
	var got map[string]int
	require.Eventually(a.t, func() bool {
		got = to.functions(a.t)
		return len(got) >= len(a.acked)
	}, startTimeout, 100*time.Millisecond, "every acknowledged sample arrives")
	require.True(a.t, maps.Equal(a.acked, got), "each of the %d samples arrives once", len(a.acked))
}

// TestGatewayLosesNothing sends from several clients through config/gateway.yaml, kills and restarts the receiving end
// meanwhile, then stops the gateway while the receiving end is away, and starts it again.
func TestGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	storage := t.TempDir()
	gateway := startGateway(t, to, storage)
	from := &agents{t: t, acked: map[string]int{}}

	var sending sync.WaitGroup
	sending.Go(func() { from.send(gateway, 150) })
	to.kill(t)
	from.send(gateway, 20)
	to.start(t)
	sending.Wait()
	from.requireAll(to)

	sending.Go(func() { from.send(gateway, 50) })
	to.kill(t)
	sending.Wait()
	gateway.Terminate(t)
	to.start(t)
	gateway = startGateway(t, to, storage)
	from.requireAll(to)
	gateway.Terminate(t)
	t.Logf("%d samples in %d messages arrived in %d", len(from.acked), from.sent, len(to.received))
	require.Less(t, len(to.received), from.sent, "messages were merged")
}
