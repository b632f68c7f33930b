// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// sendFunc sends one request. It returns nil if the request was acknowledged.
type sendFunc func(ctx context.Context, sender string, request int) error

// traffic is a number of senders. Each sends its requests one after the other, and repeats a request until it is
// acknowledged, as the clients of profilers should.
type traffic struct {
	ledger *ledger
	stop   context.CancelFunc
	done   sync.WaitGroup
	// pause is the time between two requests of a sender, timeout how long it waits for an answer.
	pause, timeout time.Duration
}

// startTraffic starts so many senders for each function. They end with the test, or with end.
func startTraffic(t testing.TB, l *ledger, senders int, sendFuncs map[string]sendFunc) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	tr := &traffic{ledger: l, stop: stop, pause: 20 * time.Millisecond, timeout: 10 * time.Second}
	generation := generations.Add(1)
	for name, send := range sendFuncs {
		for i := range senders {
			tr.done.Go(func() { tr.run(ctx, fmt.Sprintf("%s-%d-%d", name, generation, i), send) })
		}
	}
	t.Cleanup(tr.end)
	return tr
}

// generations makes the names of senders differ from one call of startTraffic to the next.
var generations atomic.Int64

func (tr *traffic) run(ctx context.Context, sender string, send sendFunc) {
	for request := 0; ctx.Err() == nil; {
		tr.ledger.sending(sender, request)
		attempt, cancel := context.WithTimeout(ctx, tr.timeout)
		err := send(attempt, sender, request)
		cancel()
		if err == nil {
			tr.ledger.acknowledge(sender, request)
			request++
		}
		select {
		case <-ctx.Done():
		case <-time.After(tr.pause):
		}
	}
}

// end stops the senders, and cancels the requests that are under way.
func (tr *traffic) end() {
	tr.stop()
	tr.done.Wait()
}

// requireDelivered stops the senders, waits until all that was acknowledged has arrived, and stops the nodes.
func (tr *traffic) requireDelivered(t testing.TB, by repeats, nodes ...*node) {
	t.Helper()
	tr.end()
	tr.ledger.requireDelivered(t, by)
	for _, n := range nodes {
		n.requireEnds(t)
	}
}

// requireAcknowledged waits until this many more samples have been acknowledged. It fails if there are none for a
// while.
func (l *ledger) requireAcknowledged(t testing.TB, more int) {
	t.Helper()
	last, since := l.acknowledgedSoFar(), time.Now()
	for wanted := last + more; last < wanted; time.Sleep(50 * time.Millisecond) {
		if now := l.acknowledgedSoFar(); now > last {
			last, since = now, time.Now()
		}
		require.Less(t, time.Since(since), deliveryTimeout, "senders get no answers")
	}
}

// waitUntilStuck waits until no request has been acknowledged for a while: all senders wait, or are refused.
func (l *ledger) waitUntilStuck(t testing.TB, quiet time.Duration) {
	t.Helper()
	last, since := -1, time.Now()
	require.Eventually(t, func() bool {
		if now := l.acknowledgedSoFar(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet
	}, 2*deliveryTimeout, 50*time.Millisecond, "the senders are never stuck")
}

var httpClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

func post(ctx context.Context, url, contentType string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", response.Status, answer)
	}
	return nil
}

// pushes sends pprof to the push receiver. padding is the number of bytes by which a request is made larger.
func pushes(address string, padding int) sendFunc {
	return func(ctx context.Context, sender string, request int) error {
		url := "http://" + address + "/v1/pprof?service.name=" + sender
		return post(ctx, url, "application/octet-stream", pprofBody(sender, request, padding))
	}
}

// exports sends OTLP profiles over gRPC. It reconnects quickly.
func exports(t testing.TB, address string, padding int) sendFunc {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2,
			MaxDelay: 500 * time.Millisecond}, MinConnectTimeout: time.Second}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	client := pprofileotlp.NewGRPCClient(connection)
	return func(ctx context.Context, sender string, request int) error {
		response, err := client.Export(ctx, otlpRequest(sender, request, padding))
		if err == nil && response.PartialSuccess().RejectedProfiles() > 0 {
			err = fmt.Errorf("refused in part: %s", response.PartialSuccess().ErrorMessage())
		}
		return err
	}
}

// otlpPosts sends OTLP profiles over HTTP.
func otlpPosts(address string, padding int) sendFunc {
	return func(ctx context.Context, sender string, request int) error {
		body, err := otlpRequest(sender, request, padding).MarshalProto()
		if err != nil {
			return err
		}
		return post(ctx, "http://"+address+"/v1development/profiles", "application/x-protobuf", body)
	}
}

// events sends HEC events of Splunk's agents.
func events(address string, padding int) sendFunc {
	return func(ctx context.Context, sender string, request int) error {
		event, err := json.Marshal(map[string]any{
			"event": base64.StdEncoding.EncodeToString(pprofBody(sender, request, padding)), "sourcetype": "otel.profiling",
			"time": 1_700_000_000, "fields": map[string]string{
				"service.name": sender, "profiling.data.format": "pprof-gzip-base64", "profiling.data.type": "allocation",
			},
		})
		if err != nil {
			return err
		}
		return post(ctx, "http://"+address+"/services/collector/event", "application/json", event)
	}
}

func otlpRequest(sender string, request, padding int) pprofileotlp.ExportRequest {
	b := profiletest.New().Resource("service.name", sender).Scope("chaos", "1").
		Profile("samples", "count").Time(1_700_000_000_000_000_000, 1_000_000_000)
	for i := range samplesPerRequest {
		b.Sample(profiletest.Value(1, "leaf", "main.handler", "main.main").With(
			profiletest.Attr(sampleKey, sampleID(sender, request, i)),
			profiletest.Attr("padding", randomText(padding/samplesPerRequest))))
	}
	return pprofileotlp.NewExportRequestFromProfiles(b.Build())
}

func pprofBody(sender string, request, padding int) []byte {
	leaf := &profile.Function{ID: 1, Name: "leaf", Filename: "main.go"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: leaf, Line: 1}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}, TimeNanos: 1_700_000_000_000_000_000,
		Location: []*profile.Location{location}, Function: []*profile.Function{leaf},
	}
	for i := range samplesPerRequest {
		p.Sample = append(p.Sample, &profile.Sample{
			Location: []*profile.Location{location}, Value: []int64{1},
			Label: map[string][]string{
				sampleKey: {sampleID(sender, request, i)}, "padding": {randomText(padding / samplesPerRequest)},
			},
		})
	}
	var raw, body bytes.Buffer
	if err := p.WriteUncompressed(&raw); err != nil {
		panic(err) // a buffer takes everything
	}
	w, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	_, _ = w.Write(raw.Bytes())
	_ = w.Close()
	return body.Bytes()
}

// randomText returns text that occurs only once, so that dictionaries cannot share it.
func randomText(n int) string {
	var text strings.Builder
	for text.Len() < n {
		fmt.Fprintf(&text, "%016x", rand.Uint64())
	}
	return text.String()[:n]
}
