// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The unit of config/standalone.yaml is that of config/host.yaml without what sampling needs, and with the page's
// profiles beside the queue.
func TestStandalone(t *testing.T) {
	settings := func(path string) (lines []string) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
		return lines
	}
	var want []string
	for _, line := range settings("otelcol-profiles.service") {
		key, _, _ := strings.Cut(line, "=")
		switch key {
		case "AmbientCapabilities", "LimitMEMLOCK":
		case "CapabilityBoundingSet":
			want = append(want, key+"=")
		default:
			want = append(want, line)
		}
	}
	got := settings("otelcol-profiles-standalone.service")
	// A collector that reloads what is not valid ends.
	start := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "ExecStart=") })
	reload := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "ExecReload=") })
	binary, config, _ := strings.Cut(strings.TrimPrefix(got[start], "ExecStart="), " ")
	require.Equal(t, "ExecReload="+binary+" validate "+config, got[reload])
	const out = "Environment=PROFILES_OUT=/var/lib/otelcol-profiles"
	require.Contains(t, got, out)
	assert.Equal(t, want, slices.DeleteFunc(got, func(line string) bool { return line == out }))
}
