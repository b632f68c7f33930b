// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package worker runs the goroutines of sources that fetch payloads by themselves.
package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// Worker runs a source's goroutines and ends them in two steps: at first they begin nothing new; shortly before the
// deadline of Shutdown, the contexts of deliveries end.
type Worker struct {
	running                sync.WaitGroup
	stop, cancelDeliveries context.CancelFunc
}

// Start runs fn in a goroutine until shutdown. stopping ends when shutdown begins; deliver ends later, so that payloads
// that have arrived still reach the pipeline.
func (w *Worker) Start(fn func(stopping, deliver context.Context)) {
	stopping, stop := context.WithCancel(context.Background())
	deliver, cancelDeliveries := context.WithCancel(context.Background())
	w.stop, w.cancelDeliveries = stop, cancelDeliveries
	w.running.Go(func() { fn(stopping, deliver) })
}

// Shutdown ends the goroutines and waits for them until ctx ends.
func (w *Worker) Shutdown(ctx context.Context) error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	defer w.cancelDeliveries()
	work, ctx, cancel := shutdown.Drain(ctx)
	defer cancel()
	defer context.AfterFunc(work, w.cancelDeliveries)()
	if err := await.Return(ctx, w.running.Wait); err != nil {
		return fmt.Errorf("a delivery is still in progress: %w", err)
	}
	return nil
}

// Go runs fn in a further goroutine.
func (w *Worker) Go(fn func()) { w.running.Go(fn) }

// Every calls fn after delay and then at each interval until ctx ends. Calls never overlap: if one takes longer than
// the interval, the next follows at once.
func Every(ctx context.Context, delay, interval time.Duration, fn func()) {
	if !await.Sleep(ctx, delay) {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		fn()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// RequireIntervals adds the faults of the keys that sources with a worker have in common.
func RequireIntervals(faults *config.Faults, interval, delay, timeout time.Duration) {
	faults.Require(interval > 0, "`collection_interval` must be positive, found %v", interval)
	faults.Require(delay >= 0, "`initial_delay` must not be negative, found %v", delay)
	faults.Require(timeout >= 0, "`timeout` must not be negative, found %v", timeout)
}
