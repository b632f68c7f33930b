// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/senders"
)

func TestReasonOf(t *testing.T) {
	for answer, want := range map[string]string{
		"not a profile\n": "not a profile\n", `{"error":"a \"b\" \u003c"}`: `a "b" <`,
		`{"code":3,"message":"cut he`: "cut he", `{"error":5}`: `{"error":5}`, "": "",
	} {
		assert.Equal(t, want, reasonOf([]byte(answer)))
	}
}

// Who sends is noted with the answer, and who reads is not.
func TestSendersAreNoted(t *testing.T) {
	listener := listen(t)
	server := Start(&http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/noted-refused" {
				http.Error(w, "not a profile", http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte("welcome"))
		})}, listener, Options{})
	t.Cleanup(func() { assert.NoError(t, server.Shutdown(context.Background())) })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for _, request := range []struct{ method, path string }{
		{http.MethodPost, "/noted-refused"}, {http.MethodPost, "/noted"}, {http.MethodPost, "/noted"},
		{http.MethodGet, "/noted-refused"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, "http://"+listener.Addr().String()+request.path,
			strings.NewReader("x"))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	var own []senders.Outcome
	require.Eventually(t, func() bool { // it is noted after the answer
		own = nil
		sum := 0
		for _, o := range senders.Recent(time.Now()) {
			if strings.Contains(o.Endpoint, " :"+port+"/noted") {
				own, sum = append(own, o), sum+o.Count
			}
		}
		return sum == 3
	}, 10*time.Second, time.Millisecond)
	require.Len(t, own, 2)
	assert.Equal(t, senders.Request{Address: "127.0.0.1", Endpoint: "POST :" + port + "/noted-refused", Status: 400},
		own[0].Request)
	assert.Equal(t, "not a profile", own[0].Reason)
	assert.Equal(t, 200, own[1].Status)
	assert.Empty(t, own[1].Reason)
}
