// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// CheckOption turns off a rule of Check.
type CheckOption = resolved.CheckOption

// AllowRepeatedSamples allows several samples of one identity {stack, attributes, link} in a profile.
func AllowRepeatedSamples() CheckOption { return resolved.AllowRepeatedSamples }

// AllowDuplicates allows a table to have a value twice.
func AllowDuplicates() CheckOption { return resolved.AllowDuplicates }

// AllowOrphans allows a table to have entries that nothing refers to.
func AllowOrphans() CheckOption { return resolved.AllowOrphans }

// Check is resolved.Check.
func Check(pd pprofile.Profiles, opts ...CheckOption) error { return resolved.Check(pd, opts...) }

// Render returns what resolved.Write writes.
func Render(pd pprofile.Profiles) string {
	var b strings.Builder
	_ = resolved.Write(&b, pd) // a builder takes everything
	return b.String()
}
