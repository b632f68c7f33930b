// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package ec2 replaces the detector of Amazon's EC2 in the collector. The Collector's service imports it, but uses it
// only to describe its own telemetry, and it needs 94 packages of Amazon's SDK.
package ec2

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
		"otelcol-profiles does not have the detector `aws.ec2` for its own telemetry: use `host`, `container` or attributes")
}
