// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// worker runs a source's goroutines and ends them in two steps: first nothing new begins; then, after three quarters
// of the time that Shutdown has, the contexts of deliveries end.
type worker struct {
	running        sync.WaitGroup
	stop, abort    context.CancelFunc
	stopping, last context.Context
}

// start runs fn until shutdown. stopping ends when shutdown begins; deliver lasts as long as
// shutdown may, so that what is in hand still reaches the pipeline.
func (w *worker) start(fn func(stopping, deliver context.Context)) {
	w.stopping, w.stop = context.WithCancel(context.Background())
	w.last, w.abort = context.WithCancel(context.Background())
	w.running.Go(func() { fn(w.stopping, w.last) })
}

func (w *worker) shutdown(ctx context.Context) error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	defer w.abort()
	if deadline, found := ctx.Deadline(); found {
		left := time.Until(deadline)
		defer time.AfterFunc(left-left/4, w.abort).Stop()
	}
	done := make(chan struct{})
	go func() {
		w.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the pipeline still has a delivery: %w", ctx.Err())
	}
}

// every calls fn after delay and then at each interval until ctx ends. Calls never overlap: one
// that takes longer than the interval is followed by the next at once.
func every(ctx context.Context, delay, interval time.Duration, fn func()) {
	if !sleep(ctx, delay) {
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

// sleep waits for d and reports whether ctx still stands.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// changeLog logs what fails when it begins, when it fails otherwise, and when it works again: a
// target that is down for a day gives two lines.
type changeLog struct {
	logger *zap.Logger
	state  string
}

// note logs err unless the last call had the same state. A nil err means that all is well.
func (c *changeLog) note(state string, err error) {
	if err == nil {
		state = ""
	}
	if state == c.state {
		return
	}
	if c.state = state; err == nil {
		c.logger.Info("works again")
		return
	}
	c.logger.Warn("no profile taken; said again only when that changes", zap.String("reason", state), zap.Error(err))
}
