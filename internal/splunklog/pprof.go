// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"encoding/base64"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// readPprof reads a body that is the base64 of a pprof, compressed or not, or that pprof itself.
func (t *translator) readPprof(body string) *Rejection {
	if min(t.bytesLeft, t.workLeft, t.samplesLeft) <= 0 {
		return reject(ReasonTooLarge, "the records before it used up what one request may carry")
	}
	isBytes := t.record.log.Body().Type() == pcommon.ValueTypeBytes
	if isBytes && strings.HasPrefix(body, "\x1f\x8b") {
		t.payload = append(t.payload[:0], body...)
	} else if err := t.decodeBase64(body); err != nil {
		return reject(ReasonBase64, "the body is not base64: %w", err)
	}
	limits := pprofconv.Limits{
		MaxProfileBytes: min(t.bytesLeft, t.workLeft), MaxSamples: t.samplesLeft, MaxStackDepth: t.opts.MaxStackDepth,
		MaxTextBytes: t.opts.MaxTextBytes, MaxExpansion: t.opts.MaxExpansion,
	}
	t.groupBytesLeft = minGroupBytes + t.opts.MaxExpansion*len(t.payload)
	t.attributeOf = t.attributeOf[:0]
	clear(t.attributeOfGroup)
	stats, err := pprofconv.Read(t.payload, t.dict, limits, t.unnamed(), t.visit)
	t.bytesLeft -= stats.UncompressedBytes
	t.workLeft -= stats.UncompressedBytes
	t.result.add(&stats)
	switch {
	case errors.Is(err, pprofconv.ErrTooLarge):
		if stats.UncompressedBytes == 0 { // given up while it was unpacked
			t.workLeft -= limits.MaxProfileBytes
		}
		return reject(ReasonTooLarge, "%w", err)
	case err != nil:
		return reject(ReasonNotPprof, "%w", err)
	}
	return nil
}

// decodeBase64 decodes with or without padding and line breaks, in either alphabet.
func (t *translator) decodeBase64(body string) error {
	body = strings.TrimRight(body, "=\r\n\t ")
	encoding := base64.RawStdEncoding
	if strings.IndexByte(body, '-') >= 0 || strings.IndexByte(body, '_') >= 0 {
		encoding = base64.RawURLEncoding
	}
	t.encoded = append(t.encoded[:0], body...)
	var err error
	t.payload, err = encoding.AppendDecode(t.payload[:0], t.encoded)
	return err
}

// minGroupBytes is what arrays of labels may take in a body of any size.
const minGroupBytes = 64 << 10

// visit reads one sample of a pprof.
func (t *translator) visit(s pprofconv.Sample) {
	o := observation{Identity: compact.Identity{Stack: s.Stack}, period: t.record.period, value: 1}
	if !t.readLabels(s.Labels, &o) {
		t.result.Dropped[pprofconv.DropOverBudget]++
		return
	}
	if o.time == 0 {
		o.time = t.record.time
	}
	switch {
	case t.record.described:
		// A CPU sample without a value of its own counts 1; whether it has one the description says.
		if len(s.Values) > 0 {
			o.value = s.Values[0]
		}
	case t.record.typ == TypeAllocation:
		o.valued, o.period, o.value = true, 0, 0
		if len(s.Values) > 0 {
			o.value = s.Values[0]
		}
	case len(s.Values) > 0 && s.Values[0] != 1:
		// No agent is known to do this; what it would mean is a count.
		o.valued, o.value = true, s.Values[0]
	}
	t.add(&o)
}
