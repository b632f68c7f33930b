// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package processesreceiver

import (
	"context"
	"runtime"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
)

// unavailable is the receiver on other systems.
type unavailable struct{ set receiver.Settings }

func newReceiver(set receiver.Settings, _ *Config, _ xconsumer.Profiles) (component.Component, error) {
	return unavailable{set}, nil
}

// Start logs that nothing will be read.
func (u unavailable) Start(context.Context, component.Host) error {
	u.set.Logger.Warn("processes can be read only on Linux on amd64 and arm64, and this is " + runtime.GOOS + " on " +
		runtime.GOARCH +
		": take the receiver `processes` out of the configuration")
	return nil
}

// Shutdown does nothing.
func (unavailable) Shutdown(context.Context) error { return nil }
