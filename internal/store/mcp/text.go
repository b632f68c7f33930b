// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

const (
	// maxAnswerBytes bounds the rows of an answer: about ten thousand tokens.
	maxAnswerBytes = 32 << 10
	// maxNameBytes is the longest name or value in an answer: a query finds what it names by it. A function needs less,
	// since a part of its name finds it.
	maxNameBytes, maxFunctionBytes = 1 << 10, 200
	// cut ends what was cut.
	cut = "…"
)

type answer struct{ strings.Builder }

// linef appends a line. Headers and footers are short.
func (a *answer) linef(format string, args ...any) { fmt.Fprintf(a, format+"\n", args...) }

// row appends a line of columns, and reports false if there is no room for it.
func (a *answer) row(columns ...string) bool {
	line := strings.Join(columns, "\t")
	if a.Len()+len(line) >= maxAnswerBytes {
		return false
	}
	a.linef("%s", line)
	return true
}

// rows appends n rows, at most limit, and returns how many were left out.
func (a *answer) rows(n, limit int, columns func(i int) []string) (leftOut int) {
	for i := range min(n, limit) {
		if !a.row(columns(i)...) {
			return n - i
		}
	}
	return max(0, n-limit)
}

// clean returns untrusted text as one line of at most n bytes.
func clean(text string, n int) string {
	isCut := len(text) > n
	if isCut {
		text = text[:n]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r): // nor what changes the direction of a text
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if isCut {
		text += cut
	}
	return text
}

func name(text string) string { return clean(text, maxNameBytes) }

func function(text string) string { return clean(text, maxFunctionBytes) }

// label returns a frame: its name, where it is, and its kind if that is not the program's own code.
func label(f *answers.Frame) string {
	text := function(f.Name)
	if f.File != "" {
		text += " (" + function(path.Base(f.File[max(0, len(f.File)-maxFunctionBytes):]))
		if f.Line > 0 {
			text += ":" + strconv.FormatInt(f.Line, 10)
		}
		text += ")"
	}
	if f.Kind != "" && f.Kind != "user" {
		text += " [" + clean(f.Kind, 20) + "]"
	}
	return text
}

// scale is the steps in which values of a kind are written.
type scale struct {
	names []string
	sizes []float64
}

var (
	times  = scale{[]string{"ns", "µs", "ms", "s"}, []float64{1, 1e3, 1e6, 1e9}}
	sizes  = scale{[]string{"B", "KiB", "MiB", "GiB", "TiB"}, []float64{1, 1 << 10, 1 << 20, 1 << 30, 1 << 40}}
	counts = scale{[]string{"", "k", "M", "G", "T"}, []float64{1, 1e3, 1e6, 1e9, 1e12}}
)

// scaleOf returns the scale of a unit, and the unit as a multiple of the scale's first step.
func scaleOf(unit string) (s scale, factor float64, known bool) {
	unit = strings.ToLower(unit)
	if nanos := kind.NanosPer(unit); nanos != 0 {
		return times, float64(nanos), true
	}
	switch unit {
	case "bytes", "byte", "b":
		return sizes, 1, true
	}
	return counts, 1, unit == "count" || unit == ""
}

// value returns a value of a unit with three digits, in the largest step that keeps it at 1 or more: 3.10 s, 42.1 MiB,
// 12.3 k.
func value(v float64, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	s, factor, known := scaleOf(unit)
	v *= factor
	i := 0
	for i+1 < len(s.sizes) && math.Abs(v) >= s.sizes[i+1]*0.9995 {
		i++
	}
	v /= s.sizes[i]
	digits := 2
	switch size := math.Abs(v); {
	case v == math.Trunc(v) || size >= 99.95:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if s.names[i] != "" {
		text += " " + s.names[i]
	}
	if !known {
		text += " " + clean(unit, 30)
	}
	return text
}

func percent(part, whole int64) string { return fmt.Sprintf("%.1f%%", 100*share(part, whole)) }

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// formatTime formats Unix nanoseconds, to the second.
func formatTime(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339) }
