// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// Reason is why a payload was rejected, as the metric's attribute names it.
type Reason string

// The reasons for which a payload is rejected before it reaches the pipeline.
const (
	Empty       Reason = "empty"           // no bytes at all
	NotPprof    Reason = "not_pprof"       // not in an accepted format, or too damaged to be read
	TooLarge    Reason = "too_large"       // over a limit
	Busy        Reason = "busy"            // no room in the budget, or no time left to decode
	Stopping    Reason = "stopping"        // a body that had not arrived by shutdown
	BadRequest  Reason = "bad_request"     // a push whose query, origin or form is wrong
	UnknownPath Reason = "unknown_path"    // a push to a path that does not exist
	Encoding    Reason = "encoding"        // a push or a scrape with an unknown Content-Encoding
	ContentType Reason = "content_type"    // an answer that is text by its Content-Type
	HTTPStatus  Reason = "http_status"     // an answer other than 200
	Unreachable Reason = "unreachable"     // no answer, or an incomplete one
	Timeout     Reason = "timeout"         // a target or a sender that took too long
	Unreadable  Reason = "unreadable"      // a file or body that could not be read
	Overrun     Reason = "pipeline_behind" // the pipeline is slower than the collector records its own profiles
)

// Reasons are all reasons.
var Reasons = []Reason{
	Empty, NotPprof, TooLarge, Busy, Stopping, BadRequest, UnknownPath, Encoding, ContentType, HTTPStatus, Unreachable,
	Timeout, Unreadable, Overrun,
}

// Rejection is the error of a payload that never reached the pipeline.
type Rejection struct {
	Reason Reason
	Err    error
}

func (r *Rejection) Error() string { return r.Err.Error() }
func (r *Rejection) Unwrap() error { return r.Err }

// Reject returns a *Rejection.
func Reject(why Reason, err error) error { return &Rejection{Reason: why, Err: err} }

// ReasonOf returns the reason of a *Rejection within err, or "".
func ReasonOf(err error) Reason {
	var rejected *Rejection
	if errors.As(err, &rejected) {
		return rejected.Reason
	}
	return ""
}

// Changes returns the log of a source, of when its payloads are not accepted.
func Changes(logger *zap.Logger) *telemetry.Changes {
	return &telemetry.Changes{
		Logger: logger, Failed: "cannot accept a profile; suppressing repeats until the reason changes",
		Recovered: "accepting profiles again",
	}
}

// CountRejected counts a payload if err is a *Rejection.
func (in *Ingester) CountRejected(ctx context.Context, err error) {
	if why := ReasonOf(err); why != "" {
		in.Metrics.ReceiverPprofRejectedPayloads.Add(ctx, 1, telemetry.Attributes("reason", string(why), "source", in.Source))
	}
}

// IsBusy reports that the receiver had no room or no time for a payload, so that a retry may succeed.
func IsBusy(err error) bool {
	why := ReasonOf(err)
	return why == Busy || why == Stopping
}

// IsPermanent reports that the same bytes would fail again: they are bad, or the pipeline refuses them permanently.
func IsPermanent(err error) bool {
	return (ReasonOf(err) != "" && !IsBusy(err)) || otlpstatus.IsPermanent(err)
}

// StatusError is the status of an answer other than 200.
type StatusError int

func (s StatusError) Error() string {
	return fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s)))
}

// StateOf returns a coarse name of an error: its reason, and the status if it has one. Errors that differ only in
// details have the same name.
func StateOf(err error) string {
	why := ReasonOf(err)
	if why == "" {
		return "refused"
	}
	var status StatusError
	if errors.As(err, &status) {
		return fmt.Sprintf("%s %d", why, int(status))
	}
	return string(why)
}
