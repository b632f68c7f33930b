// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Browsers is the rule by which a server refuses requests that a page of another site makes a browser send. Start
// applies it to every request. Clients other than browsers send neither Origin nor Sec-Fetch-Site.
type Browsers struct {
	// AllowedOrigins are the origins whose pages may send here. They have patterns as in CORS, where `*` matches any
	// characters.
	AllowedOrigins []string
	// IsPage reports that browsers read here, too. Then a request without an origin must have a known host.
	IsPage bool
	// AllowedHosts are the hosts that a server of pages is known by, besides addresses and localhost, and names without a
	// dot where it does not listen on a loopback address.
	AllowedHosts []string
	// Hint tells what to configure if a host is not allowed.
	Hint string
	// Linked are the paths to which links of other sites may lead.
	Linked []string
	// Refuse answers a request that is refused; nil answers with the error's message.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// Check returns an error if a browser may not send a request here. The status is 403.
func (b *Browsers) Check(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if matchesOrigin(origin, b.AllowedOrigins) {
		return nil
	}
	if isCrossSite(r) && !b.isLink(r) {
		return fmt.Errorf(
			"pages of another origin (%q) may not send here: list the origin in `cors.allowed_origins` if they should", origin)
	}
	// Whoever controls a name can make it resolve to this machine (DNS rebinding): such a page is of the same origin.
	if (b.IsPage || origin != "") && !b.isKnown(r) {
		return errors.New(strings.TrimRight(fmt.Sprintf("this server is not known as %q: %s", hostOf(r), b.Hint), ": "))
	}
	return nil
}

// isCrossSite reports whether a browser sends the request for a page of another origin, also if it only reads.
func isCrossSite(r *http.Request) bool {
	writing := *r
	writing.Method = http.MethodPost
	return new(http.CrossOriginProtection).Check(&writing) != nil
}

// isLink reports whether somebody follows a link to a page.
func (b *Browsers) isLink(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" &&
		slices.Contains(b.Linked, r.URL.Path)
}

// isKnown reports whether the request's Host can only be this server.
func (b *Browsers) isKnown(r *http.Request) bool {
	host := hostOf(r)
	// A browser always sends a Host. Health checks by HTTP/1.0 need not.
	if host == "" || host == "localhost" || net.ParseIP(host) != nil ||
		slices.ContainsFunc(b.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return false
	}
	// Receivers are reached by names that they do not know. Pages are not, but a name without a dot is one of the own
	// network.
	return !b.IsPage || !strings.Contains(host, ".")
}

// hostOf returns the request's host without its port.
func hostOf(r *http.Request) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), "."))
}

func matchesOrigin(origin string, allowed []string) bool {
	// An origin has slashes only before its host. They are replaced because path.Match treats them specially, and so does
	// it brackets, which an IPv6 address has.
	flat := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "|") }
	return origin != "" && slices.ContainsFunc(allowed, func(pattern string) bool {
		matched, _ := path.Match(strings.ReplaceAll(flat(pattern), "[", `\[`), flat(origin))
		return matched
	})
}
