// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// reportConsumer passes the profiler's reports on to the pipeline, counts them, and bounds how long each may take:
// while the pipeline does not return, the profiler collects samples without a limit. close ends that, since the
// profiler's goroutines can outlive its Shutdown, and nothing may reach the pipeline after the receiver's Shutdown.
type reportConsumer struct {
	next      xconsumer.Profiles
	obsreport *receiverhelper.ObsReport
	refusals  telemetry.Changes
	timeout   time.Duration

	mu       sync.Mutex
	isClosed bool
	inFlight sync.WaitGroup
}

// Capabilities returns those of the pipeline, which the profiler ignores.
func (c *reportConsumer) Capabilities() consumer.Capabilities { return c.next.Capabilities() }

// ConsumeProfiles always returns nil, because the profiler would only log an error for each report. A report that the
// pipeline refuses is counted and lost, since the profiler keeps no reports.
func (c *reportConsumer) ConsumeProfiles(ctx context.Context, profiles pprofile.Profiles) error {
	c.mu.Lock()
	if c.isClosed {
		c.mu.Unlock()
		return nil
	}
	c.inFlight.Add(1)
	c.mu.Unlock()
	defer c.inFlight.Done()

	// The profiler cancels its context when it stops. A report that is under way then still arrives.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	ctx = c.obsreport.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err := c.next.ConsumeProfiles(ctx, profiles)
	c.obsreport.EndProfilesOp(ctx, "ebpf", samples, err)
	if err != nil {
		c.refusals.Note(err.Error(), err, zap.Int("samples", samples))
	} else {
		c.refusals.Note("", nil)
	}
	return nil
}

// close drops all later reports. It returns when those under way have arrived, or when ctx ends.
func (c *reportConsumer) close(ctx context.Context) error {
	c.mu.Lock()
	c.isClosed = true
	c.mu.Unlock()
	return await.Return(ctx, c.inFlight.Wait)
}
