// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Messages have about the size that is asked for, or less.
func TestProfiles(t *testing.T) {
	const size = 64 << 10
	for name, wire := range Profiles.All(size) {
		assert.Greater(t, len(wire), size/8, name)
		assert.LessOrEqual(t, len(wire), size+size/2, name)
	}
}

// Inputs have about the size that is asked for, unless theirs is fixed, and are the same each time.
func TestInputs(t *testing.T) {
	const size = 64 << 10
	for group, inputs := range map[string]Inputs{
		"PProf": PProf, "SplunkPProf": SplunkPProf, "V8": V8, "GoTrace": GoTrace, "JFR": JFR, "JFRLabels": JFRLabels,
		"Perf": Perf, "Folded": Folded, "OTLP": OTLP, "OTLPJSON": OTLPJSON, "Logs": Logs, "LogsJSON": LogsJSON,
		"HEC": HEC, "PushV1": PushV1, "PushV1JSON": PushV1JSON, "History": {"0": History(0)},
		"TraceEvents": TraceEvents, "TorchMemory": TorchMemory,
	} {
		for name, data := range inputs.All(size) {
			assert.Equal(t, data, inputs[name](size), "%s: %s", group, name)
			assert.LessOrEqual(t, len(data), size+size/4+32<<10, "%s: %s", group, name)
			if larger := inputs[name](2 * size); len(larger) != len(data) {
				assert.Greater(t, len(data), size/4, "%s: %s", group, name)
				assert.Greater(t, len(larger), len(data), "%s: %s", group, name)
			}
		}
	}
}
