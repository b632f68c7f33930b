// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, compact.Tables[:], declared["table"].Enum)
	assert.Equal(t, reasonNames[:], declared["batch_reason"].Enum)
	assert.Equal(t, lossNames[:], declared["loss_reason"].Enum)
	assert.Equal(t, dropNames(), declared["drop_reason"].Enum)
	assert.Equal(t, faultNames(), declared["fault"].Enum)
}

func dropNames() (names []string) {
	for i := range compact.NumDropReasons {
		names = append(names, compact.DropReason(i).String())
	}
	return names
}

func faultNames() (names []string) {
	for i := range compact.NumRepairs {
		names = append(names, compact.Repair(i).String())
	}
	return names
}

func TestReadmeReasons(t *testing.T) {
	var dropped, repaired []string
	for cells := range profiletest.ReadmeTable(t, "README.md", "| `reason` of a dropped sample | |") {
		dropped = append(dropped, strings.Split(cells, "`, `")...)
	}
	for fault := range profiletest.ReadmeTable(t, "README.md", "| `fault` that costs no sample | |") {
		repaired = append(repaired, fault)
	}
	assert.ElementsMatch(t, dropNames(), dropped)
	assert.ElementsMatch(t, faultNames(), repaired)

	text := profiletest.FileBytes(t, "README.md")
	for i := range numReasons {
		assert.Contains(t, string(text), "`"+reason(i).String()+"`")
	}
	for i := range numLosses {
		assert.Contains(t, string(text), "`"+loss(i).String()+"`")
	}
}
