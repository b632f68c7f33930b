// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package self is the source `self`: it records profiles of the collector itself.
package self

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

var errOverrun = ingest.Reject(ingest.Overrun, errors.New("the pipeline is behind"))

const (
	// maxPendingWindows bounds the windows of `collection_interval` that wait for a slow pipeline.
	maxPendingWindows = 4
	// firstWindow bounds the first window, so that a user who has just started the collector soon sees something.
	firstWindow = 5 * time.Second
	// retryCPU is the interval of attempts to start the CPU profiler while another profile is running.
	retryCPU = time.Second
)

// owner is the receiver that profiles this process. There can be only one: the runtime has one CPU profiler, and two
// receivers would send the same data twice.
var owner struct {
	sync.Mutex
	id *component.ID
}

// Recorder profiles the collector. CPU profiles of one window follow each other without a pause; the other profiles are
// taken as each window ends. Recording never waits for the pipeline: another goroutine decodes and delivers the
// windows.
type Recorder struct {
	cfg    *Config
	set    receiver.Settings
	ingest *ingest.Ingester
	worker worker.Worker
	id     ingest.Identity

	cpu     cpuProfiler
	totals  map[string]*totals // by ProfileName
	windows chan []ingest.Payload
	log     *telemetry.Changes
	// mutexBefore is the process's mutex fraction before this receiver set its own.
	mutexBefore int
}

// New returns a recorder that is not started.
func New(cfg *Config, set receiver.Settings, in *ingest.Ingester) *Recorder {
	return &Recorder{cfg: cfg, set: set, ingest: in, log: ingest.Changes(set.Logger)}
}

// Start sets the runtime's sampling rates, and begins to profile after the initial delay.
func (s *Recorder) Start(context.Context, component.Host) error {
	if err := s.own(); err != nil {
		return err
	}
	s.id = ingest.NewIdentity()
	for key, value := range s.set.Resource.Attributes().All() {
		value.CopyTo(s.id.Derived.PutEmpty(key))
	}
	// At 0 or below, a rate stays as something else, such as the pprof extension, has set it.
	if s.cfg.MutexProfileFraction > 0 {
		s.mutexBefore = runtime.SetMutexProfileFraction(s.cfg.MutexProfileFraction)
	}
	if s.cfg.BlockProfileFraction > 0 {
		runtime.SetBlockProfileRate(s.cfg.BlockProfileFraction)
	}
	s.cpu = cpuProfiler{logger: s.set.Logger}
	s.totals = map[string]*totals{}
	for _, name := range s.others() {
		s.totals[kind.Canonical(name)] = &totals{baseline: decode.NewBaseline(0)}
	}
	s.windows = make(chan []ingest.Payload, maxPendingWindows)
	s.worker.Start(func(stopping, deliver context.Context) {
		// record closes the channel; deliverWindows ends when it is empty.
		s.worker.Go(func() { s.deliverWindows(deliver) })
		s.record(stopping)
	})
	return nil
}

// Shutdown ends the last window early and delivers it.
func (s *Recorder) Shutdown(ctx context.Context) error {
	err := s.worker.Shutdown(ctx)
	if s.cfg.MutexProfileFraction > 0 {
		runtime.SetMutexProfileFraction(s.mutexBefore)
	}
	if s.cfg.BlockProfileFraction > 0 {
		// The rate before is unknown: the runtime has no function for it. It is 0 unless a program sets it.
		runtime.SetBlockProfileRate(0)
	}
	owner.Lock()
	owner.id = nil
	owner.Unlock()
	return err
}

func (s *Recorder) own() error {
	owner.Lock()
	defer owner.Unlock()
	if owner.id != nil {
		return fmt.Errorf("receiver %q profiles this process already: configure `self` once", owner.id)
	}
	owner.id = &s.set.ID
	return nil
}

// record records windows until ctx ends, the last of them shorter than the others.
func (s *Recorder) record(ctx context.Context) {
	defer close(s.windows)
	if !await.Sleep(ctx, s.cfg.InitialDelay) {
		return
	}
	window := time.NewTicker(min(firstWindow, s.cfg.CollectionInterval))
	defer window.Stop()
	s.cpu.start()
	s.send(ctx, s.otherPayloads())
	for {
		var retry <-chan time.Time // nil while the CPU profiler is this recorder's
		if s.cpu.data == nil {
			retry = time.After(min(retryCPU, s.cfg.CollectionInterval))
		}
		select {
		case <-retry:
			s.cpu.start()
		case <-window.C:
			window.Reset(s.cfg.CollectionInterval)
			payloads := s.cpuPayload()
			s.cpu.start()
			s.send(ctx, append(payloads, s.otherPayloads()...))
		case <-ctx.Done():
			s.send(ctx, s.cpuPayload())
			return
		}
	}
}

// cpuPayload returns the CPU profile since the last one, or nothing if somebody else has the CPU profiler.
func (s *Recorder) cpuPayload() []ingest.Payload {
	if data := s.cpu.stop(); data != nil {
		return []ingest.Payload{{Format: formats.Pprof, Data: data, Identity: s.id, ProfileName: kind.ProcessCPU}}
	}
	return nil
}

// others are the runtime's names of the profiles that it keeps from the process's start.
func (s *Recorder) others() []string {
	names := []string{"heap", "goroutine"}
	if s.cfg.MutexProfileFraction > 0 {
		names = append(names, "mutex")
	}
	if s.cfg.BlockProfileFraction > 0 {
		names = append(names, "block")
	}
	return names
}

// otherPayloads returns the profiles that the runtime keeps from the process's start.
func (s *Recorder) otherPayloads() (payloads []ingest.Payload) {
	for _, name := range s.others() {
		var data bytes.Buffer
		if err := pprof.Lookup(name).WriteTo(&data, 0); err != nil {
			s.set.Logger.Error("cannot write the runtime's profile", zap.String("profile", name), zap.Error(err))
			continue
		}
		payloads = append(payloads,
			ingest.Payload{Format: formats.Pprof, Data: data.Bytes(), Identity: s.id, ProfileName: kind.Canonical(name)})
	}
	return payloads
}

// send passes a window on without waiting: while maxPendingWindows wait for the pipeline, new windows are dropped and
// counted.
func (s *Recorder) send(ctx context.Context, payloads []ingest.Payload) {
	select {
	case s.windows <- payloads:
	default:
		for range payloads {
			s.ingest.CountRejected(ctx, errOverrun)
		}
		s.set.Logger.Warn("the pipeline is behind; dropped a window of profiles", zap.Int("profiles", len(payloads)))
	}
}

// deliverWindows delivers the windows one after another, because totals become differences to the window before. It
// delivers the profiles of a window concurrently, since each delivery may wait until a batch is full.
func (s *Recorder) deliverWindows(ctx context.Context) {
	for payloads := range s.windows {
		errs := make([]error, len(payloads))
		var deliveries sync.WaitGroup
		for i, p := range payloads {
			deliveries.Go(func() { errs[i] = s.deliver(ctx, p) })
		}
		deliveries.Wait()
		err := errors.Join(errs...)
		s.log.Note(ingest.StateOf(err), err)
	}
}

func (s *Recorder) deliver(ctx context.Context, p ingest.Payload) error {
	// Once the time for shutdown is up, nothing can be delivered, and decoding would only delay it.
	err := ctx.Err()
	if err == nil {
		// The payload is in memory already; the reservation is for its decoded form.
		p.Reservation = s.ingest.Begin()
		defer p.Reservation.Release()
		err = s.ingestTotals(ctx, p)
	}
	if err == nil {
		return nil
	}
	s.ingest.CountRejected(ctx, err)
	return fmt.Errorf("profile %q: %w", p.ProfileName, err)
}

// totals is the state of a profile that the runtime counts from the process's start.
type totals struct {
	baseline *decode.Baseline
	// isBegun means that a payload was delivered, with which the next is compared.
	isBegun bool
}

// ingestTotals delivers the change since the last window that the pipeline accepted. It delivers the first one
// unchanged, as the change since the process began.
func (s *Recorder) ingestTotals(ctx context.Context, p ingest.Payload) error {
	known := s.totals[p.ProfileName]
	if known == nil {
		return s.ingest.Ingest(ctx, p, s.cfg.Timeout)
	}
	p.Baseline, p.Fetched = known.baseline, time.Now()
	pd, _, err := s.ingest.Decode(ctx, p)
	if err == nil && !known.isBegun {
		// The first is delivered whole, but not before the baseline has it: otherwise the next would be delivered whole too.
		p.Baseline, p.Fetched = nil, time.Time{}
		pd, _, err = s.ingest.Decode(ctx, p)
	}
	if err != nil {
		known.baseline.Discard()
		return err
	}
	if pd.SampleCount() > 0 {
		err = s.ingest.Deliver(ctx, pd, s.cfg.Timeout)
	}
	if err != nil && !otlpstatus.IsPermanent(err) {
		known.baseline.Discard()
		return err
	}
	known.isBegun = true
	known.baseline.Commit()
	return err
}
