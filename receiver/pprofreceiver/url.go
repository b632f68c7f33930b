// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redacted stands where a secret stood, as the semantic conventions ask for `url.full`.
const redacted = "REDACTED"

// Query keys whose values are secret: those that the semantic conventions name for `url.full`, and
// words that mark a secret in any other key.
var (
	secretKeys  = []string{"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "sig", "X-Goog-Signature", "key", "auth"}
	secretWords = []string{"token", "secret", "password", "passwd", "signature", "credential", "apikey", "api_key", "api-key", "access_key"}
)

// redactURL renders a URL without its credentials and without its fragment, which is never sent.
// The query keeps its order and spelling.
func redactURL(u *url.URL) string {
	shown := *u
	if shown.User != nil {
		shown.User = url.UserPassword(redacted, redacted)
	}
	shown.Fragment, shown.RawFragment = "", ""
	fields := strings.Split(shown.RawQuery, "&")
	for i, field := range fields {
		key, _, hasValue := strings.Cut(field, "=")
		if name, err := url.QueryUnescape(key); hasValue && (err != nil || isSecret(name)) {
			fields[i] = key + "=" + redacted
		}
	}
	shown.RawQuery = strings.Join(fields, "&")
	return shown.String()
}

func isSecret(key string) bool {
	if slices.ContainsFunc(secretKeys, func(k string) bool { return strings.EqualFold(k, key) }) {
		return true
	}
	lower := strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}

// recordingTime is how long the target records before it answers: `seconds` of the query, or the
// 30 s that Go's net/http/pprof takes for a CPU profile by default.
func recordingTime(u *url.URL) time.Duration {
	const longest = 24 * time.Hour // bounds what the query can make of a timeout
	if asked := u.Query().Get("seconds"); asked != "" {
		seconds, err := strconv.ParseFloat(asked, 64)
		if err != nil || !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	}
	if path.Clean(u.Path) == "/debug/pprof/profile" {
		return 30 * time.Second
	}
	return 0
}

// effectivePort is the port that a request to u goes to.
func effectivePort(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}
