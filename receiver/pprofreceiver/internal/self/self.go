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
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profilekind"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/worker"
)

var errOverrun = ingest.Reject(ingest.Overrun, errors.New("the pipeline is behind"))

const (
	// windowsInHand bounds what waits for a slow pipeline, in windows of `collection_interval`.
	windowsInHand = 4
	// firstWindow bounds the first window: whoever has just started the collector wants to see something.
	firstWindow = 5 * time.Second
	// retryCPU is how soon the CPU profiler is asked again while somebody else has it.
	retryCPU = time.Second
)

// owner is the receiver that profiles this process. There is one: the runtime has one CPU
// profiler, and two receivers would send the same data twice.
var owner struct {
	sync.Mutex
	id *component.ID
}

// Recorder profiles the collector. CPU windows follow each other without a pause; the others are taken
// as each window ends. Sampling never waits for the pipeline: windows are handed to a goroutine
// that decodes and delivers them.
type Recorder struct {
	cfg    *Config
	set    receiver.Settings
	ingest *ingest.Ingester
	worker worker.Worker
	id     ingest.Identity

	cpu     cpuProfiler
	totals  map[string]*totals // by ProfileName
	windows chan []ingest.Payload
	log     ingest.ChangeLog
	// mutexBefore is the process's mutex fraction before this receiver set its own.
	mutexBefore int
}

// New returns a recorder that is not started.
func New(cfg *Config, set receiver.Settings, in *ingest.Ingester) *Recorder {
	return &Recorder{cfg: cfg, set: set, ingest: in, log: ingest.ChangeLog{Logger: set.Logger}}
}

// Start sets the runtime's rates and begins to profile after the initial delay.
func (s *Recorder) Start(context.Context, component.Host) error {
	if err := s.own(); err != nil {
		return err
	}
	s.id = ingest.NewIdentity()
	for key, value := range s.set.Resource.Attributes().All() {
		value.CopyTo(s.id.Derived.PutEmpty(key))
	}
	// At 0 or below the rates stay as somebody else, such as the pprof extension, has set them.
	if s.cfg.MutexProfileFraction > 0 {
		s.mutexBefore = runtime.SetMutexProfileFraction(s.cfg.MutexProfileFraction)
	}
	if s.cfg.BlockProfileFraction > 0 {
		runtime.SetBlockProfileRate(s.cfg.BlockProfileFraction)
	}
	s.cpu = cpuProfiler{logger: s.set.Logger}
	s.totals = map[string]*totals{}
	for _, name := range s.others() {
		s.totals[profilekind.Canonical(name)] = &totals{baseline: pprofconv.NewBaseline(pprofconv.BaselineOptions{})}
	}
	s.windows = make(chan []ingest.Payload, windowsInHand)
	s.worker.Start(func(stopping, deliver context.Context) {
		// The recorder closes windows; the deliverer ends when it has emptied it.
		s.worker.Go(func() { s.deliverWindows(deliver) })
		s.record(stopping)
	})
	return nil
}

// Shutdown ends the last window early and lets it reach the pipeline.
func (s *Recorder) Shutdown(ctx context.Context) error {
	err := s.worker.Shutdown(ctx)
	if s.cfg.MutexProfileFraction > 0 {
		runtime.SetMutexProfileFraction(s.mutexBefore)
	}
	if s.cfg.BlockProfileFraction > 0 {
		// The runtime does not tell what the rate was before; it is off unless a program sets it.
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

// record makes windows until ctx ends, the last of them shorter than the others.
func (s *Recorder) record(ctx context.Context) {
	defer close(s.windows)
	if !worker.Sleep(ctx, s.cfg.InitialDelay) {
		return
	}
	window := time.NewTicker(min(firstWindow, s.cfg.CollectionInterval))
	defer window.Stop()
	retry := time.NewTicker(min(retryCPU, s.cfg.CollectionInterval))
	defer retry.Stop()
	s.cpu.start()
	s.send(ctx, s.otherPayloads(nil))
	for {
		select {
		case <-retry.C:
			s.cpu.start()
		case <-window.C:
			window.Reset(s.cfg.CollectionInterval)
			payloads := s.cpuPayload(nil)
			s.cpu.start()
			s.send(ctx, s.otherPayloads(payloads))
		case <-ctx.Done():
			s.send(ctx, s.cpuPayload(nil))
			return
		}
	}
}

func (s *Recorder) cpuPayload(payloads []ingest.Payload) []ingest.Payload {
	if data := s.cpu.stop(); data != nil {
		payloads = append(payloads, ingest.Payload{Format: formats.Pprof, Data: data, Identity: s.id, ProfileName: profilekind.ProcessCPU})
	}
	return payloads
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

// otherPayloads adds the profiles that the runtime keeps from the process's start.
func (s *Recorder) otherPayloads(payloads []ingest.Payload) []ingest.Payload {
	for _, name := range s.others() {
		var data bytes.Buffer
		if err := pprof.Lookup(name).WriteTo(&data, 0); err != nil {
			s.set.Logger.Error("cannot write the runtime's profile", zap.String("profile", name), zap.Error(err))
			continue
		}
		payloads = append(payloads, ingest.Payload{Format: formats.Pprof, Data: data.Bytes(), Identity: s.id, ProfileName: profilekind.Canonical(name)})
	}
	return payloads
}

// send hands a window on without waiting: while the pipeline is behind by windowsInHand, new
// windows are dropped and counted.
func (s *Recorder) send(ctx context.Context, payloads []ingest.Payload) {
	select {
	case s.windows <- payloads:
	default:
		for range payloads {
			s.ingest.CountRejected(ctx, errOverrun)
		}
		s.set.Logger.Warn("the pipeline is behind; a window of profiles is dropped", zap.Int("profiles", len(payloads)))
	}
}

// deliverWindows delivers a window's profiles at once, since each may wait until the batch that holds it is full. Windows
// follow one another, because what is told of a profile since the start becomes the difference to the one before.
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
	// Once the shutdown's time is up, decoding what cannot be delivered would only make it late.
	err := ctx.Err()
	if err == nil {
		// What the process knows of itself is in memory already; the claim is for what it is decoded to.
		p.Claim = s.ingest.Begin()
		p.Claim.Complete()
		defer p.Claim.Release()
		err = s.ingestTotals(ctx, p)
	}
	if err == nil {
		return nil
	}
	s.ingest.CountRejected(ctx, err)
	return fmt.Errorf("profile %q: %w", p.ProfileName, err)
}

// totals is what is known of a profile that the runtime counts from the process's start.
type totals struct {
	baseline *pprofconv.Baseline
	// isBegun says that a payload was delivered, with which the next is compared.
	isBegun bool
}

// ingestTotals delivers what has happened since the last window that the pipeline accepted. The first one is delivered as it is: all
// of it happened since the process began.
func (s *Recorder) ingestTotals(ctx context.Context, p ingest.Payload) error {
	known := s.totals[p.ProfileName]
	if known == nil {
		return s.ingest.Ingest(ctx, p, s.cfg.Timeout)
	}
	if !known.isBegun {
		if err := s.ingest.Ingest(ctx, p, s.cfg.Timeout); err != nil {
			return err
		}
		p.Claim = s.ingest.Begin()
		p.Claim.Complete()
		defer p.Claim.Release()
	}
	p.Baseline, p.Fetched = known.baseline, time.Now()
	pd, _, err := s.ingest.Decode(ctx, p)
	if err != nil {
		known.baseline.Discard()
		return err
	}
	if known.isBegun && pd.SampleCount() > 0 {
		err = s.ingest.Deliver(ctx, pd, s.cfg.Timeout)
	}
	if err != nil && !consumererror.IsPermanent(err) {
		known.baseline.Discard()
		return err
	}
	known.isBegun = true
	known.baseline.Commit()
	return err
}
