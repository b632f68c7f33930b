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
)

// gate passes the profiler's reports on to the pipeline, counts them, and bounds how long each may take: while the pipeline does
// not return, the profiler collects samples without a limit. shut closes it, since the profiler's goroutines can outlive its
// Shutdown, and nothing may reach the pipeline after the receiver's Shutdown.
type gate struct {
	next      xconsumer.Profiles
	obsreport *receiverhelper.ObsReport
	logger    *zap.Logger
	timeout   time.Duration

	mu       sync.Mutex
	isShut   bool
	inFlight sync.WaitGroup
	// refused is the last refusal that was logged. It is empty after a success.
	refused string
}

// Capabilities returns those of the pipeline, which the profiler ignores.
func (g *gate) Capabilities() consumer.Capabilities { return g.next.Capabilities() }

// ConsumeProfiles always returns nil, because the profiler would only log an error for each report. A report that the pipeline
// refuses is counted and lost, since the profiler keeps no reports.
func (g *gate) ConsumeProfiles(ctx context.Context, profiles pprofile.Profiles) error {
	g.mu.Lock()
	if g.isShut {
		g.mu.Unlock()
		return nil
	}
	g.inFlight.Add(1)
	g.mu.Unlock()
	defer g.inFlight.Done()

	// The profiler cancels its context when it stops. A report that is under way then still arrives.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.timeout)
	defer cancel()
	ctx = g.obsreport.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err := g.next.ConsumeProfiles(ctx, profiles)
	g.obsreport.EndProfilesOp(ctx, "ebpf", samples, err)
	g.log(samples, err)
	return nil
}

// log logs a refusal, and again only when it changes or reports were accepted meanwhile.
func (g *gate) log(samples int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.refused = ""
		return
	}
	if text := err.Error(); text != g.refused {
		g.refused = text
		g.logger.Warn("the pipeline refused a report of the eBPF profiler, and its samples are lost; suppressing repeats until the error changes",
			zap.Int("samples", samples), zap.Error(err))
	}
}

// shut drops all later reports. It returns when those under way have arrived, or when ctx ends.
func (g *gate) shut(ctx context.Context) error {
	g.mu.Lock()
	g.isShut = true
	g.mu.Unlock()
	return await.Return(ctx, g.inFlight.Wait)
}
