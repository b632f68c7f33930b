// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package exportreport is for exporters that send a message by several requests, of which the server can refuse some
// permanently.
//
// exporterhelper knows whole messages only: it counts all samples as sent if the last attempt returns no error, and
// otherwise all as failed. An exporter that gets its settings from Settings, and ends each attempt with Report.Finish,
// has exact counts (count.go). The error of an attempt names each reason once, however many requests were refused for
// it.
package exportreport

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
)

// Report is what became of the samples of one attempt. It is not safe for concurrent use.
type Report struct {
	// Unit is the name of a request in errors, such as series.
	Unit string

	sent, lost, refused int
	reasons             []*reason
	// others is the number of requests that were refused for reasons beyond maxReasons.
	others int
}

// reason is why requests were refused. first describes the first of them.
type reason struct {
	message, first    string
	err               error
	requests, samples int
}

// maxReasons bounds how many reasons an error lists.
const maxReasons = 3

// Sent counts samples that were accepted.
func (r *Report) Sent(samples int) { r.sent += samples }

// Lost counts samples that the exporter itself drops, and counts by a metric of its own.
func (r *Report) Lost(samples int) { r.lost += samples }

// Refused counts the samples of a request that was refused permanently. what describes the request; it may be empty.
func (r *Report) Refused(samples int, what string, err error) {
	r.lost += samples
	r.refused += samples
	// What the Collector adds to each permanent error stands once in front of all.
	message := strings.ReplaceAll(strings.ReplaceAll(err.Error(), "Permanent error: ", ""), "\n", "; ")
	for _, known := range r.reasons {
		if known.message == message {
			known.requests++
			known.samples += samples
			return
		}
	}
	if len(r.reasons) == maxReasons {
		r.others++
		return
	}
	r.reasons = append(r.reasons, &reason{message: message, first: what, err: err, requests: 1, samples: samples})
}

// Finish ends an attempt. If retryErr is not nil, left is what must be sent again. The error is for exporterhelper: it
// carries left; or it is permanent, if the server has accepted nothing of the message. If the server has accepted a
// part, what it refused is logged here: exporterhelper would log that it drops the whole message.
func (r *Report) Finish(ctx context.Context, logger *zap.Logger, retryErr error, left pprofile.Profiles) error {
	remaining := 0
	if retryErr != nil {
		remaining = left.SampleCount()
	}
	anySent := tallyOf(ctx).add(r.sent, r.lost, remaining)
	if len(r.reasons) > 0 {
		refused := newRefusal(r)
		if retryErr == nil && !anySent {
			return consumererror.NewPermanent(refused)
		}
		logger.Error("the server refused a part of a message permanently; its samples are dropped",
			zap.Int("dropped_samples", r.refused), zap.Error(refused))
	}
	if retryErr != nil {
		return xconsumererror.NewProfiles(retryErr, left)
	}
	return nil
}

// refusal lists the reasons of a report.
type refusal struct {
	message string
	errs    []error
}

func newRefusal(r *Report) *refusal {
	var parts []string
	var errs []error
	for _, known := range r.reasons {
		part := fmt.Sprintf("%d %s (%d samples)", known.requests, r.Unit, known.samples)
		switch {
		case known.first == "":
		case known.requests == 1:
			part += ", " + known.first
		default:
			part += ", such as " + known.first
		}
		parts = append(parts, part+": "+known.message)
		errs = append(errs, known.err)
	}
	if r.others > 0 {
		parts = append(parts, fmt.Sprintf("%d %s for other reasons", r.others, r.Unit))
	}
	return &refusal{"refused " + strings.Join(parts, "; "), errs}
}

func (r *refusal) Error() string { return r.message }

// Unwrap returns the errors with which requests were refused: a code of gRPC decides how a receiver answers.
func (r *refusal) Unwrap() []error { return r.errs }

// Retry returns an error with which exporterhelper sends a request again, after the delay if that is positive.
func Retry(err error, delay time.Duration) error {
	if delay > 0 {
		return exporterhelper.NewThrottleRetry(err, delay)
	}
	return err
}
