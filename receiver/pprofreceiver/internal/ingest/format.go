// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// AllFormats returns the names of all formats, which is the default of `formats`.
func AllFormats() []string {
	names := []string{string(formats.Pprof)}
	for _, format := range formats.Decodable {
		names = append(names, string(format))
	}
	return names
}

// How a recording without wall-clock times was placed in time.
const (
	guessArrival  = "arrival"
	guessModified = "file_modified"
)

// anchor returns when the recording ended.
func (p *Payload) anchor() events.Anchor {
	end, guess := time.Now(), guessArrival
	switch {
	case !p.Ended.IsZero():
		end, guess = p.Ended, ""
	case !p.Until.IsZero():
		end, guess = p.Until, ""
	case !p.Modified.IsZero():
		end, guess = p.Modified, guessModified
	}
	return events.Anchor{EndNanos: uint64(max(end.UnixNano(), 0)), Guess: guess}
}

func (in *Ingester) accepts(format formats.Format) bool {
	return slices.Contains(in.Config.Formats, string(format))
}

// SniffFormat returns the format of data by its content: one that formats.Decode reads, or else pprof, whose decoder
// explains the fault of the data. It does not look into lz4, whose reader must be reserved.
func SniffFormat(data []byte) formats.Format {
	if decode.IsLZ4(data) {
		return formats.Pprof
	}
	if seen := formats.Sniff(decode.Head(data, formats.SniffBytes)); formats.IsDecodable(seen) {
		return seen
	}
	return formats.Pprof
}

// decodeFormat decodes a payload that is not pprof.
func (in *Ingester) decodeFormat(
	ctx context.Context, p *Payload,
) (pd pprofile.Profiles, stats decode.Stats, err error) {
	if p.Format == formats.GoTrace || p.Format == formats.TraceEvents || p.Format == formats.TorchMemory {
		p.ProfileName, p.IsNamedByTypes = "", false // it has several kinds of profiles, named by their types
	}
	var done formats.Stats
	err = in.build(ctx, p, func(meter *size.Meter) error {
		var err error
		pd, done, err = formats.Decode(p.Data, p.Format, formats.Options{
			Options:       events.Options{MaxStringBytes: in.Limits.MaxStringBytes, Anchor: p.anchor(), Meter: meter},
			MaxPlainBytes: in.limit(p), GoTrace: in.Config.GoTrace.options(), LaunchSizes: in.Config.TraceEvents.LaunchSizes,
			Folded: p.Folded, Period: p.Period, Labels: p.Labels,
		})
		return uncompressed(err)
	})
	stats.UncompressedBytes = int(done.PlainBytes)
	if err != nil {
		if ReasonOf(err) == NotPprof {
			err = Reject(NotPprof, fmt.Errorf("read %s: %w", p.Format, err))
		}
		return pd, stats, err
	}
	stats.Samples = done.Events
	stats.Dropped[scan.DropMalformed] = done.Dropped
	stats.Repaired[scan.RepairInvalidUTF8] = done.InvalidUTF8
	stats.Repaired[scan.RepairTruncatedText] = done.Truncated
	stats.Repaired[scan.RepairDroppedAttribute] = done.LeftOutAttributes
	// What the options of a format left out.
	for reason, n := range map[string]int{events.ReasonTooShort: done.TooShort, events.ReasonFiltered: done.Filtered} {
		if n > 0 {
			in.Metrics.ReceiverPprofDroppedSamples.Add(ctx, int64(n), telemetry.Attributes("reason", reason))
		}
	}
	in.countUnread(ctx, done.Unread)
	if done.GuessedClock {
		in.Metrics.ReceiverPprofGuessedClocks.Add(ctx, 1, telemetry.Attributes("format", string(p.Format)))
	}
	return pd, stats, nil
}

// countFaults counts drops and repairs in a decoded payload.
func (in *Ingester) countFaults(ctx context.Context, stats *decode.Stats) {
	telemetry.AddEach[scan.DropReason](ctx, in.Metrics.ReceiverPprofDroppedSamples, "reason", stats.Dropped[:])
	telemetry.AddEach[scan.Repair](ctx, in.Metrics.ReceiverPprofRepaired, "fault", stats.Repaired[:])
}

// TraceEventsConfig configures the decoding of Chrome's trace events.
type TraceEventsConfig struct {
	// LaunchSizes adds the size of the launch to samples of kernels, which PyTorch's profiler records.
	LaunchSizes bool `mapstructure:"launch_sizes"`
}

// GoTraceConfig configures the decoding of Go execution traces.
type GoTraceConfig struct {
	// Mode is events or aggregated.
	Mode string `mapstructure:"mode"`
	// MinDuration is the shortest interval that becomes an event.
	MinDuration time.Duration `mapstructure:"min_duration"`
}

// The modes of GoTraceConfig.
const (
	goTraceEvents     = "events"
	goTraceAggregated = "aggregated"
)

// DefaultGoTrace returns the default configuration.
func DefaultGoTrace() GoTraceConfig {
	return GoTraceConfig{Mode: goTraceEvents, MinDuration: gotrace.DefaultOptions().MinDuration}
}

// Validate returns all faults.
func (c *GoTraceConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.Mode == goTraceEvents || c.Mode == goTraceAggregated, "`mode` must be events or aggregated, found %q",
		c.Mode)
	faults.Require(c.MinDuration >= 0, "`min_duration` must not be negative, found %v", c.MinDuration)
	return faults.Err()
}

func (c *GoTraceConfig) options() gotrace.Options {
	o := gotrace.DefaultOptions()
	o.Aggregate, o.MinDuration = c.Mode == goTraceAggregated, c.MinDuration
	return o
}
