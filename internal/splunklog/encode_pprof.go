// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"bytes"
	"encoding/base64"
	"sync"

	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
)

// writePprof writes the pprof of Splunk's records: without sample types; an observation is a sample with its time and
// period as labels, and has a value only if that says more than that something was seen. It stops at about room
// bytes, and returns the number of observations written, one at least, and that of their frames.
func (s *sink) writePprof(p pprofile.Profile, typ Type, room int) (written, frames int) {
	period := int64(0)
	if typ == TypeCPU {
		period = periodOfProfile(s.dict, p)
	}
	s.pprof.Begin(room)
	var scratch [4]pprofencode.Number
	for _, sample := range p.Samples().All() {
		for m := range moments(p, sample) {
			labels := appendExact(scratch[:0], keyEventPeriod, keyEventPeriodNanos, period)
			labels = appendExact(labels, keyEventTime, KeyEventTimeNanos, int64(m.time))
			var values []int64
			if m.counted || typ == TypeAllocation {
				values = []int64{m.value}
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

// appendExact appends a time or period in milliseconds, and beside it in nanoseconds if it is no whole number of them.
func appendExact(labels []pprofencode.Number, millis, nanos string, value int64) []pprofencode.Number {
	if value != 0 {
		labels = append(labels, pprofencode.Number{Key: millis, Value: value / millisecond})
	}
	if value%millisecond != 0 {
		labels = append(labels, pprofencode.Number{Key: nanos, Value: value})
	}
	return labels
}

// gzipBase64 returns a pprof as the text that a record carries.
func gzipBase64(pprof []byte) string {
	z := gzips.Get().(*gzip.Writer)
	defer gzips.Put(z)
	var compressed bytes.Buffer
	z.Reset(&compressed)
	// Writing to a buffer does not fail.
	_, _ = z.Write(pprof)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(compressed.Bytes())
}

// A writer's tables are near a megabyte: making one costs more than compressing an agent's usual record.
var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
