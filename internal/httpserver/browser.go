// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
)

// CheckOrigin returns an error if a browser sent the request for a page of another origin, unless allowed has that origin. It has
// patterns as in CORS, where `*` matches any characters. Clients other than browsers send no origin.
func CheckOrigin(r *http.Request, allowed []string) error {
	if http.NewCrossOriginProtection().Check(r) == nil {
		return nil
	}
	origin := r.Header.Get("Origin")
	for _, pattern := range allowed {
		// An origin has slashes only before its host. They are replaced because path.Match treats them specially, and so does
		// it brackets, which an IPv6 address has.
		flat := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "|") }
		if matched, err := path.Match(strings.ReplaceAll(flat(pattern), "[", `\[`), flat(origin)); matched && err == nil {
			return nil
		}
	}
	return fmt.Errorf("pages of another origin (%q) may not send here", origin)
}

// CheckHost returns an error if the request's Host is a name that anybody could make resolve to this machine (DNS
// rebinding). It accepts addresses, names without a dot, which public DNS does not resolve, and the names in allowed.
func CheckHost(r *http.Request, allowed []string) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if !strings.Contains(host, ".") || net.ParseIP(host) != nil ||
		slices.ContainsFunc(allowed, func(name string) bool { return strings.EqualFold(name, host) }) {
		return nil
	}
	return fmt.Errorf("this server is not known as %q", host)
}
