// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package environment reads what OpenTelemetry's environment variables state, of this process or of another one.
package environment

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
)

// Attribute is an attribute of a resource.
type Attribute struct{ Key, Value string }

// ResourceAttributes reads OTEL_RESOURCE_ATTRIBUTES by the specification: `key=value` pairs, separated by commas and
// percent-encoded. A + stays a +, and a comma at the end is ignored. A malformed pair yields an error; the next pair
// follows.
func ResourceAttributes(s string) iter.Seq2[Attribute, error] {
	return func(yield func(Attribute, error) bool) {
		if strings.TrimSpace(s) == "" {
			return
		}
		for pair := range strings.SplitSeq(strings.TrimSuffix(s, ","), ",") {
			a, err := parse(pair)
			if err != nil {
				err = fmt.Errorf("found %q: %w", pair, err)
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

// Wellformed returns the attributes without the malformed pairs. If a key is there several times, the last one counts.
func Wellformed(s string) (attributes []Attribute) {
	for a, err := range ResourceAttributes(s) {
		if err == nil {
			attributes = append(attributes, a)
		}
	}
	return attributes
}

func parse(pair string) (a Attribute, err error) {
	key, value, found := strings.Cut(pair, "=")
	if !found || strings.TrimSpace(key) == "" {
		return a, errors.New("a key and = are missing")
	}
	if a.Key, err = url.PathUnescape(strings.TrimSpace(key)); err != nil {
		return a, err
	}
	a.Value, err = url.PathUnescape(strings.TrimSpace(value))
	return a, err
}
