// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package shutdown bounds how long the collector takes to stop.
//
// The Collector's service stops its components one after another, receivers first, and waits for each without a limit.
// If one waits for a client, or for room in a queue whose backend is down, those after it cannot write their data
// to disk. So Limit wraps the factories: if a component does not stop within its part of the timeout, that is logged,
// and the service goes on to the next one. The last resort ends the process when the timeout has passed since a signal
// (Signals), or twice the timeout since a shutdown for another reason began (Limit).
package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// Variable is the environment variable with the timeout. DefaultTimeout is less than the 30 s that Kubernetes, and most
// users of Docker, allow.
const (
	Variable       = "OTELCOL_PROFILES_SHUTDOWN_TIMEOUT"
	DefaultTimeout = 25 * time.Second
)

// Timeout reads the environment variable.
func Timeout() (time.Duration, error) {
	value := os.Getenv(Variable)
	if value == "" {
		return DefaultTimeout, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("%s must be a positive duration such as %s, found %q", Variable, DefaultTimeout, value)
	}
	return timeout, nil
}

// kind is a kind of component. The kinds share the timeout, so that a stuck receiver leaves time for the batches of a
// processor and the queue of an exporter.
type kind struct {
	name string
	// until is the fraction of the timeout by which all components of this kind must have stopped.
	until float64
}

var (
	receiverKind  = kind{"receiver", 0.5}
	processorKind = kind{"processor", 0.75}
	connectorKind = kind{"connector", 0.85}
	exporterKind  = kind{"exporter", 0.95}
)

// defaultDrain bounds a component's shutdown where nothing else does, as in a collector without Limit.
const defaultDrain = 10 * time.Second

// Deadline returns the context in which a component passes on its pending data when it stops. Limit has given ctx a
// deadline; without one, it ends after 10 s.
func Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultDrain)
}

// answerTime is how long before the deadline requests end, so that handlers can answer.
const answerTime = time.Second

// Drain is Deadline for what passes on requests or payloads. work ends shortly before the whole context, so that those
// who wait can still be answered.
func Drain(ctx context.Context) (work, whole context.Context, cancel context.CancelFunc) {
	whole, cancelWhole := Deadline(ctx)
	end, _ := whole.Deadline()
	work, cancelWork := context.WithDeadline(whole, end.Add(-min(answerTime, time.Until(end)/4)))
	return work, whole, func() { cancelWork(); cancelWhole() }
}

// All stops the parts of a component at once, since they share the time. Their keys are those of the configuration.
func All[C interface{ Shutdown(context.Context) error }](ctx context.Context, parts map[string]C) error {
	errs := make(chan error, len(parts))
	for key, part := range parts {
		go func() {
			err := part.Shutdown(ctx)
			if err != nil {
				err = fmt.Errorf("shut down `%s`: %w", key, err)
			}
			errs <- err
		}()
	}
	var all error
	for range parts {
		all = errors.Join(all, <-errs)
	}
	return all
}

// minWait is the least time for a component, since its Shutdown closes listeners and files.
const minWait = 250 * time.Millisecond

// Limit bounds the shutdown of one service at a time. It is safe for concurrent use.
type Limit struct {
	timeout time.Duration
	// late is called if the service still stops after twice the timeout.
	late func()

	mu sync.Mutex
	// began is when Shutdown of the service's first component was called; zero before that.
	began time.Time
	// lastResort calls late; nil while nothing but receivers has begun to stop.
	lastResort *time.Timer
	// left counts components of the service that did not stop in time, failed are the errors of others.
	left   int
	failed []error
}

// NewLimit returns a limit for services that must stop within timeout. It calls late if one still stops after twice
// that time, unless Renew is called before.
func NewLimit(timeout time.Duration, late func()) *Limit { return &Limit{timeout: timeout, late: late} }

// Renew resets the limit for the next service, that of a reloaded configuration.
func (l *Limit) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastResort != nil {
		l.lastResort.Stop()
		l.lastResort = nil
	}
	l.began, l.left, l.failed = time.Time{}, 0, nil
}

// Err returns an error if components of the last service were left behind or failed to stop.
func (l *Limit) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := errors.Join(l.failed...)
	if l.left > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d components did not stop in time; their data in memory is lost",
			l.left))
	}
	return failed
}

// wait returns how long a component of this kind may take from now on.
func (l *Limit) wait(k kind) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	// If the timeout has passed, only some receivers were replaced then (feature gate service.partialReload).
	if l.began.IsZero() || time.Since(l.began) > l.timeout && l.lastResort == nil {
		l.began = time.Now()
	}
	if k != receiverKind && l.lastResort == nil {
		// It may be a reload, which should go on even if many components do not stop. Signals is stricter.
		l.lastResort = time.AfterFunc(time.Until(l.began.Add(2*l.timeout)), l.late)
	}
	end := l.began.Add(time.Duration(k.until * float64(l.timeout)))
	return max(time.Until(end), minWait)
}

// bounded is a component whose Shutdown returns in time.
type bounded struct {
	component.Component
	limit  *Limit
	kind   kind
	id     component.ID
	logger *zap.Logger
	// queues are those that senders enter, of an exporter.
	queues Queues
}

// Start starts the component. Components that stopped before belong to the configuration that this one replaces.
func (b *bounded) Start(ctx context.Context, host component.Host) error {
	b.limit.Renew()
	return b.Component.Start(ctx, host)
}

// Shutdown stops the component. It returns nil even if the component fails or is left behind, because an error would
// end the process when a configuration is reloaded. Limit.Err returns it.
func (b *bounded) Shutdown(ctx context.Context) error {
	wait := b.limit.wait(b.kind)
	// The context ends early, so that components that obey it have time left to shut down cleanly.
	ctx, cancel := context.WithTimeout(ctx, wait-wait/5)
	name := b.kind.name + " " + b.id.String()
	stopped := make(chan error, 1)
	go func() {
		defer cancel()
		stopped <- b.Component.Shutdown(ctx)
	}()
	select {
	case err := <-stopped:
		if err != nil {
			b.limit.mu.Lock()
			b.limit.failed = append(b.limit.failed, fmt.Errorf("%s: %w", name, err))
			b.limit.mu.Unlock()
			b.logger.Error("component returned an error when it stopped; continuing the shutdown", zap.String("component", name),
				zap.Error(err))
		}
		return nil
	case <-time.After(wait):
	}
	b.limit.mu.Lock()
	b.limit.left++
	b.limit.mu.Unlock()
	b.logger.Error(
		"component did not stop in time; continuing the shutdown without it, and what it holds in memory is lost",
		zap.String("component", name), zap.Duration("waited", wait))
	return nil
}
