// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// output returns the messages that the file exporter has written so far, by service.
func (c *collector) output(t *testing.T) map[string][]pprofile.Profiles {
	t.Helper()
	byService := map[string][]pprofile.Profiles{}
	for _, pd := range readProfiles(t, c.outputDir) {
		service := serviceName(t, pd)
		byService[service] = append(byService[service], pd)
	}
	return byService
}

// readProfiles returns the messages that the file exporter has written to a folder so far.
func readProfiles(t *testing.T, dir string) []pprofile.Profiles {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	var messages []pprofile.Profiles
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		inFile, _ := decodeLines(t, content)
		messages = append(messages, inFile...)
	}
	return messages
}

// decodeLines decodes the complete lines, each a message in OTLP JSON, and returns how many bytes they have.
func decodeLines(t *testing.T, content []byte) (messages []pprofile.Profiles, decoded int64) {
	t.Helper()
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the rest is not written yet
		}
		pd, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles(line)
		require.NoError(t, err)
		messages = append(messages, pd)
		decoded += int64(len(line))
	}
	return messages, decoded
}

// serviceName returns the name of the one service that a message has.
func serviceName(t *testing.T, pd pprofile.Profiles) string {
	t.Helper()
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	name, found := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	require.True(t, found)
	return name.Str()
}
