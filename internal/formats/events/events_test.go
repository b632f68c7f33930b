// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"ok":                                "ok",
		"ok" + strings.Repeat("\x80", 70e3): "ok\uFFFD",
		strings.Repeat("ä", 40):             strings.Repeat("ä", 25),
		strings.Repeat("a\xff", 40):         strings.Repeat("a\uFFFD", 12) + "a",
	} {
		var b events.Builder
		b.Reset(events.Options{MaxStringBytes: 51})
		assert.Equal(t, want, b.CleanString(text), "%.10q", text)
		assert.Equal(t, len(text) > 51, b.Stats.Truncated == 1)
		assert.Equal(t, strings.Contains(want, "\uFFFD"), b.Stats.InvalidUTF8 == 1)
	}
}
