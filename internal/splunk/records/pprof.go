// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// readPprof reads a body that is the base64 of a pprof, compressed or not, or that pprof itself.
func (t *translator) readPprof(body string) *Rejection {
	if err := t.decodeBase64(body, strings.HasPrefix(body, "\x1f\x8b")); err != nil {
		return err
	}
	limits := t.opts.Limits
	limits.MaxProfileBytes, limits.MaxSamples = min(t.bytesLeft, t.workLeft), t.samplesLeft
	if t.record.typ == TypeOther && !t.record.described {
		return t.readTyped(limits)
	}
	stats, err := decode.Read(t.payload, t.dict, decode.ReadOptions{
		Limits: limits, Unnamed: t.unnamed(), Meter: &t.scratch,
		// Agents write the types of allocations alone.
		Untyped: !t.record.described && t.record.typ != TypeAllocation,
	}, t.visit)
	if errors.Is(err, decode.ErrTyped) {
		return t.readTyped(limits)
	}
	return t.afterPprof(limits, &stats, err)
}

// afterPprof charges for a pprof, and returns the rejection for an error.
func (t *translator) afterPprof(limits scan.Limits, stats *decode.Stats, err error) *Rejection {
	t.bytesLeft -= stats.UncompressedBytes
	t.workLeft -= stats.UncompressedBytes
	t.result.add(stats)
	switch {
	case t.scratch.Err() != nil: // the request has ended
	case errors.Is(err, scan.ErrTooLarge):
		if stats.UncompressedBytes == 0 { // the limit was exceeded while decompressing
			t.workLeft -= limits.MaxProfileBytes
		}
		return reject(ReasonTooLarge, "%w", err)
	case err != nil:
		return reject(ReasonNotPprof, "%w", err)
	}
	return nil
}

// readTyped reads a pprof that states its types, as contrib's exporter splunk_hec writes them: the record's resource
// and scope are those of its profiles.
func (t *translator) readTyped(limits scan.Limits) *Rejection {
	pd, stats, err := decode.Decode(t.payload, decode.Options{Limits: limits, Meter: &t.scratch})
	if rejected := t.afterPprof(limits, &stats, err); rejected != nil || t.scratch.Err() != nil {
		return rejected
	}
	if stats.Repaired[scan.RepairMissingSampleTypes] > 0 {
		return t.unknownType()
	}
	for _, rp := range pd.ResourceProfiles().All() {
		t.at.resource.Resource().CopyTo(rp.Resource())
		for _, sp := range rp.ScopeProfiles().All() {
			t.at.scope.Scope().CopyTo(sp.Scope())
			for _, p := range sp.Profiles().All() {
				if p.Time() == 0 {
					p.SetTime(pcommon.Timestamp(max(t.record.time-int64(p.DurationNano()), 0)))
				}
			}
		}
	}
	if rejected := t.reserveWhole(size.OfProfiles(pd), stats.UncompressedBytes); rejected != nil {
		return rejected
	}
	return t.addWhole(pd, stats.UncompressedBytes)
}

// decodeBase64 decodes a body into t.payload: with or without padding and line breaks, in either alphabet. If it is of
// bytes and isPlain, it is not base64.
func (t *translator) decodeBase64(body string, isPlain bool) *Rejection {
	if min(t.bytesLeft, t.workLeft, t.samplesLeft) <= 0 {
		return reject(ReasonTooLarge, "earlier records used up what one request may carry")
	}
	if err := t.scratch.Grow(2 * len(body)); err != nil {
		return reject(ReasonTooLarge, "%w", err)
	}
	if isPlain && t.record.log.Body().Type() == pcommon.ValueTypeBytes {
		t.payload = append(t.payload[:0], body...)
		return nil
	}
	body = strings.TrimRight(body, "=\r\n\t ")
	encoding := base64.RawStdEncoding
	if strings.IndexByte(body, '-') >= 0 || strings.IndexByte(body, '_') >= 0 {
		encoding = base64.RawURLEncoding
	}
	t.encoded = append(t.encoded[:0], body...)
	var err error
	if t.payload, err = encoding.AppendDecode(t.payload[:0], t.encoded); err != nil {
		return reject(ReasonBase64, "the body is not base64: %w", err)
	}
	return nil
}

// visit adds one sample of a pprof.
func (t *translator) visit(s decode.Sample) {
	const checkEvery = 1 << 8
	if t.visited++; t.visited%checkEvery == 0 && t.opts.Meter.GrowTo(t.memory()) != nil || t.opts.Meter.Err() != nil {
		return // the request has ended
	}
	o := observation{Identity: compact.Identity{Stack: s.Stack, Link: s.Link}, period: t.record.period, value: 1}
	t.readLabels(&s, &o)
	if len(s.Values) > 0 {
		o.value = s.Values[0]
	} else if t.record.typ == TypeAllocation && !t.record.described {
		o.value = 0
	}
	t.add(&o)
}

// readLabels reads a sample's time and period from its labels; the other labels become its attributes.
func (t *translator) readLabels(s *decode.Sample, o *observation) {
	attributes := t.list[:0]
	bad := &t.result.BadTimes
	for _, labels := range s.Labels {
		first := &labels.Labels[0]
		switch first.Key {
		case keyEventTime:
			millis, ok := labelNumber(first)
			if millis >= year2000 && millis < year2100 { // it is in seconds
				millis *= 1000
			}
			o.time = millisToNanos(millis, ok, maxTimeMillis, bad)
			continue
		case keyEventPeriod:
			if t.record.typ == TypeCPU {
				millis, ok := labelNumber(first)
				o.period = millisToNanos(millis, ok, maxPeriodMillis, bad)
				continue
			}
		case KeyEventTimeNanos:
			// Labels are ordered by key: the time in milliseconds comes before it.
			if nanos, ok := labelNumber(first); ok {
				o.time = exactTime(o.time, nanos)
				continue
			}
		case keyEventPeriodNanos:
			if nanos, ok := labelNumber(first); ok && t.record.typ == TypeCPU {
				o.period = exactTime(o.period, nanos)
				continue
			}
		}
		attributes = append(attributes, int32(t.labelAttribute(s, labels)))
	}
	t.list = attributes
	o.Attributes = t.dict.AttributeSets.Intern(attributes)
}

func (t *translator) labelAttribute(s *decode.Sample, labels decode.LabelGroup) dictionary.AttributeIndex {
	if first := &labels.Labels[0]; len(labels.Labels) == 1 {
		if value, ok := typedValue(first); ok {
			return t.dict.Attributes.Intern(dictionary.Attribute{Key: t.dict.Strings.Intern(first.Key), Value: value})
		}
	}
	return s.Attribute(labels)
}

// typedValue returns the value of a label in the type of the attribute of its name in the semantic conventions
// (registry/attributes/thread), if the label has another type: some agents write strings, others numbers.
func typedValue(l *decode.Label) (value dictionary.Value, ok bool) {
	switch {
	case l.Key == keyTruncated && !l.IsStr:
		return dictionary.BoolValue(l.Num != 0), true
	case l.Key == keyTruncated:
		truth, err := strconv.ParseBool(l.Str)
		return dictionary.BoolValue(truth), err == nil
	case l.IsStr && (l.Key == keyThreadID || l.Key == keyThreadOSID):
		n, ok := parseNumber(l.Str)
		return dictionary.IntValue(n), ok
	}
	return dictionary.Value{}, false
}

func labelNumber(l *decode.Label) (int64, bool) {
	if l.IsStr {
		return parseNumber(l.Str)
	}
	return l.Num, true
}

// writePprof writes the pprof of Splunk's records: without sample types; an observation is a sample with its time and
// period as labels, and has a value only if that is not just a count of one. It stops at about room bytes, and returns
// how many observations it wrote, at least one, and how many frames they have.
func (s *sink) writePprof(p pprofile.Profile, typ Type, room int) (written, frames int) {
	s.pprof.Begin(room)
	var scratch [4]encode.Number
	period := s.periodOf(p, typ)
	for _, sample := range p.Samples().All() {
		for i := range observationsIn(sample) {
			time := uint64(p.Time())
			if times := sample.TimestampsUnixNano(); i < times.Len() {
				time = times.At(i)
			}
			labels := appendExact(scratch[:0], keyEventPeriod, keyEventPeriodNanos, period)
			labels = appendExact(labels, keyEventTime, KeyEventTimeNanos, int64(time))
			var values []int64
			if i < sample.Values().Len() {
				values = []int64{sample.Values().At(i)}
			} else if typ == TypeAllocation {
				values = []int64{1}
			}
			if !s.pprof.Add(sample, values, labels) {
				return written, frames
			}
			written++
			frames += s.framesOf(sample.StackIndex())
		}
	}
	return written, frames
}

// appendExact appends a time or period in milliseconds, and also in nanoseconds if that is not exact.
func appendExact(labels []encode.Number, millis, nanos string, value int64) []encode.Number {
	if value != 0 {
		labels = append(labels, encode.Number{Key: millis, Value: value / millisecond})
	}
	if value%millisecond != 0 {
		labels = append(labels, encode.Number{Key: nanos, Value: value})
	}
	return labels
}
