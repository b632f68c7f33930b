// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/page"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// receiver keeps what is sent to it by any protocol.
type receiver struct {
	pprofileotlp.UnimplementedGRPCServer

	mu       sync.Mutex
	profiles []pprofile.Profiles
	tokens   []string
	// answer is the status of the next answers; 0 means success.
	answer func(n int) (httpCode int, grpcCode codes.Code)
	n      int
	// partial is the number of the message that is rejected in part.
	partial int
}

func (r *receiver) next(token string) (int, codes.Code) {
	r.n++
	r.tokens = append(r.tokens, token)
	if r.answer == nil {
		return http.StatusOK, codes.OK
	}
	return r.answer(r.n)
}

func (r *receiver) Export(
	ctx context.Context, request pprofileotlp.ExportRequest,
) (pprofileotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	if _, code := r.next(strings.Join(md.Get("token"), "")); code != codes.OK {
		return pprofileotlp.NewExportResponse(), status.Error(code, "not today")
	}
	r.profiles = append(r.profiles, request.Profiles())
	return pprofileotlp.NewExportResponse(), nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	code, _ := r.next(request.Header.Get("token"))
	if code/100 != 2 {
		http.Error(w, "not today", code)
		return
	}
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	data, _ := io.ReadAll(body)
	if request.URL.Path != "/v1development/profiles" || request.Header.Get(pprofileotlp.DevelopmentVersionHeader) != "1" {
		http.Error(w, "the version of profiles is missing", http.StatusBadRequest)
		return
	}
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.profiles = append(r.profiles, pd)
	response := pprofileotlp.NewExportResponse()
	if r.n == r.partial {
		response.PartialSuccess().SetRejectedProfiles(1)
		response.PartialSuccess().SetErrorMessage("one was bad")
	}
	text, _ := response.MarshalProto()
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(text)
}

// listen serves r by both protocols, and returns the endpoints.
func (r *receiver) listen(t *testing.T) (grpcEndpoint, httpEndpoint string) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	return listener.Addr().String(), web.URL
}

func TestSend(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var r receiver
			endpoint, web := r.listen(t)
			if protocol != protocolGRPC {
				endpoint = web
			}
			send := func(args ...string) result {
				return run(t, nil, append([]string{
					"send", "--protocol", protocol, "--endpoint", endpoint, "--resource", "service.name=shop", "--resource",
					"region=eu",
					"--header", "token=secret",
				}, args...)...)
			}
			before := time.Now()
			got := send("--retime", "--repeat", "2", "--interval", "1ms", goCPU)
			require.Equal(t, exitOK, got.code, got.log)
			assert.Equal(t, "2 messages accepted, 0 not\n", got.log)
			assert.Equal(t, []string{"secret", "secret"}, r.tokens)
			require.Len(t, r.profiles, 2)
			rp := r.profiles[0].ResourceProfiles().At(0)
			assert.Equal(t, map[string]any{"service.name": "shop", "region": "eu"}, rp.Resource().Attributes().AsRaw())
			first, second := rp.ScopeProfiles().At(0).Profiles().At(0),
				r.profiles[1].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
			assert.WithinRange(t, unixTime(uint64(first.Time())+first.DurationNano()), before, time.Now())
			assert.Greater(t, second.Time(), first.Time())
			assert.NotEqual(t, first.ProfileID(), second.ProfileID())
			assert.NotEqual(t, first.ProfileID(),
				r.profiles[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(1).ProfileID())

			r.answer = func(n int) (int, codes.Code) {
				if n == 3 {
					return http.StatusServiceUnavailable, codes.Unavailable
				}
				return http.StatusOK, codes.OK
			}
			got = send("--compression", "none", "--repeat", "2", "--interval", "0", goCPU)
			assert.Equal(t, exitFound, got.code)
			assert.Regexp(t,
				`go-cpu-labels.pb.gz: not accepted: (Unavailable|503 Service Unavailable): not today\n1 message accepted, 1 not\n$`, got.log)
			if protocol == protocolHTTP {
				r.partial = 6
				got = send("--repeat", "3", "--interval", "0", goCPU)
				assert.Equal(t, exitFound, got.code)
				assert.Contains(t, got.log, "1 profile rejected: one was bad")
			}
		})
	}
}

// The error of a port that speaks the other protocol names it, if the port's answer is read before the connection ends.
func TestSendByAnotherProtocol(t *testing.T) {
	grpcEndpoint, endpoint := new(receiver).listen(t)
	assert.Contains(t, run(t, nil, "send", "--endpoint", endpoint, goCPU).log, "--protocol otlp_http\n")
	assert.Eventually(t, func() bool {
		log := run(t, nil, "send", "--protocol", protocolHTTP, "--endpoint", grpcEndpoint, goCPU).log
		return strings.Contains(log, "--protocol otlp_grpc\n")
	}, 30*time.Second, time.Millisecond)
}

// OTLP's port is the default.
func TestSendWithoutAPort(t *testing.T) {
	for endpoint, want := range map[string]string{"host": "host:4317", "http://host/": "host:4317", "[::1]": "[::1]:4317",
		"host:80": "host:80", "https://host": "host"} {
		c := &clientConfig{protocol: protocolGRPC, endpoint: endpoint}
		s, err := c.connect()
		require.NoError(t, err)
		assert.Equal(t, want, strings.TrimPrefix(s.(*grpcSender).conn.Target(), "dns:///"), endpoint)
		s.close()
	}
}

// TestSendByTLS trusts the authorities of --ca-file, or anybody.
func TestSendByTLS(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var r receiver
			web := httptest.NewUnstartedServer(&r)
			if protocol == protocolGRPC {
				server := grpc.NewServer()
				pprofileotlp.RegisterGRPCServer(server, &r)
				web.Config.Handler = server
			}
			web.EnableHTTP2 = true
			web.StartTLS()
			t.Cleanup(web.Close)
			trusted := write(t, "ca.pem",
				string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
			send := func(args ...string) result {
				return run(t, nil, append([]string{"send", "--protocol", protocol, "--endpoint", web.URL, goCPU}, args...)...)
			}
			got := send("--ca-file", trusted)
			assert.Equal(t, exitOK, got.code, got.log)
			got = send("--insecure-skip-verify")
			assert.Equal(t, exitOK, got.code, got.log)
			assert.Equal(t, exitFound, send("--timeout", "2s").code)
			assert.Equal(t, exitFailed, send("--ca-file", "missing.pem").code)
			assert.Equal(t, 2, r.n)
		})
	}
}

// TestSendAsItIs sends times as they were.
func TestSendAsItIs(t *testing.T) {
	var r receiver
	endpoint, _ := r.listen(t)
	require.Equal(t, exitOK, run(t, nil, "send", "--endpoint", endpoint, goCPU).code)
	assert.Equal(t, uint64(1795174188297516326),
		uint64(r.profiles[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Time()))
	got := run(t, nil, "send", "--endpoint", "127.0.0.1:1", "--timeout", "5s", goCPU)
	assert.Equal(t, exitFound, got.code)
	assert.Contains(t, got.log, "connection refused")
	got = run(t, nil, "send", "--endpoint", "ftp://x", goCPU)
	assert.Equal(t, exitFailed, got.code)
}

func TestServe(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), tool, "serve", "--endpoint", "127.0.0.1:0", goCPU,
		write(t, "old.folded", "main;work 10\n"), goHeap)
	url := started(t, cmd, `open (http://\S+)/ `)
	get := func(path string) string {
		answer := collectortest.Ask(t, http.MethodGet, url+path, http.NoBody)
		require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
		return answer.Body
	}
	assert.Contains(t, get("/"), "<html")
	var profiles struct {
		Profiles []struct{ Service, Profile string }
	}
	require.NoError(t, json.Unmarshal([]byte(get("/api/profiles")), &profiles))
	seen := map[string]bool{}
	for _, p := range profiles.Profiles {
		seen[p.Service+" "+p.Profile] = true
	}
	assert.Equal(t, map[string]bool{"go-cpu-labels process_cpu": true, "go-heap memory": true, "old process_cpu": true},
		seen)
	assert.Contains(t, get("/profiles/go-cpu-labels/process_cpu.collapsed"), "main.fib")
	assert.Equal(t, "main;work 10\n", get("/profiles/old/process_cpu.collapsed"))

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "an interrupt is how it ends")
}

// A reader that never reads is cut, and what it held is free again.
func TestServeCutsSlowReaders(t *testing.T) {
	names := slices.Repeat([]string{strings.Repeat("x", 1000)}, 20_000)
	kept := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 10})
	now := time.Now()
	require.NotZero(t, kept.Add(profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Sample(profiletest.Value(1, names...)).Build(), now).Profiles)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- serve(ctx, &terminal{log: io.Discard}, listener, api.Settings{
			Store: kept.Querier, Page: page.Files, Limits: query.Limits{MaxConcurrent: 1, Timeout: time.Minute},
			ReadTimeout: 500 * time.Millisecond,
		})
	}()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(connection, "GET /profiles/shop/process_cpu.collapsed HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return budget.Queries().HeldBytes() > 10<<20 }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return budget.Queries().HeldBytes() == 0 }, 20*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func TestLoad(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var r receiver
			endpoint, web := r.listen(t)
			if protocol != protocolGRPC {
				endpoint = web
			}
			got := run(t, nil, "load", "--protocol", protocol, "--endpoint", endpoint, "--services", "3", "--types", "2",
				"--rate", "50", "--duration", "1200ms", "--samples", "20")
			require.Equal(t, exitOK, got.code, got.log)
			assert.Regexp(t, `(?m)^accepted +[1-9]\d? messages`, got.out)
			assert.Regexp(t, `(?m)^refused +0 messages`, got.out)
			assert.Regexp(t, `(?m)^latency p99 +[\d.]+(ms|s|µs)$`, got.out)
			assert.Contains(t, got.log, " accepted  0 refused ")
			services := map[string]int{}
			for _, pd := range r.profiles {
				services[profilekind.Service(pd.ResourceProfiles().At(0).Resource().Attributes())]++
			}
			assert.Len(t, services, 3)
			assert.Contains(t, services, "load-0002")
		})
	}
	r := receiver{answer: func(int) (int, codes.Code) { return http.StatusTooManyRequests, codes.ResourceExhausted }}
	endpoint, _ := r.listen(t)
	got := run(t, nil, "load", "--endpoint", endpoint, "--rate", "0", "--duration", "200ms")
	assert.Equal(t, exitFound, got.code)
	assert.Regexp(t, `(?m)^\d+ times +ResourceExhausted: not today$`, got.out)
	slow := receiver{answer: func(int) (int, codes.Code) {
		time.Sleep(100 * time.Millisecond)
		return http.StatusOK, codes.OK
	}}
	endpoint, _ = slow.listen(t)
	got = run(t, nil, "load", "--endpoint", endpoint, "--rate", "200", "--connections", "1", "--duration", "700ms",
		"--samples", "5")
	assert.Equal(t, exitOK, got.code, got.log)
	assert.Regexp(t, `(?m)^rate +\d+\.\d/s of 200\.0/s: the answers were too slow for --connections 1$`, got.out)
	got = run(t, nil, "load", "--types", "99", "--rate", "-1")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.log, "--types must be at most")
	assert.Contains(t, got.log, "--rate must not be negative")
}

// TestGenerated checks what load sends.
func TestGenerated(t *testing.T) {
	for _, g := range loadTypes {
		pd := g.generate(300)
		require.Equal(t, 1, pd.ResourceProfiles().Len())
		assert.InDelta(t, 300, pd.SampleCount(), 30)
		otlp := profiletest.Marshal(t, pd)
		assert.Contains(t, must(t, "stats", write(t, "x.otlp", string(otlp))), "1 profile,")
	}
}

func TestPercentiles(t *testing.T) {
	c := newLoadCounts()
	assert.Zero(t, c.percentile(50))
	for i := 1; i <= 1000; i++ {
		c.add(time.Duration(i) * time.Millisecond)
	}
	for percent, want := range map[float64]time.Duration{50: 500 * time.Millisecond, 99: 990 * time.Millisecond,
		100: time.Second} {
		assert.InEpsilon(t, want, c.percentile(percent), 0.001)
	}
	c.add(1000 * time.Hour)
	assert.InEpsilon(t, maxLatency, c.percentile(100), 0.001)
}
