// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package servicename

import (
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/environment"
)

// FromEnvironment returns the name in OTEL_SERVICE_NAME, or the one in OTEL_RESOURCE_ATTRIBUTES, whose malformed pairs
// it skips. Of several names there the last one counts, as for SDKs. Neither is a name if it is that of an unknown
// service.
func FromEnvironment(serviceName, resourceAttributes string) string {
	if name := Clean(serviceName); !IsUnknown(name) {
		return name
	}
	for _, attribute := range slices.Backward(environment.Wellformed(resourceAttributes)) {
		if name := Clean(attribute.Value); attribute.Key == "service.name" && !IsUnknown(name) {
			return name
		}
	}
	return ""
}

// FromJavaProperty returns the value of the last -Dotel.service.name, which the Java agent reads like
// OTEL_SERVICE_NAME.
func FromJavaProperty(arguments []string) string {
	for _, argument := range slices.Backward(arguments) {
		if name, ok := strings.CutPrefix(argument, "-Dotel.service.name="); ok {
			if name = Clean(name); !IsUnknown(name) {
				return name
			}
		}
	}
	return ""
}
