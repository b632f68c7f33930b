// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A function without a name keeps having none on the way through log records, although a record of Splunk's agents with
// one is read as an anonymous function.
func TestFunctionsWithoutAName(t *testing.T) {
	unnamed := pt.Stack("leaf", "main")
	unnamed[0].Lines[0].Function = pt.Function{File: "a.js"}
	sample := pt.Observed([]uint64{start}, "leaf")
	sample.Stack = unnamed
	pd := pt.New().Resource("service.name", "shop").Scope(ProfilingName, "").
		Profile("samples", "count").Period(50_000_000, "cpu", "nanoseconds").Time(start, 50_000_000).Sample(sample).Build()
	ld, _ := records(t, pd, EncodeOptions{Format: FormatPprof})
	assert.NoError(t, pt.Equal(asSent(pd), withoutIDs(translated(t, ld, Options{}).Profiles)))
	plain := plog.NewLogs()
	ld.CopyTo(plain)
	eachRecord(plain, func(record plog.LogRecord) {
		record.Attributes().RemoveIf(func(key string, _ pcommon.Value) bool { return key == keySampleType })
	})
	got := translated(t, plain, Options{}).Profiles
	assert.Contains(t, pt.Render(got), "(anonymous) a.js")
}
