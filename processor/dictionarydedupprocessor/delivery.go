// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
)

// delivery is the result of sending a batch: err is set before done is closed.
type delivery struct {
	done chan struct{}
	err  error
}

func newDelivery() *delivery { return &delivery{done: make(chan struct{})} }

func (d *delivery) finish(err error) {
	d.err = err
	close(d.done)
}

// retryLater returns an error that asks the sender to retry: gRPC's Unavailable with RetryInfo, HTTP's 503.
func retryLater(reason string) error { return otlpstatus.Of(errors.New(reason)).Err() }

// loss is why samples could not be delivered. Its String is the value of a metric's attribute.
type loss int

const (
	lossRefused  loss = iota // the next component would refuse them again
	lossGaveUp               // `max_elapsed_time` of `retry_on_failure` has passed, or that is not enabled
	lossShutdown             // the time for a shutdown has passed
	numLosses    int  = iota
)

var lossNames = [numLosses]string{"refused", "gave_up", "shutdown"}

func (l loss) String() string { return lossNames[l] }

// send delivers a batch part by part, and returns nil if the next component accepted all of them. It counts and logs
// lost samples.
func (d *dedup) send(ctx context.Context, batch *compact.Batch, why reason) error {
	parts := 0
	var lost [numLosses]int
	var errs []error
	for part := range batch.Parts() {
		parts++
		rest, reason, err := d.deliver(ctx, &part, false)
		if err != nil {
			errs = append(errs, err)
			lost[reason] += rest.SampleCount()
		}
	}
	d.countBatch(ctx, why, parts)
	if len(errs) == 0 {
		return nil
	}
	err := errors.Join(errs...)
	for reason, samples := range lost {
		d.countLost(ctx, loss(reason), samples)
		d.logLost(loss(reason), samples, err)
	}
	if !otlpstatus.IsPermanent(err) {
		return retryLater("the next component did not accept the profiles: " + err.Error())
	}
	return consumererror.NewPermanent(err)
}

func (d *dedup) countLost(ctx context.Context, why loss, samples int) {
	if samples > 0 {
		d.metrics.ProcessorDictionaryDedupFailedSamples.Add(ctx, int64(samples), d.metrics.losses[why])
	}
}

func (d *dedup) logLost(why loss, samples int, err error) {
	if samples > 0 {
		d.logger.Warn("dropping profiles that the next component did not accept",
			zap.Stringer("reason", why), zap.Int("samples", samples), zap.Error(err))
	}
}

// deliver passes on a part, and retries the rest of it while the next component temporarily refuses it. If the next
// component does not accept all samples, deliver returns the error, the others, and why it stopped. With once there is
// no retry, and the next component may change the part.
func (d *dedup) deliver(
	ctx context.Context, part *compact.Part, once bool,
) (rest pprofile.Profiles, why loss, err error) {
	d.warnOversized(ctx, part)
	bytes := d.metrics.outgoingSize(ctx, part)
	rest = part.Profiles
	samples := part.SampleCount
	retry := &d.config.RetryOnFailure
	intervals := backoff.ExponentialBackOff{
		InitialInterval: retry.InitialInterval, RandomizationFactor: retry.RandomizationFactor,
		Multiplier: retry.Multiplier, MaxInterval: retry.MaxInterval,
	}
	intervals.Reset()
	begin, stopping := time.Now(), d.stopping
	for {
		sent := rest
		if !once {
			sent = d.copyIfChanged(rest)
		}
		if err = d.next.ConsumeProfiles(ctx, sent); err == nil {
			d.metrics.countOutgoing(ctx, part, samples, bytes)
			d.refusals.Note("", nil)
			return rest, 0, nil
		}
		var partial xconsumererror.Profiles
		if len(otlpstatus.Joined(err)) == 0 && errors.As(err, &partial) { // else it is the rest of one of several components
			rest = partial.Data()
			d.metrics.ProcessorDictionaryDedupOutgoingSamples.Add(ctx, int64(samples-rest.SampleCount()), d.metrics.own)
			samples = rest.SampleCount()
		}
		switch {
		case otlpstatus.IsPermanent(err):
			return rest, lossRefused, err
		case ctx.Err() != nil:
			return rest, lossShutdown, err
		case once, !retry.Enabled, retry.MaxElapsedTime > 0 && time.Since(begin) > retry.MaxElapsedTime:
			return rest, lossGaveUp, err
		}
		d.refusals.Note("refused", err)
		d.metrics.ProcessorDictionaryDedupRetries.Add(ctx, 1, d.metrics.own)
		select {
		case <-time.After(max(intervals.NextBackOff(), min(otlpstatus.RetryDelay(err), retry.MaxInterval), minRetryDelay)):
		case <-stopping:
			// The rest is retried at once, and then from the shortest interval on.
			intervals.Reset()
			stopping = nil
		case <-ctx.Done():
			return rest, lossShutdown, err
		}
	}
}

// minRetryDelay keeps retries from spinning if the configuration has intervals of 0.
const minRetryDelay = 10 * time.Millisecond

// copyIfChanged returns pd, or a copy if the next component changes what it gets, so that pd can be sent again.
func (d *dedup) copyIfChanged(pd pprofile.Profiles) pprofile.Profiles {
	if !d.next.Capabilities().MutatesData {
		return pd
	}
	to := pprofile.NewProfiles()
	pd.CopyTo(to)
	return to
}
