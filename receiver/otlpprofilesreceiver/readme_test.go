// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	otlplayouts "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	var layouts, reasons, faults []string
	for i := range otlplayouts.NumLayouts {
		layouts = append(layouts, otlplayouts.Layout(i).String())
	}
	for i := range otlplayouts.NumDropReasons {
		reasons = append(reasons, otlplayouts.DropReason(i).String())
	}
	for i := range otlplayouts.NumRepairs {
		faults = append(faults, otlplayouts.Repair(i).String())
	}
	assert.Equal(t, layouts, declared["layout"].Enum)
	assert.Equal(t, reasons, declared["reason"].Enum)
	assert.Equal(t, faults, declared["fault"].Enum)
}
