// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// A resource, its scope and a record can have attributes of one name. The resource's is the field, and others are
// counted.
func TestAttributesOfOneName(t *testing.T) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("region", "eu")
	rl.Resource().Attributes().PutStr("host.name", "web-1")
	rl.Resource().Attributes().PutStr("profiling.data.format", "mine")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().Attributes().PutStr("region", "eu")
	record := sl.LogRecords().AppendEmpty()
	record.Attributes().PutStr("region", "us")
	record.Attributes().PutStr("host.name", "db-1")
	record.Attributes().PutStr("profiling.data.format", "text")
	record.Attributes().PutStr("own", "kept")
	body, leftOut, err := Write(ld, 0)
	require.NoError(t, err)
	var got event
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "web-1", got.Host)
	require.Equal(t, map[string]any{"region": "eu", "profiling.data.format": "text", "own": "kept"}, got.Fields)
	require.Equal(t, 3, leftOut)
}
