// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import "net/http"

// RedirectError is of a redirect that is not followed. The server would say the same again.
type RedirectError string

func (e RedirectError) Error() string { return "the server redirects " + string(e) }

// SameOriginOnly is a CheckRedirect that follows redirects within the server's own origin. A redirect to another one
// could send credentials in configured headers to a stranger, or lead the collector to addresses that only the
// collector can reach.
func SameOriginOnly(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
		return RedirectError("to another scheme, host or port")
	case len(via) >= 10: // as http.Client
		return RedirectError("in a loop")
	}
	// Referer repeats the query, which may hold a secret.
	next.Header.Del("Referer")
	return nil
}

// KeepMethod is SameOriginOnly for clients that send data: it does not follow a redirect that would turn a POST into a
// GET, as to the page of a login. Such a page answers 200, although nobody has the data.
func KeepMethod(next *http.Request, via []*http.Request) error {
	if next.Method != via[0].Method {
		return http.ErrUseLastResponse
	}
	return SameOriginOnly(next, via)
}
