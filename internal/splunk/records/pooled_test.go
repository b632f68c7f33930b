// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

func requestOfStack(attributes func(resource pcommon.Map)) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	attributes(rl.Resource().Attributes())
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Attributes().PutStr(KeySourceType, ProfilingName)
	record.Attributes().PutStr(keyFormat, FormatText.String())
	record.Attributes().PutStr(keyType, "cpu")
	record.Body().SetStr("\"main\" #1\n\n\tat f(x.go:1)\n")
	return ld
}

// Every attribute of a resource and of a record arrives, or is counted.
func TestAttributesAreCounted(t *testing.T) {
	const repeats = 10_000
	long := strings.Repeat("long", 1024)
	ld := requestOfStack(func(m pcommon.Map) {
		m.PutStr("service.name", "shop")
		deep := m.PutEmptySlice("deep")
		for range 100 {
			deep = deep.AppendEmpty().SetEmptySlice()
		}
	})
	record := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	for i := range repeats {
		record.PutStr(fmt.Sprint("short", i), "short")
		record.PutStr(fmt.Sprint("long", i), long)
	}
	sent := 2 + record.Len() - 3 // without those that tell what the record is
	result := Translate(ld, Options{})
	require.Empty(t, result.Rejected)
	arrived := result.Profiles.ResourceProfiles().At(0).Resource().Attributes().Len() +
		result.Profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).AttributeIndices().Len()
	counted := 0
	for _, n := range result.Attributes {
		counted += n
	}
	assert.Equal(t, 1, result.Attributes[compact.RepairAttributeDepth])
	assert.Positive(t, result.Attributes[compact.RepairAttributeExpansion])
	assert.Equal(t, sent, arrived+counted)
}

// A translation ends wherever the Meter does, and says so.
func TestTranslateEnds(t *testing.T) {
	errFull := errors.New("full")
	ld := requestOfStack(func(pcommon.Map) {})
	calls := 0
	for allowed := 0; ; allowed++ {
		calls = 0
		result := Translate(ld, Options{Meter: &size.Meter{Reserve: func(int) error {
			if calls++; calls > allowed {
				return errFull
			}
			return nil
		}}})
		if calls <= allowed {
			require.NoError(t, result.Err)
			require.Equal(t, 1, result.Samples)
			break
		}
		require.Equal(t, Result{Err: errFull}, result)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Translate(ld, Options{Meter: &size.Meter{Context: ctx}}).Err, context.Canceled)
}
