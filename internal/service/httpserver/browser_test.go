// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4040}
	network  = &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 4040}
)

// browserRequest is a request with headers, key by key.
func browserRequest(local net.Addr, method, url string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, url, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}

func TestOrigins(t *testing.T) {
	for name, tc := range map[string]struct {
		origin, site string
		allowed      []string
		ok           bool
	}{
		"no browser":           {"", "", nil, true},
		"same origin":          {"http://here:4040", "same-origin", nil, true},
		"old browser, same":    {"http://here:4040", "", nil, true},
		"another origin":       {"http://evil.example", "cross-site", nil, false},
		"another subdomain":    {"http://evil.here", "same-site", nil, false},
		"old browser, another": {"http://evil.example", "", nil, false},
		"a sandboxed page":     {"null", "cross-site", nil, false},
		"allowed":              {"http://app.example", "cross-site", []string{"http://app.example"}, true},
		"allowed by pattern":   {"https://a.b.example", "cross-site", []string{"https://*.example"}, true},
		"allowed by address":   {"http://[::1]:3000", "cross-site", []string{"http://[::1]:3000"}, true},
		"another address":      {"http://[::2]:3000", "cross-site", []string{"http://[::1]:3000"}, false},
		"any port":             {"http://[::1]:3000", "cross-site", []string{"http://[::1]:*"}, true},
		"any":                  {"https://evil.example", "cross-site", []string{"*"}, true},
		"another than allowed": {"https://evil.example", "cross-site", []string{"https://*.good.example", "[", ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := browserRequest(network, http.MethodPost, "http://here:4040/v1/pprof")
			for key, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.site} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			receiver := Browsers{AllowedOrigins: tc.allowed}
			assert.Equal(t, tc.ok, receiver.Check(r) == nil)
		})
	}
}

// A page of another site that made its name resolve to this machine is refused, and other clients reach a receiver by
// any name.
func TestReceiversHosts(t *testing.T) {
	var receiver Browsers
	for host, ok := range map[string]bool{
		"localhost:4040": true, "127.0.0.1:4040": true, "[::1]:4040": true, "evil.example:4040": false, "printer:4040": false,
	} {
		r := browserRequest(loopback, http.MethodPost, "http://"+host+"/v1/pprof", "Origin", "http://"+host)
		assert.Equal(t, ok, receiver.Check(r) == nil, host)
		r.Header.Del("Origin")
		assert.NoError(t, receiver.Check(r), host)
	}
	r := browserRequest(network, http.MethodPost, "http://agent.example:4040/v1/pprof", "Origin",
		"http://agent.example:4040")
	assert.NoError(t, receiver.Check(r))
}

func TestPagesHosts(t *testing.T) {
	page := Browsers{IsPage: true, AllowedHosts: []string{"agent.example"}, Hint: "list it"}
	for host, ok := range map[string]map[net.Addr]bool{
		"localhost:4041": {loopback: true, network: true}, "127.0.0.1:4041": {loopback: true, network: true},
		"[::1]:4041": {loopback: true, network: true}, "10.1.2.3": {loopback: true, network: true},
		"agent.example:4041": {loopback: true, network: true}, "AGENT.example.": {loopback: true, network: true},
		"agent:4041": {loopback: false, network: true}, "evil.example:4041": {}, "127.0.0.1.evil.example": {},
		"localhost.evil.example:80": {}, "": {loopback: true, network: true}, // HTTP/1.0
	} {
		for _, local := range []net.Addr{loopback, network} {
			r := browserRequest(local, http.MethodGet, "http://x/targets")
			r.Host = host
			err := page.Check(r)
			assert.Equal(t, ok[local], err == nil, "%s at %v", host, local)
			if err != nil {
				assert.ErrorContains(t, err, "list it")
			}
		}
	}
}

// Another site's page starts no queries, but may link to the page.
func TestPagesCrossSite(t *testing.T) {
	page := Browsers{IsPage: true, Linked: []string{"/"}}
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	image := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}
	frame := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}
	own := []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}
	for _, tc := range []struct {
		path    string
		headers []string
		ok      bool
	}{
		{"/", link, true}, {"/", frame, false}, {"/", image, false}, {"/api/services", link, false},
		{"/api/services", image, false},
		{"/profiles/shop/cpu", link, false}, {"/services/shop/debug/pprof/profile", image, false},
		{"/api/services", own, true},
		{"/api/services", nil, true}, {"/api/services", []string{"Origin", "http://evil.example"}, false},
	} {
		err := page.Check(browserRequest(loopback, http.MethodGet, "http://localhost:4042"+tc.path, tc.headers...))
		assert.Equal(t, tc.ok, err == nil, "%s %v", tc.path, tc.headers)
	}
}
