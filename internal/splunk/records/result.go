// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// Reason is why a record was rejected. Its String is the value of a metric's attribute.
type Reason uint8

// The reasons for which a record that claims to be profiling is rejected. Other records of the request are read.
const (
	// ReasonFormat is a data format that is not known.
	ReasonFormat Reason = iota
	// ReasonType is a data type that is neither cpu nor allocation.
	ReasonType
	// ReasonEmpty is a record without a body.
	ReasonEmpty
	// ReasonBody is a body that is neither a string nor bytes.
	ReasonBody
	// ReasonBase64 is a body that is not base64.
	ReasonBase64
	// ReasonNotPprof is a body that holds something other than a readable pprof.
	ReasonNotPprof
	// ReasonTooLarge is a body beyond a limit.
	ReasonTooLarge
	// ReasonNotAStack is a text in which no frame can be found.
	ReasonNotAStack
	// ReasonTooDeep is a text stack with more than Limits.MaxStackDepth frames.
	ReasonTooDeep
	// ReasonNotOTLP is a body that should hold OTLP profiles and does not.
	ReasonNotOTLP
	// NumReasons is the number of reasons.
	NumReasons = iota
)

var reasonNames = [NumReasons]string{
	"unknown_format", "unknown_type", "empty", "body_type", "base64", "not_pprof", "too_large", "not_a_stack",
	"stack_too_deep",
	"not_otlp",
}

func (r Reason) String() string { return reasonNames[r] }

// Rejection is a record that could not be read.
type Rejection struct {
	// Record is the position of the record among all records of the request, from 0.
	Record int
	Reason Reason
	Err    error
}

func (r Rejection) Error() string { return fmt.Sprintf("record %d: %v", r.Record, r.Err) }

func reject(why Reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: why, Err: fmt.Errorf(format, args...)}
}

// Result is what Translate made of one request.
type Result struct {
	// Err is the error of Options.Meter, with which the translation ended. Then there is nothing else.
	Err error
	// Profiles has no resource if no sample was found.
	Profiles pprofile.Profiles
	// Samples is the number of samples that were read: observations, before those of one identity are combined.
	Samples int
	// Records counts the records that carry or claim to carry profiles, by format, type and source, and Profiling all of
	// them.
	Records   [NumFormats][NumTypes][NumSources]int
	Profiling int
	// Others is the number of records that have nothing to do with profiling, and FirstOther, if there are any, the
	// position of the first.
	Others, FirstOther int
	// FirstRead is the position of the first profiling record that was read, or -1.
	FirstRead int
	// Rejected lists the records that could not be read, in their order.
	Rejected []Rejection
	// Counts has the dropped samples of records that were read, and the faults that were repaired. Incomplete is the
	// number of records with dropped samples.
	scan.Counts
	Incomplete int
	// Attributes counts the attributes of records, scopes and resources that were repaired or left out, by fault.
	Attributes [compact.NumRepairs]int
	// UnpackedBytes is the size of the bodies that were read, after decompression.
	UnpackedBytes int
	// BadTimes counts times and periods that are not numbers or out of range: the sample is kept without.
	BadTimes int
}

func (r *Result) addAttributes(repairs [compact.NumRepairs]int) {
	for i, n := range repairs {
		r.Attributes[i] += n
	}
}

func (r *Result) add(stats *decode.Stats) {
	for i, n := range stats.Dropped {
		r.Dropped[i] += n
	}
	for i, n := range stats.Repaired {
		// The format has no sample types, so their absence is not a fault.
		if scan.Repair(i) != scan.RepairMissingSampleTypes {
			r.Repaired[i] += n
		}
	}
}
