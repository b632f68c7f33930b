// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "go.opentelemetry.io/collector/featuregate"

// profilesGate lets the Collector's service run pipelines of profiles. It is alpha and off by default upstream.
const profilesGate = "service.profilesSupport"

// init runs after the service package has registered the gate and before main parses the flags, so that
// `--feature-gates=-service.profilesSupport` still turns profiles off.
func init() {
	// Set can only fail once the gate is gone from the service: profiles need no gate then, and nothing is to be done.
	_ = featuregate.GlobalRegistry().Set(profilesGate, true)
}
