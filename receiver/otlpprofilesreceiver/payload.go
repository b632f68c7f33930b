// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// maxPayloadBytes bounds the plain bytes of the original payloads of a request.
const maxPayloadBytes = 32 << 20

// The names of formats in original_payload_format (OTLP specification, profiles) that are read.
const (
	payloadJFR   = "jfr"
	payloadPprof = "pprof"
)

// unpack replaces profiles that have no samples by what their original payloads have: dd-trace-java can send recordings
// of Flight Recorder so.
func unpack(pd pprofile.Profiles, meter *size.Meter) (pprofile.Profiles, error) {
	messages, left := []pprofile.Profiles{pd}, maxPayloadBytes
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			var failed error
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				if failed != nil || !isUnread(p) {
					return false
				}
				read, plain, err := readPayload(p, max(left, 1), meter)
				left -= plain
				if err != nil {
					failed = fmt.Errorf("a profile without samples has an original_payload (%s) that cannot be read: %w",
						p.OriginalPayloadFormat(), err)
					return false
				}
				for _, to := range read.ResourceProfiles().All() {
					rp.Resource().CopyTo(to.Resource())
					for _, scope := range to.ScopeProfiles().All() {
						scope.Scope().SetName(sp.Scope().Name())
						scope.Scope().SetVersion(sp.Scope().Version())
					}
				}
				messages = append(messages, read)
				return true
			})
			if failed != nil {
				return pd, failed
			}
		}
	}
	if len(messages) == 1 {
		return pd, nil
	}
	for _, read := range messages {
		if err := meter.Grow(size.OfProfiles(read)); err != nil { // of the merged message
			return pd, err
		}
	}
	return new(compact.Batch).Merge(messages), nil
}

func isUnread(p pprofile.Profile) bool {
	format := p.OriginalPayloadFormat()
	return p.Samples().Len() == 0 && p.OriginalPayload().Len() > 0 && (format == payloadJFR || format == payloadPprof)
}

// readPayload returns the profiles of a payload of at most limit plain bytes, and how many it has.
func readPayload(p pprofile.Profile, limit int, meter *size.Meter) (pprofile.Profiles, int, error) {
	data := p.OriginalPayload().AsRaw()
	if p.OriginalPayloadFormat() == payloadPprof {
		pd, stats, err := decode.Decode(data, decode.Options{Limits: scan.Limits{MaxProfileBytes: limit}, Meter: meter})
		return pd, stats.UncompressedBytes, err
	}
	pd, stats, err := formats.Decode(data, formats.JFR, formats.Options{MaxPlainBytes: limit,
		Options: events.Options{Meter: meter, Anchor: events.Anchor{EndNanos: uint64(p.Time()) + p.DurationNano()}}})
	return pd, int(stats.PlainBytes), err
}
