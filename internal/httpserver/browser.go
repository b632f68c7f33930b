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

// CheckOrigin returns an error for a request that a page of another origin makes a browser send, unless allowed (the
// patterns of CORS' allowed origins, with `*` for any characters) has that origin. What is no browser has no origin.
func CheckOrigin(r *http.Request, allowed []string) error {
	if http.NewCrossOriginProtection().Check(r) == nil {
		return nil
	}
	origin := r.Header.Get("Origin")
	for _, pattern := range allowed {
		// A slash in an origin stands before its host only, so that path.Match may see each as one character.
		flat := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "|") }
		if matched, err := path.Match(flat(pattern), flat(origin)); matched && err == nil {
			return nil
		}
	}
	return fmt.Errorf("pages of another origin (%q) may not send here", origin)
}

// CheckHost returns an error for a request whose Host is a name that anybody could make resolve to this machine (DNS
// rebinding). Addresses, names without a dot, which no public DNS answers for, and the names in allowed are fine.
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
