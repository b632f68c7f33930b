// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// The server logs a command that works as written.
func TestServerLogsACurlLine(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cpu.pb.gz"), sourcetest.Captured(t, "go-cpu-labels.pb.gz"),
		0o600))
	for name, config := range map[string]string{
		"one address":     serverOnly,
		"all addresses":   "server: {endpoint: ':0'}",
		"a unix socket":   "server: {transport: unix, endpoint: '" + filepath.Join(folder, "s") + "'}",
		"a numeric host":  "server: {endpoint: '127.0.0.1:0'}",
		"a limit on tcp4": "server: {transport: tcp4, endpoint: 'localhost:0'}",
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, config)
			line := f.AwaitLog(1, "ready for profiles")[0].Message
			_, command, _ := strings.Cut(line, ": ")
			shell := exec.Command("sh", "-c", command+" -sS -o answer -w '%{http_code}'")
			shell.Dir = folder
			output, err := shell.CombinedOutput()
			require.NoError(t, err, "%s: %s", command, output)
			assert.Equal(t, "204", string(output))
			assert.Equal(t, "shop", sourcetest.ResourceOf(t, f.Await(1)[0])["service.name"])
			require.NoError(t, os.RemoveAll(filepath.Join(folder, "answer")))
		})
	}
}

// startBlocked starts a receiver whose pipeline closes entered at the first delivery, and then waits for release.
func startBlocked(t *testing.T) (f *fixture, entered, release chan struct{}) {
	t.Helper()
	f = newFixture(t, serverOnly)
	entered, release = make(chan struct{}), make(chan struct{})
	f.Next.Err = func(int) error {
		close(entered)
		<-release
		return nil
	}
	require.NoError(t, f.receiver.Start(t.Context(), sourcetest.Host{}))
	return f, entered, release
}

// A request in progress when Shutdown begins is answered, and its payload reaches the pipeline before Shutdown returns.
func TestServerShutdownFinishesRequests(t *testing.T) {
	f, entered, release := startBlocked(t)

	answered := make(chan int, 1)
	url, body := f.pushURL(), sourcetest.Captured(t, "go-heap.pb.gz")
	go func() {
		defer close(answered)
		code, _, _ := postRaw(t, url, body)
		answered <- code
	}()
	<-entered
	down := make(chan error, 1)
	go func() { down <- f.receiver.Shutdown(context.Background()) }()
	select {
	case err := <-down:
		t.Fatalf("shut down with a request under way: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-down)
	assert.Len(t, f.Next.All(), 1)
	assert.Equal(t, http.StatusNoContent, <-answered)
}

// If a source cannot start, those before it are shut down.
func TestStartIsAllOrNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	f := newFixture(t, "server: {endpoint: '"+taken.Addr().String()+"'}")
	err = f.receiver.Start(t.Context(), sourcetest.Host{})
	assert.ErrorContains(t, err, "start `server`")
	assert.ErrorContains(t, err, "address already in use")

	f = newFixture(t, serverOnly+"file: {include: '*', storage: absent}")
	err = f.receiver.Start(t.Context(), sourcetest.Host{})
	require.ErrorContains(t, err, "start `file`: `storage`: extension \"absent\" is not among the service's extensions")
	_, err = net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(f.pushURL(), "http://"), push.Path))
	assert.Error(t, err, "the server was shut down")
}

// gatekeeper is an authenticator that requires the query key `key`.
type gatekeeper struct {
	component.StartFunc
	component.ShutdownFunc
}

func (gatekeeper) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	if !slices.Equal(sources["key"], []string{"open"}) {
		return ctx, errors.New("who are you?")
	}
	return ctx, nil
}

func TestServerAuthenticates(t *testing.T) {
	id := component.MustNewID("gatekeeper")
	f := newFixture(t, "server: {endpoint: 'localhost:0', auth: {authenticator: gatekeeper, request_params: [key]}}")
	f.start(sourcetest.Host{id: gatekeeper{}})
	body := sourcetest.Captured(t, "go-heap.pb.gz")
	code, _, a := send(t, f.pushURL(), body)
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.Equal(t, "who are you?", a.Error)
	assert.Zero(t, f.Next.Attempts())

	accepted(t, f.pushURL()+"?key=open&service.name=shop", body)
	assert.Equal(t, map[string]any{"service.name": "shop"}, sourcetest.ResourceOf(t, f.Next.All()[0]),
		"the key is not part of the identity")
}
