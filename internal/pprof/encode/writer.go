// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Writer writes pprofs sample by sample, for formats that use pprof in their own way: without sample types or a header,
// and with labels that OTLP has fields for. Attributes and links become the labels that Encode makes of them.
type Writer struct {
	e *encoder
	// samples is the number of samples in the pprof.
	samples int
}

// NewWriter returns a writer of pprofs whose samples refer to the dictionary of pd, which must follow OTLP's rules.
// reserved are the keys of labels that are the format's own: attributes with these names are left out. Call Close when
// it is no longer used.
func NewWriter(pd pprofile.Profiles, reserved ...string) *Writer {
	e := newEncoder(pd)
	e.reservedNames = reserved
	e.isSized = true // Begin sets the budget
	return &Writer{e: e}
}

// Close returns the writer's memory.
func (w *Writer) Close() {
	w.e.timestampLabel = w.e.timestampLabel[:0]
	w.e.release()
}

// Begin begins the next pprof, which may take about room bytes.
func (w *Writer) Begin(room int) {
	w.e.reset()
	w.e.budget, w.samples = int64(room), 0
}

// Number is a numeric label.
type Number struct {
	Key   string
	Value int64
}

// Add writes a sample with the stack, attributes and link of s, these values and these labels. It returns false if
// there was no room; there always is for the first one.
func (w *Writer) Add(s pprofile.Sample, values []int64, numbers []Number) bool {
	e := w.e
	e.timestampLabel = e.timestampLabel[:0]
	for _, n := range numbers {
		l := label{key: e.strings.add(n.Key), num: n.Value}
		if n.Value == 0 {
			l.unit = e.strings.notZero(0)
		}
		e.timestampLabel = appendLabel(e.timestampLabel, l)
	}
	room, before := e.budget, e.stats.Samples
	if w.samples == 0 {
		e.budget = math.MaxInt64 / 8
	}
	labels := e.labelsOf(s)
	e.writeSample(s, &labels, values)
	e.budget = room
	w.samples += e.stats.Samples - before
	return e.stats.Samples > before
}

// LeftOut returns how many attributes of samples, since NewWriter, were left out for their names.
func (w *Writer) LeftOut() int { return w.e.stats.LeftOut }

// Bytes ends the pprof and returns it. The result is valid until Begin or Close.
func (w *Writer) Bytes() []byte {
	e := w.e
	e.writeLocations()
	e.writeFunctions()
	e.writeMappings()
	e.writeStrings()
	return e.out
}
