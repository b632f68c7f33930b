// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Rest returns the records that have nothing to do with profiling, with their resources and scopes, in their order.
// It is ld itself where that has no others; else a copy, and ld is only read.
func Rest(ld plog.Logs) plog.Logs {
	if !anyProfiling(ld) {
		return ld
	}
	rest := plog.NewLogs()
	for _, rl := range ld.ResourceLogs().All() {
		if hasSourceType(rl.Resource().Attributes()) {
			continue
		}
		var toResource plog.ResourceLogs
		started := false
		for _, sl := range rl.ScopeLogs().All() {
			if !anyOther(sl) {
				continue
			}
			if !started {
				started = true
				toResource = rest.ResourceLogs().AppendEmpty()
				rl.Resource().CopyTo(toResource.Resource())
				toResource.SetSchemaUrl(rl.SchemaUrl())
			}
			copyOthers(sl, toResource.ScopeLogs().AppendEmpty())
		}
	}
	return rest
}

// BodyBytes is the size of all bodies of profiling records.
func BodyBytes(ld plog.Logs) (n int) {
	for _, rl := range ld.ResourceLogs().All() {
		ofResource := hasSourceType(rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			inherited := ofResource || sl.Scope().Name() == ProfilingName
			for _, log := range sl.LogRecords().All() {
				if !isProfiling(inherited, log) {
					continue
				}
				switch body := log.Body(); body.Type() {
				case pcommon.ValueTypeStr:
					n += len(body.Str())
				case pcommon.ValueTypeBytes:
					n += body.Bytes().Len()
				}
			}
		}
	}
	return n
}

func anyProfiling(ld plog.Logs) bool {
	for _, rl := range ld.ResourceLogs().All() {
		ofResource := hasSourceType(rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			inherited := ofResource || sl.Scope().Name() == ProfilingName
			for _, log := range sl.LogRecords().All() {
				if isProfiling(inherited, log) {
					return true
				}
			}
		}
	}
	return false
}

func anyOther(sl plog.ScopeLogs) bool {
	if sl.Scope().Name() == ProfilingName {
		return false
	}
	for _, log := range sl.LogRecords().All() {
		if !isProfiling(false, log) {
			return true
		}
	}
	return false
}

func copyOthers(from, to plog.ScopeLogs) {
	from.Scope().CopyTo(to.Scope())
	to.SetSchemaUrl(from.SchemaUrl())
	for _, log := range from.LogRecords().All() {
		if !isProfiling(false, log) {
			log.CopyTo(to.LogRecords().AppendEmpty())
		}
	}
}
