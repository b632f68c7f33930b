// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestBrowsers starts each configuration, and sends to each of its ports what a page of another site makes a browser
// send. The servers of the Collector's own health check and metrics are not this project's.
func TestBrowsers(t *testing.T) {
	if os.Getenv("LIMITS") == "" {
		t.Skip("`make test` runs this after the build")
	}
	all := slices.Clone(configurations)
	files, err := filepath.Glob(filepath.Join(collectortest.Repository, "config", "backends", "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		all = append(all, shipped{config: "config/backends/" + filepath.Base(file), goMiB: 400})
	}
	for _, c := range all {
		if c.doors.discovery || c.doors.metrics || len(c.env) > 0 {
			continue // the ports of another one
		}
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			r := newSiege(t, c)
			r.node.start(t)
			stock := map[string]bool{r.node.health: true, r.node.metrics: true}
			found := 0
			for _, address := range r.node.Listening(t) {
				if stock[address] {
					continue
				}
				found++
				for name, header := range map[string]map[string]string{
					"another site's page":  {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
					"of an old browser":    {"Origin": "https://evil.example"},
					"without credentials":  {"Origin": "null"},
					"an image or a script": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
					"a name that was rebound": {"Origin": "http://evil.example", "Host": "evil.example",
						"Sec-Fetch-Site": "same-origin"},
					"a rebound name, and port": {"Origin": "http://evil.example:4040", "Host": "evil.example:4040"},
				} {
					for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
						for _, path := range []string{"/v1/profiles", "/", "/api/services", "/mcp",
							"/querier.v1.QuerierService/ProfileTypes"} {
							status, isHTTP := ask(t, address, method, path, header)
							assert.True(t, !isHTTP || status == http.StatusForbidden, "%s: %s %s from %s: %d", address, method, path, name,
								status)
						}
					}
				}
			}
			// The doors of TestLimits are those of this configuration: a port that is not found would not be asked.
			d := c.doors
			for address, is := range map[string]bool{
				r.node.pprof: d.push > 0, r.node.otlpHTTP: d.otlp > 0, r.node.hec: d.hec, r.node.page: d.page,
			} {
				if !is {
					continue
				}
				_, isHTTP := ask(t, address, http.MethodGet, "/v1/profiles", nil)
				assert.True(t, isHTTP, "%s listens", address)
			}
			t.Logf("%d ports", found)
			assert.True(t, found > 0 || d.kafka, "nothing listens")
		})
	}
}

// ask sends a request over HTTP/1.1, which is what browsers send without TLS. isHTTP is false if the port has another
// protocol.
func ask(t *testing.T, address, method, path string, header map[string]string) (status int, isHTTP bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, http.NoBody)
	require.NoError(t, err)
	for key, value := range header {
		if key == "Host" {
			request.Host = value
		} else {
			request.Header.Set(key, value)
		}
	}
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(20*time.Second)))
	require.NoError(t, request.Write(connection))
	response, err := http.ReadResponse(bufio.NewReader(connection), request)
	if err != nil {
		return 0, false // gRPC begins with a frame of HTTP/2
	}
	defer response.Body.Close()
	return response.StatusCode, true
}
