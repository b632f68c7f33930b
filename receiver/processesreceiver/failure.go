// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processesreceiver

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/goheap"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/hotspot"
)

// reason is why a process could not be profiled, as the metric's attribute names it.
type reason string

// The reasons.
const (
	switchedOff    reason = "switched_off"    // a Go program that records nothing
	unsupported    reason = "unsupported"     // a version or an architecture that is not known
	permission     reason = "permission"      // the collector lacks rights
	malformed      reason = "malformed"       // memory, files or answers that are not as they should be
	changing       reason = "changing"        // memory that changed each time that it was read
	tooLarge       reason = "too_large"       // above a limit
	timeout        reason = "timeout"         // a JVM that did not answer
	attachDisabled reason = "attach_disabled" // a JVM that nobody may attach to
	noRecorder     reason = "no_recorder"     // a JVM without Flight Recorder, or one that cannot write
	busy           reason = "busy"            // no room in the budget
	refused        reason = "refused"         // the pipeline did not accept it
	other          reason = "other"
)

var reasons = []reason{
	switchedOff, unsupported, permission, malformed, changing, tooLarge, timeout, attachDisabled, noRecorder, busy,
	refused, other,
}

// refusal is an error of the pipeline.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// reasonOf returns the reason of an error.
func reasonOf(err error) reason {
	for _, known := range []struct {
		target error
		why    reason
	}{
		{goheap.ErrUnsupported, unsupported},
		{hotspot.ErrUnsupported, unsupported},
		{hotspot.ErrDisabled, attachDisabled},
		{hotspot.ErrNoAnswer, timeout},
		{hotspot.ErrNoRecorder, noRecorder},
		{hotspot.ErrMalformed, malformed},
		{goheap.ErrChanging, changing},
		{goheap.ErrTooManyBuckets, tooLarge},
		{budget.ErrBusy, busy},
		{size.ErrFull, tooLarge},
		{scan.ErrTooLarge, tooLarge},
		{events.ErrTooLarge, tooLarge},
		{symbols.ErrTooLarge, tooLarge},
		{symbols.ErrTooMuchWork, tooLarge},
		{fs.ErrPermission, permission},
		{goheap.ErrMalformed, malformed},
		{goheap.ErrUnreadable, malformed},
		{symbols.ErrMalformed, malformed},
		{os.ErrDeadlineExceeded, timeout},
		{context.DeadlineExceeded, timeout},
	} {
		if errors.Is(err, known.target) {
			return known.why
		}
	}
	if _, ok := errors.AsType[*goheap.OffError](err); ok {
		return switchedOff
	}
	if _, ok := errors.AsType[refusal](err); ok {
		return refused
	}
	return other
}

// isForNow reports whether the collector had no room for a profile, or the pipeline refused it temporarily. The process
// is not at fault, and the next attempt covers the profile.
func isForNow(err error) bool {
	why := reasonOf(err)
	return why == busy || why == refused && !otlpstatus.IsPermanent(err)
}

// The values of a metric's attribute `runtime`.
type runtimeName string

const (
	runtimeGo      runtimeName = "go"
	runtimeJava    runtimeName = "java"
	runtimeUnknown runtimeName = "unknown"
)

var runtimes = []runtimeName{runtimeGo, runtimeJava, runtimeUnknown}
