// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package processesreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/hotspot"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// javaSource has a JVM record itself, and reads its recording.
type javaSource struct {
	r        *processes
	id       target.ID
	resource pcommon.Map
	// recording is nil while the JVM does not record for us.
	recording *hotspot.Recording
}

func (r *processes) newJavaSource(t *target.Target, resource pcommon.Map) *javaSource {
	return &javaSource{r: r, id: t.ID, resource: resource}
}

// collect starts the recording, or delivers its new events.
func (s *javaSource) collect(ctx context.Context, t *target.Target) error {
	if s.recording == nil {
		return s.start(t)
	}
	reservation := s.r.sink.budget.Begin()
	defer reservation.Release()
	chunks, err := s.recording.Dump(t, func(bytes int64) ([]byte, error) {
		if limit := dumpFactor * s.r.cfg.Java.MaxRecordingBytes; bytes > limit {
			return nil, fmt.Errorf("a recording (`java::max_recording_bytes`): %w",
				&budget.TooLargeError{Need: bytes, Limit: limit})
		}
		if err := reservation.ReserveBody(ctx, bytes); err != nil {
			return nil, err
		}
		return make([]byte, bytes), nil
	})
	if errors.Is(err, hotspot.ErrEnded) { // somebody else did that
		return s.start(t)
	}
	if err != nil || len(chunks) == 0 {
		return err
	}
	err = s.r.sink.deliver(ctx, &profiles{
		format: "jfr", bytes: len(chunks), resource: s.resource,
		decode: func(meter *size.Meter) (pprofile.Profiles, error) {
			pd, _, err := formats.Decode(chunks, formats.JFR, formats.Options{
				Options: events.Options{Anchor: events.Anchor{EndNanos: uint64(time.Now().UnixNano())}, Meter: meter},
				Period:  s.r.cfg.Java.CPUPeriod,
			})
			return pd, err
		},
	})
	if isForNow(err) {
		s.recording.Again()
	}
	return err
}

// dumpFactor is by how much a file may be above what a JVM is told to keep: it keeps whole chunks.
const dumpFactor = 2

func (s *javaSource) start(t *target.Target) error {
	before := s.recording
	s.recording = nil
	mappings, err := t.Mappings()
	if err != nil {
		return err
	}
	vm, err := hotspot.Inspect(t, mappings)
	if err != nil {
		return err
	}
	cfg := &s.r.cfg.Java
	recording := &hotspot.Recording{VM: vm, Timeout: cfg.Timeout}
	if before != nil {
		recording.Replace(before)
	}
	// It keeps two intervals, in case one is missed.
	if err := recording.Start(t, &cfg.Settings, 2*s.r.cfg.Interval); err != nil {
		return err
	}
	s.recording = recording
	return nil
}

// close ends the recording, unless the process has ended.
func (s *javaSource) close() {
	if s.recording == nil {
		return
	}
	t, err := target.Open(s.r.cfg.ProcRoot, s.id.PID)
	if err != nil {
		return
	}
	defer t.Close()
	if t.ID == s.id {
		_ = s.recording.Stop(t) // a JVM that does not answer keeps at most max_recording_bytes of it
	}
}
