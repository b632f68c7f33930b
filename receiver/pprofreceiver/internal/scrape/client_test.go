// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// Credentials reach the target, and are not visible anywhere else.
func TestScrapeCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*promconfig.HTTPClientConfig)
		want http.Header
	}{
		"basic_auth": {
			func(c *promconfig.HTTPClientConfig) {
				c.BasicAuth = &promconfig.BasicAuth{Username: "me", Password: "hunter2"}
			},
			http.Header{"Authorization": {"Basic bWU6aHVudGVyMg=="}},
		},
		"authorization": {
			func(c *promconfig.HTTPClientConfig) {
				c.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: "hunter2"}
			},
			http.Header{"Authorization": {"Bearer hunter2"}},
		},
		"http_headers": {
			func(c *promconfig.HTTPClientConfig) {
				c.HTTPHeaders = &promconfig.Headers{
					Headers: map[string]promconfig.Header{"X-Key": {Secrets: []promconfig.Secret{"hunter2"}}}}
			},
			http.Header{"X-Key": {"hunter2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := sourcetest.Captured(t, "go-heap.pb.gz")
			elsewhere := sourcetest.NewSite(t, sourcetest.Serve(good))
			site := sourcetest.NewSite(t, func(w http.ResponseWriter, r *http.Request) {
				for key, values := range tc.want {
					if r.Header.Get(key) != values[0] {
						http.Error(w, "who are you?", http.StatusUnauthorized)
						return
					}
				}
				switch r.URL.Path {
				case "/here":
					http.Redirect(w, r, "/memory", http.StatusFound)
				case "/away":
					http.Redirect(w, r, elsewhere.URL+"/memory", http.StatusFound)
				default:
					_, _ = w.Write(good)
				}
			})
			f := newFixture(t, 0, func(c *targets.Config) { tc.edit(&c.HTTPClient) })
			f.begin(scrapeTargetOf(t, site.URL, "/memory", "/here", "/away"))
			f.eventually(func() bool {
				return f.endpoint(0, "memory").State == stateUp && f.endpoint(0, "here").State == stateUp &&
					f.endpoint(0, "away").State == stateDown
			})
			assert.Contains(t, f.endpoint(0, "away").Error, "redirects to another scheme, host or port")
			assert.Zero(t, elsewhere.Requests.Load(), "credentials do not reach another host")
		})
	}
}

// Redirects are followed within the target's own origin, or not at all: a target must not lead the collector to
// addresses that only the collector can reach.
func TestScrapeRedirects(t *testing.T) {
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	elsewhere := sourcetest.NewSite(t, sourcetest.Serve(good))
	referers := make(chan string, 1000)
	site := sourcetest.NewSite(t, byPath(map[string]http.HandlerFunc{
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/memory", http.StatusFound)
		},
		"/here": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/memory", http.StatusFound) },
		"/memory": func(w http.ResponseWriter, r *http.Request) {
			select {
			case referers <- r.Header.Get("Referer"):
			default:
			}
			_, _ = w.Write(good)
		},
		"/circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) },
	}))
	f := newFixture(t, 0, nil).begin(scrapeTargetOf(t, site.URL, "/away", "/here?token=hunter2", "/circle"))
	f.eventually(func() bool {
		return f.endpoint(0, "away").State == stateDown && f.endpoint(0, "here").State == stateUp &&
			f.endpoint(0, "circle").State == stateDown
	})
	assert.Empty(t, <-referers)
	assert.Contains(t, f.endpoint(0, "away").Error, "another scheme, host or port")
	assert.Contains(t, f.endpoint(0, "circle").Error, "in a loop")
	assert.Zero(t, elsewhere.Requests.Load())

	f = newFixture(t, 0, func(c *targets.Config) { c.HTTPClient.FollowRedirects = false })
	f.begin(scrapeTargetOf(t, site.URL, "/away"))
	f.eventually(func() bool { return f.endpoint(0, "away").State == stateDown })
	assert.Contains(t, f.endpoint(0, "away").Error, "status 302")
}

func TestScrapeTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(sourcetest.Serve(sourcetest.Captured(t, "go-heap.pb.gz")))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one client refuses the certificate
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(block), 0o600))

	f := newFixture(t, 0, func(c *targets.Config) { c.HTTPClient.TLSConfig.CAFile = authority })
	f.begin(scrapeTargetOf(t, server.URL, "/memory"))
	assert.Equal(t, 4, f.Await(1)[0].ProfileCount())

	f = newFixture(t, 0, nil).begin(scrapeTargetOf(t, server.URL, "/memory"))
	f.eventually(func() bool { return f.endpoint(0, "memory").State == stateDown })
	assert.Contains(t, f.endpoint(0, "memory").Error, "certificate")
	assert.Empty(t, f.Next.All())

	// A faulty configuration is an error at the start, which names the job.
	f = newFixture(t, 0, func(c *targets.Config) { c.HTTPClient.TLSConfig.CAFile = "/nowhere" })
	err := f.scraper.Start(t.Context(), sourcetest.Host{})
	require.Error(t, err)
	assert.True(t, strings.HasPrefix(err.Error(), `job "shop": `), err)
}
