// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package eks replaces the detector of Amazon's EKS in the collector. The Collector's service imports it, but uses it
// only to describe its own telemetry, and it needs 70 packages of Kubernetes' client.
package eks

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/sdk/resource"
)

// NewResourceDetector returns a detector that reports that it is not there.
func NewResourceDetector() resource.Detector { return detector{} }

type detector struct{}

func (detector) Detect(context.Context) (*resource.Resource, error) {
	return nil, errors.New(
		"otelcol-profiles does not have the detector `aws.eks` for its own telemetry: use `host`, `container` or attributes")
}
