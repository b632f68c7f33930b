// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"iter"
	"net/url"
	"strings"
)

// ResourceAttributes reads OTEL_RESOURCE_ATTRIBUTES: `key=value` with percent encoding, separated by commas. It skips
// malformed pairs.
func ResourceAttributes(s string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for pair := range strings.SplitSeq(s, ",") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				continue
			}
			key, keyErr := url.PathUnescape(strings.TrimSpace(key))
			value, valueErr := url.PathUnescape(strings.TrimSpace(value))
			if keyErr == nil && valueErr == nil && key != "" && !yield(key, value) {
				return
			}
		}
	}
}

// FromEnvironment returns the name in OTEL_SERVICE_NAME, or the one in OTEL_RESOURCE_ATTRIBUTES.
func FromEnvironment(serviceName, resourceAttributes string) string {
	if name := Clean(serviceName); name != "" {
		return name
	}
	for key, value := range ResourceAttributes(resourceAttributes) {
		if key == "service.name" && Clean(value) != "" {
			return Clean(value)
		}
	}
	return ""
}

// FromJavaProperty returns the value of -Dotel.service.name, which the Java agent reads like OTEL_SERVICE_NAME.
func FromJavaProperty(arguments []string) string {
	for _, argument := range arguments {
		if name, ok := strings.CutPrefix(argument, "-Dotel.service.name="); ok {
			return Clean(name)
		}
	}
	return ""
}
