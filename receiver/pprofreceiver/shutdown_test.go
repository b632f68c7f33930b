// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// blockedPipeline accepts nothing. It waits until its context ends, or until the test does.
type blockedPipeline struct {
	entered       chan struct{}
	ignoreContext chan struct{} // nil: the context counts
}

func (*blockedPipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (b *blockedPipeline) ConsumeProfiles(ctx context.Context, _ pprofile.Profiles) error {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	if b.ignoreContext != nil {
		<-b.ignoreContext
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// inTime calls attempt with the time that a shutdown has. How much is enough depends on what else the machine does: if
// it was not, it calls attempt with twice as much.
func inTime(t *testing.T, attempt func(timeout time.Duration) error) {
	t.Helper()
	for timeout := time.Second; ; timeout *= 2 {
		err := attempt(timeout)
		if err == nil {
			return
		}
		require.Less(t, timeout, sourcetest.Patience, "%v", err)
	}
}

// Every source ends in time while the next component hangs: without an error if that component heeds its context, and
// with one otherwise.
func TestShutdownWithABlockedPipeline(t *testing.T) {
	heap := sourcetest.Captured(t, "go-heap.pb.gz")
	site := sourcetest.NewSite(t, sourcetest.Serve(heap))
	address := site.Listener.Addr().String()
	for name, config := range map[string]string{
		"server": serverOnly,
		"remote": fmt.Sprintf("remote: {endpoint: 'http://%s/', initial_delay: 1ms}", address),
		"scrape": fmt.Sprintf(
			"scrape: {configs: [{job_name: j, scrape_interval: 1s, profiles: {process_cpu: {enabled: false}}, static_configs: [{targets: ['%s']}]}]}", address),
		"file": "file: {include: 'FILES/*', initial_delay: 1ms, collection_interval: 1s, after_read: delete}",
		"self": "self: {collection_interval: 20ms}",
	} {
		for _, heeds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, context heeded: %v", name, heeds), func(t *testing.T) {
				inTime(t, func(timeout time.Duration) error {
					// A receiver that could not stop removes its file once the pipeline accepts it.
					files := t.TempDir()
					path := filepath.Join(files, "x.pb.gz")
					require.NoError(t, os.WriteFile(path, heap, 0o600))
					require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
					err := stopWhileBlocked(t, name == "server", strings.ReplaceAll(config, "FILES", files), heeds, timeout)
					assert.FileExists(t, path, "a file that was not accepted is not removed")
					if !heeds {
						require.Error(t, err)
						return nil
					}
					return err
				})
			})
		}
	}
}

// stopWhileBlocked shuts a receiver down while what comes next hangs, and returns the error of that.
func stopWhileBlocked(t *testing.T, isServer bool, config string, heeds bool, timeout time.Duration) error {
	t.Helper()
	blocked := &blockedPipeline{entered: make(chan struct{}, 1)}
	if !heeds {
		blocked.ignoreContext = make(chan struct{})
		defer close(blocked.ignoreContext)
	}
	f := newFixture(t, serverOnly)
	cfg, err := loadConfig(config)
	require.NoError(t, err)
	made, err := newReceiver(f.Set, cfg, blocked)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), sourcetest.Host{}))
	if isServer {
		f.receiver = made
		go func() {
			response, err := http.Post(f.pushURL(), "", bytes.NewReader(sourcetest.Captured(t, "go-heap.pb.gz")))
			if err == nil {
				_ = response.Body.Close()
			}
		}()
		defer http.DefaultClient.CloseIdleConnections()
	}
	<-blocked.entered
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- made.Shutdown(ctx) }()
	select {
	case err = <-stopped:
	case <-time.After(timeout + sourcetest.Patience):
		require.FailNow(t, "it does not stop")
	}
	return err
}

// At shutdown, a slow sender gets an answer that asks for a retry.
func TestShutdownWithASlowSender(t *testing.T) {
	inTime(t, func(timeout time.Duration) error {
		f := newFixture(t, serverOnly)
		require.NoError(t, f.receiver.Start(t.Context(), sourcetest.Host{}))
		server := f.pushServer()
		c, err := net.Dial("tcp", server.Addr().String())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		// Requests of earlier tests may be about to return what they held.
		require.Eventually(t, func() bool { return budget.Process().HeldBytes() == 0 }, sourcetest.Patience, time.Millisecond)
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegin", push.Path)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return budget.Process().HeldBytes() > 0 }, sourcetest.Patience, time.Millisecond)
		if err := f.shutDown(timeout); err != nil {
			return err
		}
		answer := make([]byte, 1000)
		n, err := c.Read(answer)
		require.NoError(t, err)
		assert.Contains(t, string(answer[:n]), "HTTP/1.1 503")
		assert.Contains(t, string(answer[:n]), "Retry-After: 5")
		assert.Contains(t, string(answer[:n]), "the server stops")
		assert.Equal(t, int64(1), f.Sum(sourcetest.MetricRejected, "reason", string(ingest.Stopping)))
		return nil
	})
}

// shutDown stops the receiver in a time.
func (f *fixture) shutDown(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return f.receiver.Shutdown(ctx)
}

// A request that shutdown ends while it is decoded gets an answer that asks for a retry, and counts as one for the
// moment.
func TestShutdownWhileDecoding(t *testing.T) {
	budget.SetMemoryLimit(8 << 30)
	t.Cleanup(func() { budget.SetMemoryLimit(math.MaxInt64) })
	body := worst.Folded["keys and times"](30 << 20) // takes seconds
	inTime(t, func(timeout time.Duration) error {
		f := newFixture(t, serverOnly)
		require.NoError(t, f.receiver.Start(t.Context(), sourcetest.Host{}))
		require.Eventually(t, func() bool { return budget.Process().HeldBytes() == 0 }, sourcetest.Patience, time.Millisecond)
		url := strings.Replace(f.pushURL(), "/v1/pprof", "/v1/profiles", 1)
		answered := make(chan collectortest.Answer, 1)
		go func() {
			answer, _ := collectortest.TryAsk(http.MethodPost, url, bytes.NewReader(body))
			answered <- answer // none if the time was not enough
		}()
		require.Eventually(t, func() bool { return budget.Process().HeldBytes() > int64(len(body)+len(body)/4) },
			sourcetest.Patience, time.Millisecond)
		err := f.shutDown(timeout)
		answer := <-answered
		if err != nil {
			return err
		}
		assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode, answer.Body)
		assert.NotEmpty(t, answer.Header.Get("Retry-After"))
		assert.Contains(t, answer.Body, "the request ended before its payload was decoded")
		assert.Equal(t, int64(1), f.Sum(sourcetest.MetricRejected, "reason", string(ingest.Busy)), answer.Body)
		assert.Zero(t, f.Sum(sourcetest.MetricRejected)-f.Sum(sourcetest.MetricRejected, "reason", string(ingest.Busy)))
		return nil
	})
}
