// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/resolved"
)

// CheckOption lets a rule of Check rest.
type CheckOption = resolved.CheckOption

// AllowRepeatedSamples lets several samples of a profile have one identity {stack, attributes, link}.
func AllowRepeatedSamples() CheckOption { return resolved.AllowRepeatedSamples() }

// AllowDuplicates lets a table hold a value twice.
func AllowDuplicates() CheckOption { return resolved.AllowDuplicates() }

// AllowOrphans lets a table hold entries that nothing reaches.
func AllowOrphans() CheckOption { return resolved.AllowOrphans() }

// Check is resolved.Check.
func Check(pd pprofile.Profiles, opts ...CheckOption) error { return resolved.Check(pd, opts...) }

// Render is resolved.Render.
func Render(pd pprofile.Profiles) string { return resolved.Render(pd) }
