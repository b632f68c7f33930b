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
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
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

// Translators are used again and again: what one request has repeated must not count for the next, and nothing of it is
// kept.
func TestTranslatorForgets(t *testing.T) {
	shared := strings.Repeat("x", 1024) // as a processor that inserts a configured value shares it
	for name, valueOf := range map[string]func(text string) string{
		"the same text":  func(string) string { return shared },
		"distinct texts": func(text string) string { return text + shared },
	} {
		t.Run(name, func(t *testing.T) {
			profiletest.RequireForgets(t, 0, func(text string) string {
				ld := requestOfStack(func(m pcommon.Map) { m.PutStr("deployment", valueOf(text)) })
				ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().
					SetStr(fmt.Sprintf("%q #1\n\n\tat %s(x.go:1)\n", text, text))
				result := Translate(ld, Options{})
				require.Empty(t, result.Rejected)
				resource := result.Profiles.ResourceProfiles().At(0).Resource()
				return fmt.Sprint(result.Samples, result.Attributes, result.Dropped, resource.Attributes().Len())
			})
		})
	}
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

// requestOfOTLP is a request of one sender, with two records whose bodies are OTLP.
func requestOfOTLP(sender string) plog.Logs {
	ld := plog.NewLogs()
	for range 2 {
		pd := profiletest.New().Resource("service.name", sender).Profile("samples", "count").Time(1000, 10).
			Sample(profiletest.Value(7, "main", sender)).Build()
		encoder := NewEncoder(pd, EncodeOptions{Format: FormatOTLP})
		for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
			part.Logs.ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
		}
	}
	return ld
}

// A request that ends early, at any look at its meter and in any way, leaves nothing behind for the next one.
func TestEndedRequestsLeaveNothing(t *testing.T) {
	marshaler := pprofile.JSONMarshaler{}
	for allowed, ended := 0, true; ended; allowed++ {
		ended = false
		for _, end := range []func() error{func() error { return context.Canceled }, func() error { panic("a fault of the reader") }} {
			looks := 0
			meter := &size.Meter{Reserve: func(int) error {
				if looks++; looks <= allowed {
					return nil
				}
				ended = true
				return end()
			}}
			func() {
				defer func() { _ = recover() }()
				Translate(requestOfOTLP("another sender"), Options{Meter: meter})
			}()
			next := Translate(requestOfOTLP("shop"), Options{})
			require.NoError(t, next.Err)
			require.Equal(t, 2, next.Samples, "after %d looks", allowed)
			text, err := marshaler.MarshalProfiles(next.Profiles)
			require.NoError(t, err)
			require.NotContains(t, string(text), "another sender", "after %d looks", allowed)
		}
	}
}
