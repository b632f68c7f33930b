// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
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
	switch {
	case !p.Ended.IsZero():
		return events.Anchor{EndNanos: uint64(max(p.Ended.UnixNano(), 0))}
	case !p.Until.IsZero():
		return events.Anchor{EndNanos: uint64(max(p.Until.UnixNano(), 0))}
	case !p.Modified.IsZero():
		return events.Anchor{EndNanos: uint64(max(p.Modified.UnixNano(), 0)), Guess: guessModified}
	default:
		return events.Anchor{EndNanos: uint64(max(time.Now().UnixNano(), 0)), Guess: guessArrival}
	}
}

func (in *Ingester) accepts(format formats.Format) bool {
	return slices.Contains(in.Config.Formats, string(format))
}

// sniffFormat returns the format that data seems to have: one that formats.Decode reads, or else pprof, whose decoder explains what
// is wrong with the data.
func sniffFormat(data []byte) formats.Format {
	if seen := formats.Sniff(decode.Head(data, formats.SniffBytes)); formats.IsDecodable(seen) {
		return seen
	}
	return formats.Pprof
}

// decodeFormat decodes a payload that is not pprof. The error is a *Rejection, or that of ctx.
func (in *Ingester) decodeFormat(ctx context.Context, format formats.Format, p *Payload) (pd pprofile.Profiles, stats decode.Stats, err error) {
	if format == formats.GoTrace {
		p.ProfileName = "" // a trace has several kinds of profiles, named by their types
	}
	var done events.Stats
	err = in.build(ctx, p, func(reserve size.Reserve) error {
		data, err := decode.Uncompress(p.Data, in.limit(p), &size.Meter{Context: ctx, Reserve: reserve})
		if err != nil {
			return uncompressError(err)
		}
		stats.UncompressedBytes = len(data)
		options := formats.Options{
			Options: events.Options{
				MaxStringBytes: in.Limits.MaxStringBytes, Anchor: p.anchor(), Meter: &size.Meter{Context: ctx, Reserve: reserve},
			},
			GoTrace: in.Config.GoTrace.options(),
			Folded:  p.Folded,
			Period:  p.Period,
			Labels:  p.Labels,
		}
		pd, done, err = formats.Decode(data, format, options)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return pd, stats, noTime(ctx)
	case ReasonOf(err) != "":
		return pd, stats, err
	case errors.Is(err, gotrace.ErrThreads), errors.Is(err, gotrace.ErrLegacy), errors.Is(err, events.ErrTooLarge):
		return pd, stats, Reject(TooLarge, err)
	case err != nil:
		return pd, stats, Reject(NotPprof, fmt.Errorf("read %s: %w", format, err))
	}
	stats.Samples = done.Events
	stats.Dropped[scan.DropMalformed] = done.Dropped
	stats.Repaired[scan.RepairInvalidUTF8] = done.InvalidUTF8
	stats.Repaired[scan.RepairTruncatedText] = done.Truncated
	in.countFaults(ctx, &stats)
	in.countLeftOut(ctx, &done)
	if done.GuessedClock {
		in.Metrics.ReceiverPprofGuessedClocks.Add(ctx, 1, telemetry.Attributes("format", string(format)))
	}
	return pd, stats, in.finish(pd, p, &stats)
}
