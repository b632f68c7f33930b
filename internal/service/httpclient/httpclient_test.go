// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

func newClient(t *testing.T) *Client {
	c := &Client{
		Config: confighttp.NewDefaultClientConfig(), Telemetry: componenttest.NewNopTelemetrySettings(),
		UserAgent: UserAgent(component.BuildInfo{Command: "otelcol-profiles", Version: "1.2.3"}), MaxRetryAfter: time.Minute,
	}
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(c.Shutdown)
	return c
}

func TestPost(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(strings.Repeat("\xff", 2*MaxAnswerBytes)))
	}))
	defer server.Close()
	header := http.Header{"X-Own": {"1"}}
	address := strings.Replace(server.URL, "://", "://user:pa55word@", 1)
	answer, err := newClient(t).Post(t.Context(), address, header, []byte("body"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(got.UserAgent(), "otelcol-profiles/1.2.3 ("), got.UserAgent())
	assert.Equal(t, "1", got.Header.Get("X-Own"))
	assert.Equal(t, http.Header{"X-Own": {"1"}}, header, "read only")
	assert.False(t, answer.IsAccepted())
	assert.Equal(t, time.Minute, answer.RetryAfter, "capped")
	assert.Len(t, answer.Body, MaxAnswerBytes)
	assert.Less(t, len(answer.Error()), 8*MaxMessageBytes)
	assert.Contains(t, answer.Error(), "answered 503 Service Unavailable")
	assert.NotContains(t, answer.Error(), "pa55word")
}

// A page of a login answers 200, although nobody has the data.
func TestRedirectToAPageIsARefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/push" {
			http.Redirect(w, r, "/login", http.StatusFound)
		}
	}))
	defer server.Close()
	answer, err := newClient(t).Post(t.Context(), server.URL+"/push", nil, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusFound, answer.Status)
	assert.False(t, answer.IsAccepted())
}

// A server says the same again if it is asked again.
func TestRedirectElsewhereIsPermanent(t *testing.T) {
	for _, location := range []string{"http://elsewhere.example/push", "/push"} {
		server := httptest.NewServer(http.RedirectHandler(location, http.StatusPermanentRedirect))
		defer server.Close()
		_, err := newClient(t).Post(t.Context(), server.URL+"/push", nil, nil)
		require.ErrorContains(t, err, "the server redirects", location)
		assert.True(t, consumererror.IsPermanent(err), location)
	}
}

// A page with a login, or of an address that is not the server's, has the status of success.
func TestAPageIsARefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.WriteString(w, "<html>Log in</html>")
	}))
	defer server.Close()
	c := newClient(t)
	for content, isAccepted := range map[string]bool{"text/html; charset=utf-8": false, "text/plain": true} {
		a, err := c.Post(t.Context(), server.URL, http.Header{"Content-Type": {content}}, nil)
		require.NoError(t, err)
		assert.Equal(t, isAccepted, a.IsAccepted(), content)
		assert.Equal(t, !isAccepted, strings.Contains(a.Error(), "web page"), content)
	}
}

func TestWithoutAnswer(t *testing.T) {
	c := newClient(t)
	_, err := c.Post(t.Context(), "http://user:pa55word@localhost:1", nil, nil)
	require.Error(t, err)
	assert.False(t, consumererror.IsPermanent(err))
	assert.NotContains(t, err.Error(), "pa55word")
	_, err = c.Post(t.Context(), "http://user:pa55word@\x00", nil, nil)
	require.Error(t, err)
	assert.True(t, consumererror.IsPermanent(err))
	assert.NotContains(t, err.Error(), "pa55word")
}
