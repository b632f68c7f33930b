// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	attributes := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, []string{outcomeAccepted, outcomeRefused, outcomeRetry}, attributes["outcome"].Enum)
	assert.Equal(t, []string{droppedInvalid, droppedNegative, droppedTooLarge}, attributes["reason"].Enum)
}
