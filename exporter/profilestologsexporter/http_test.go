// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Each status means the same as to the stock exporters, except for those that mean "no profiles here".
func TestHTTPStatuses(t *testing.T) {
	for _, tc := range []struct {
		status  int
		message string
		// asLogs expects a switch, retried another try as profiles; otherwise the batch is refused permanently.
		asLogs, retried bool
	}{
		{status: 404, asLogs: true},
		{status: 405, asLogs: true},
		{status: 415, asLogs: true},
		{status: 501, asLogs: true},
		{status: 400, message: "proto: cannot unmarshal", asLogs: true},
		{status: 400, message: "unsupported profiles version", asLogs: true},
		{status: 400, message: "the tenant is missing"},
		{status: 401},
		{status: 403},
		{status: 413},
		{status: 500},
		{status: 429, retried: true},
		{status: 502, retried: true},
		{status: 503, retried: true},
		{status: 504, retried: true},
	} {
		t.Run(http.StatusText(tc.status)+tc.message, func(t *testing.T) {
			b := &inbox{}
			e := runExporter(t, map[string]any{"http": httpServer(t, b, func(w http.ResponseWriter, n int) bool {
				if tc.retried && n > 1 {
					return false
				}
				http.Error(w, tc.message, tc.status)
				return true
			})})
			if !tc.asLogs && !tc.retried {
				err := e.ConsumeProfiles(t.Context(), batch("x", 5))
				require.ErrorContains(t, err, tc.message, "the log says what the peer said")
				assert.True(t, consumererror.IsPermanent(err))
				assert.Equal(t, 1, b.asked)
				assert.Zero(t, b.logsSeen)
				return
			}
			e.send(t, batch("x", 5), batch("y", 2))
			asLogs := b.requireOnce(t, batch("x", 5), batch("y", 2))
			if tc.asLogs {
				assert.Equal(t, 7, asLogs)
				want := 1
				if tc.status == 400 {
					want = 2 // a probe asks again
				}
				assert.Equal(t, want, b.asked)
				assert.Equal(t, int64(1), e.metric(t, "switches"))
			} else {
				assert.Zero(t, asLogs)
				assert.Equal(t, 3, b.asked)
			}
		})
	}
}

// While the peer accepts records, a recheck that is refused for another reason costs nothing.
func TestRecheckRefused(t *testing.T) {
	b := &inbox{}
	e := runExporter(t,
		map[string]any{"recheck_interval": "1ms", "http": httpServer(t, b, func(w http.ResponseWriter, n int) bool {
			w.WriteHeader([]int{404, 403}[min(n-1, 1)])
			return true
		})})
	e.send(t, batch("x", 1))
	time.Sleep(2 * time.Millisecond)
	e.send(t, batch("y", 1))
	assert.Equal(t, 2, b.requireOnce(t, batch("x", 1), batch("y", 1)))
	assert.Equal(t, 2, b.asked)
	assert.Equal(t, int64(1), e.metric(t, "mode"))
}

// TestMalformedProfile sends one profile that a peer cannot read among others that it can.
func TestMalformedProfile(t *testing.T) {
	for _, message := range []string{"unsupported sample type", "proto: cannot unmarshal"} {
		b := &inbox{}
		e := runExporter(t, map[string]any{"http": httpServer(t, b, func(w http.ResponseWriter, n int) bool {
			if n == 2 {
				http.Error(w, message, http.StatusBadRequest)
			}
			return n == 2
		})})
		e.send(t, batch("x", 5))
		err := e.ConsumeProfiles(t.Context(), batch("bad", 1))
		require.ErrorContains(t, err, message)
		assert.True(t, consumererror.IsPermanent(err))
		e.send(t, batch("y", 2))
		assert.Equal(t, 4, b.asked)
		b.profiles = slices.Delete(b.profiles, 1, 2) // the probe
		assert.Zero(t, b.requireOnce(t, batch("x", 5), batch("y", 2)), "nothing goes out as log records")
		assert.Zero(t, e.metric(t, "switches"))
	}
}

// TestProbeRefusedForTheMoment has a peer that cannot read a message, and is too busy to answer the probe: the message
// is sent again.
func TestProbeRefusedForTheMoment(t *testing.T) {
	b := &inbox{}
	e := runExporter(t, map[string]any{"http": httpServer(t, b, func(w http.ResponseWriter, n int) bool {
		if n <= 2 {
			http.Error(w, "unsupported sample type", []int{http.StatusBadRequest, http.StatusServiceUnavailable}[n-1])
		}
		return n <= 2
	})})
	e.send(t, batch("x", 5))
	assert.Zero(t, b.requireOnce(t, batch("x", 5)), "nothing goes out as log records")
	assert.Equal(t, 3, b.asked)
	assert.Zero(t, e.metric(t, "switches"))
}

// TestHTTPClientSettings sends as a client of the configuration does: with its headers and its compression.
func TestHTTPClientSettings(t *testing.T) {
	b := &inbox{}
	config := httpServerOf(t, b, func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		assert.Equal(t, "checkout", r.Header.Get("X-Team"))
		assert.Empty(t, r.Header.Get("Content-Encoding"))
		return false
	})
	config["headers"], config["compression"] = map[string]any{"X-Team": "checkout"}, "none"
	e := runExporter(t, map[string]any{"http": config})
	e.send(t, batch("x", 5))
	b.requireOnce(t, batch("x", 5))
}

// TestProbe checks that the probe is a conformant profile.
func TestProbe(t *testing.T) {
	require.NoError(t, profiletest.Check(newProbe()))
	assert.Less(t, sizeOf(newProbe()), 1000)
}

// TestPeerWithoutAnyService gets the same answer for profiles and for log records, as from a proxy that knows no route:
// nothing is switched.
func TestPeerWithoutAnyService(t *testing.T) {
	b := &inbox{}
	e := runExporter(t,
		map[string]any{"http": httpServerOf(t, b, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.NotFound(w, r)
			return true
		})})
	err := e.ConsumeProfiles(t.Context(), batch("x", 5))
	require.ErrorContains(t, err, "/v1development/profiles")
	require.ErrorContains(t, err, "/v1/logs")
	assert.True(t, consumererror.IsPermanent(err))
	assert.Zero(t, e.metric(t, "switches"))
}

// TestSecretsStayHidden sends to an address with a password, and looks for it in logs and errors.
func TestSecretsStayHidden(t *testing.T) {
	const secret = "pa55word"
	hide := func(address string) string { return strings.Replace(address, "://", "://user:"+secret+"@", 1) }
	for _, code := range []int{400, 403, 404, 413, 429, 500, 503, 0} {
		for _, section := range []string{"http", "hec"} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			t.Cleanup(server.Close)
			peer := map[string]any{"endpoint": hide(server.URL) + "?api_key=" + secret}
			if section == "hec" {
				peer["token"] = "x"
			}
			if code == 0 {
				server.Close() // a connection that is refused
			}
			e := runExporter(t, map[string]any{section: peer, "retry_on_failure": map[string]any{"enabled": false}})
			err := e.ConsumeProfiles(t.Context(), batch("x", 5))
			require.Error(t, err)
			assert.NotContains(t, err.Error(), secret)
			for _, entry := range e.log.All() {
				assert.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), secret)
			}
		}
	}
	_, err := load(map[string]any{"http": map[string]any{"endpoint": "//user:" + secret + "@backend"}})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), secret)
}
