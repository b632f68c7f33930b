// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package processesreceiver

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// maxWorkers bounds the processes that are read at a time.
const maxWorkers = 4

// processes lists the processes of the machine, and has those that can be profiled read by workers.
type processes struct {
	cfg     *Config
	set     receiver.Settings
	logger  *zap.Logger
	filter  filter
	reader  *procfs.Reader
	sink    *sink
	metrics *metadata.TelemetryBuilder
	// binaries are the Go programs that processes run.
	binaries *binaries
	// keptBytes is the memory of Go programs' kept buckets.
	keptBytes atomic.Int64
	// profiled counts the processes of each runtime whose last attempt succeeded.
	profiled map[runtimeName]*atomic.Int64

	// known has the processes of the last scan. Only scan uses it.
	known map[target.ID]*process
	// sources counts the processes that have a source, and full logs that there are more than max_processes.
	sources atomic.Int64
	full    sync.Once
	workers chan struct{}
	// switchedOff are the programs that record nothing. Each is logged once, however many processes it has.
	switchedOff telemetry.Once[string]
	// lacksRights logs that processes cannot be looked at.
	lacksRights sync.Once
	busy        sync.WaitGroup

	stopBudget func() error
	worker     worker.Worker
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (component.Component, error) {
	selected, err := newFilter(cfg)
	if err != nil {
		return nil, err
	}
	r := &processes{
		cfg: cfg, set: set, filter: selected, known: map[target.ID]*process{}, binaries: newBinaries(),
		workers:  make(chan struct{}, maxWorkers),
		profiled: map[runtimeName]*atomic.Int64{runtimeGo: {}, runtimeJava: {}},
		reader:   &procfs.Reader{Root: cfg.ProcRoot, MaxFileBytes: 128 << 10},
		logger:   telemetry.Limits{Lines: 20, Period: time.Minute, Level: zapcore.InfoLevel}.Apply(set.Logger),
	}
	if r.sink, err = newSink(set, next, cfg.Timeout); err != nil {
		return nil, err
	}
	r.metrics, err = metadata.NewTelemetryBuilder(set.TelemetrySettings)
	return r, err
}

// observe reports the processes that are profiled.
func (r *processes) observe() error {
	return r.metrics.RegisterReceiverProcessesProfiledCallback(func(_ context.Context, o metric.Int64Observer) error {
		for _, name := range []runtimeName{runtimeGo, runtimeJava} {
			o.Observe(r.profiled[name].Load(), telemetry.Attributes("runtime", string(name)))
		}
		return nil
	})
}

// Start begins to read processes, at once and then every interval.
func (r *processes) Start(context.Context, component.Host) error {
	var err error
	if r.stopBudget, err = budget.Watch(r.set.TelemetrySettings); err != nil {
		return err
	}
	if err := r.observe(); err != nil {
		return errors.Join(err, r.stopBudget())
	}
	r.worker.Start(func(stopping, _ context.Context) {
		worker.Every(stopping, 0, r.cfg.Interval, func() { r.scan(stopping) })
		r.busy.Wait()
		r.closeAll()
	})
	return nil
}

// Shutdown ends all collections. Profiles that the pipeline has still arrive.
func (r *processes) Shutdown(ctx context.Context) error {
	if r.stopBudget == nil {
		return nil
	}
	err := r.worker.Shutdown(ctx)
	r.metrics.Shutdown()
	return errors.Join(err, r.stopBudget())
}

// closeAll ends the recordings in processes, in several at a time, since each may take its time-out.
func (r *processes) closeAll() {
	var closing sync.WaitGroup
	for _, p := range r.known {
		if p.source == nil {
			continue
		}
		r.workers <- struct{}{}
		closing.Go(func() {
			p.source.close()
			<-r.workers
		})
	}
	closing.Wait()
	clear(r.known)
}

// scan looks at all processes, and has those read whose turn it is. It waits for workers, but not for their results.
func (r *processes) scan(ctx context.Context) {
	pids, err := target.PIDs(r.cfg.ProcRoot)
	if err != nil {
		r.logger.Warn("cannot list processes; set `proc_root` to where the machine's /proc is mounted", zap.Error(err))
		return
	}
	seen := map[target.ID]bool{}
	for _, pid := range pids {
		if ctx.Err() != nil {
			return
		}
		t, err := target.Open(r.cfg.ProcRoot, pid)
		if err != nil {
			continue
		}
		if p := r.processOf(t); p != nil {
			seen[t.ID] = true
			if r.begin(ctx, p, t) {
				continue // the worker closes it
			}
		}
		t.Close()
	}
	for id, p := range r.known {
		if !seen[id] && !p.isBusy.Load() {
			r.forget(id, p)
		}
	}
}

// processOf returns the state of a process, or nil if there are too many.
func (r *processes) processOf(t *target.Target) *process {
	p := r.known[t.ID]
	if p == nil {
		if len(r.known) >= maxKnown {
			return nil
		}
		p = &process{}
		r.known[t.ID] = p
	}
	return p
}

// maxKnown bounds the processes that are remembered, most of them because there is nothing to read.
const maxKnown = 200_000

// begin has a worker read a process if it is its turn.
func (r *processes) begin(ctx context.Context, p *process, t *target.Target) bool {
	if p.isBusy.Load() || time.Now().Before(p.next) {
		return false
	}
	select {
	case r.workers <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	p.isBusy.Store(true)
	r.busy.Go(func() {
		defer func() {
			t.Close()
			p.isBusy.Store(false)
			<-r.workers
		}()
		r.attempt(ctx, p, t)
	})
	return true
}

func (r *processes) forget(id target.ID, p *process) {
	r.release(p)
	delete(r.known, id)
}

// admit reports whether one more process can be profiled.
func (r *processes) admit() bool {
	if r.sources.Add(1) <= int64(r.cfg.MaxProcesses) {
		return true
	}
	r.sources.Add(-1)
	r.full.Do(func() {
		r.logger.Warn("there are more processes than `max_processes`; further ones are not profiled",
			zap.Int("max_processes", r.cfg.MaxProcesses))
	})
	return false
}

// release ends the profiling of a process.
func (r *processes) release(p *process) {
	r.count(p, false)
	if p.source != nil {
		p.source.close()
		p.source = nil
		r.sources.Add(-1)
	}
}

// attempt examines a process if it has changed, and collects its profiles.
func (r *processes) attempt(ctx context.Context, p *process, t *target.Target) {
	err := r.examine(p, t)
	if err == nil && p.source != nil {
		if err = p.source.collect(ctx, t); err != nil && p.hasEnded(t) {
			return
		}
	}
	if errors.Is(err, procfs.ErrGone) || ctx.Err() != nil {
		return
	}
	if p.source == nil && errors.Is(err, fs.ErrPermission) {
		r.metrics.ReceiverProcessesFailures.Add(ctx, 1,
			telemetry.Attributes("runtime", string(runtimeUnknown), "reason", string(permission)))
		r.lacksRights.Do(func() {
			r.logger.Warn("cannot inspect all processes: run the collector as root, or with the capability SYS_PTRACE",
				zap.Error(err))
		})
		err = nil
	}
	if p.source == nil && err == nil { // nothing to read: it may load a virtual machine or execute another program later
		p.quiet = min(p.quiet+1, maxQuiet)
		p.next = time.Now().Add(time.Duration(p.quiet) * r.cfg.Interval)
		return
	}
	r.note(ctx, p, t, err)
}

// hasEnded reports whether the program that was examined has ended, or has executed another one: that is no failure.
func (p *process) hasEnded(t *target.Target) bool {
	file, err := t.File()
	return errors.Is(err, procfs.ErrGone) || err == nil && file != p.file
}

// maxQuiet is after how many intervals a process is examined again in which there was nothing to read.
const maxQuiet = 10

// note counts and logs the result of an attempt, and sets the time of the next.
func (r *processes) note(ctx context.Context, p *process, t *target.Target, err error) {
	const maxDoubling = 6
	if err == nil {
		if p.why != "" {
			r.logger.Info("profiling the process again", p.fields(t)...)
		}
		p.why, p.failures, p.next = "", 0, time.Time{}
		r.count(p, true)
		return
	}
	r.count(p, false)
	why := reasonOf(err)
	if !isForNow(err) { // otherwise what is kept until the next attempt would grow old
		p.failures = min(p.failures+1, maxDoubling)
		p.next = time.Now().Add(r.cfg.Interval * (1<<p.failures - 1))
	}
	r.metrics.ReceiverProcessesFailures.Add(ctx, 1,
		telemetry.Attributes("runtime", string(p.runtime), "reason", string(why)))
	if why == p.why {
		return
	}
	p.why = why
	level := zapcore.WarnLevel
	if why == switchedOff { // as many programs are
		level = zapcore.InfoLevel
		if !r.switchedOff.IsNew(p.executable) {
			return
		}
	}
	r.logger.Log(level, "cannot profile the process; suppressing repeats until the reason changes",
		append(p.fields(t), zap.String("reason", string(why)), zap.Error(err))...)
}

// count counts a process among those that are profiled, or takes it out.
func (r *processes) count(p *process, isProfiled bool) {
	switch {
	case isProfiled && !p.isCounted:
		r.profiled[p.runtime].Add(1)
	case !isProfiled && p.isCounted:
		r.profiled[p.runtime].Add(-1)
	}
	p.isCounted = isProfiled
}

func (p *process) fields(t *target.Target) []zap.Field {
	return []zap.Field{zap.Int64("pid", t.PID), zap.String("executable", p.executable),
		zap.String("runtime", string(p.runtime))}
}
