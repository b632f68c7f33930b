// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package servicename finds a service's name in what is known about a process: its arguments (interpreter.go), the
// user's own rules (rules.go), its environment (environment.go). It is pure: strings in, a name or "" out.
package servicename

import (
	"strings"
	"unicode"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// MaxBytes bounds a name.
const MaxBytes = 255

// Clean makes a name from an untrusted string: at most MaxBytes of UTF-8 without control characters or spaces around
// it.
func Clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(dictionary.CutUTF8(name, MaxBytes), "\ufffd"))
	return strings.TrimSpace(dictionary.CutUTF8(name, MaxBytes))
}

// IsUnknown reports whether a name is the one that SDKs set if they know none.
func IsUnknown(name string) bool {
	return name == "" || strings.HasPrefix(name, kind.UnknownService)
}
