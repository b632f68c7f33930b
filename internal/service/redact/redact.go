// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps secrets out of logs, errors and pages: URL and RawURL render a URL without its credentials, URLs
// those in a text, Error redacts the URL in an error of an HTTP client, and IsSecret reports whether the value of a
// query key is secret.
package redact

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Placeholder replaces a secret, as the semantic conventions require for `url.full`.
const Placeholder = "REDACTED"

// Query keys whose values are secret: those that the semantic conventions name for `url.full`, and words that mark a
// secret in any other key.
var (
	secretKeys = []string{"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "sig", "X-Goog-Signature", "key",
		"auth"}
	secretWords = []string{"token", "secret", "password", "passwd", "signature", "credential", "apikey", "api_key",
		"api-key", "access_key"}
)

// URL renders a URL without its credentials, without the values of secret query keys, and without its fragment, which
// is never sent. The query keeps its order and spelling.
func URL(u *url.URL) string {
	shown := *u
	if shown.User != nil {
		shown.User = url.UserPassword(Placeholder, Placeholder)
	}
	if shown.Opaque != "" { // as in mailto:user:password@host
		shown.Opaque = Placeholder
	}
	shown.Fragment, shown.RawFragment = "", ""
	fields := strings.Split(shown.RawQuery, "&")
	for i, field := range fields {
		key, _, hasValue := strings.Cut(field, "=")
		if name, err := url.QueryUnescape(key); hasValue && (err != nil || IsSecret(name)) {
			fields[i] = key + "=" + Placeholder
		}
	}
	shown.RawQuery = strings.Join(fields, "&")
	return shown.String()
}

// RawURL renders a URL that is not parsed yet. If it cannot be parsed, RawURL returns only the Placeholder.
func RawURL(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || (u.Host == "" && strings.Contains(rawURL, "@")) {
		return Placeholder
	}
	return URL(u)
}

// URLs renders each URL in a text as RawURL does, and returns the rest of the text as it is. If there are very many, it
// returns only the Placeholder.
func URLs(text string) string {
	const maxURLs = 16 // each takes as long as the text
	if strings.Count(text, "://") > maxURLs {
		return Placeholder
	}
	isScheme := func(r rune) bool { // with a colon, as in jdbc:mysql://
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+.:-", r)
	}
	// The last one first: it may be in the query of another.
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], "://")
		if at < 0 {
			return text
		}
		end = len(strings.TrimRightFunc(text[:at], isScheme))
		found, rest := text[end:], ""
		// A URL ends at a space or a quote, unless that may be in a password, before an @, or in a value of its query.
		if stop := strings.IndexAny(found, "? \t\r\n\""); stop >= 0 && found[stop] != '?' &&
			!strings.Contains(found[stop:], "@") {
			found, rest = found[:stop], found[stop:]
		}
		text = text[:end] + RawURL(found) + rest
	}
}

// Error returns err without the secrets of the URL that an HTTP client puts into its errors. Errors that wrap the
// client's error are dropped, since their text repeats the URL; errors.Is and errors.As still find the errors inside.
func Error(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%s %s: %w", strings.ToLower(failed.Op), RawURL(failed.URL), Error(failed.Err))
}

// IsSecret reports whether the value of a query key is secret.
func IsSecret(key string) bool {
	if slices.ContainsFunc(secretKeys, func(k string) bool { return strings.EqualFold(k, key) }) {
		return true
	}
	lower := strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}
