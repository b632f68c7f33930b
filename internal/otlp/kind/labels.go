// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// This file has the names that Pyroscope has for attributes and types: the exporter `pyroscope` sends them, and the
// store answers by them.

// Labels of samples that Pyroscope links to spans and traces, instead of making series of them.
const (
	SpanLabel    = "span_id"
	OldSpanLabel = "profile_id" // of old clients, and of Java's
	TraceLabel   = "trace_id"
)

// IsLink reports whether a label of samples is one of a span or a trace.
func IsLink(key string) bool { return key == SpanLabel || key == OldSpanLabel || key == TraceLabel }

// SampleDetails are attributes of samples that become no labels unless asked for, because each of their values would
// become a series.
func SampleDetails() []string {
	return []string{"thread.id", "thread.name", "thread.os.id", "cpu.logical_number", "process.pid", "go.goroutine.id",
		"source.event.time"}
}

// LabelName returns the name of the label for an attribute: characters that Prometheus does not allow become
// underscores, and so do dots unless they are kept.
func LabelName(key string, keepsDots bool) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.' && keepsDots:
			return r
		default:
			return '_'
		}
	}, key)
	if clean != "" && clean[0] >= '0' && clean[0] <= '9' {
		clean = "_" + clean
	}
	return clean
}

// typeCharacters replaces the characters that names of types cannot have: a server refuses a hyphen, and queries
// separate names by colons.
var typeCharacters = strings.NewReplacer("-", "_", ":", "_")

// TypeName returns the name of a profile or of a type, with characters that it cannot have replaced.
func TypeName(s string) string { return typeCharacters.Replace(s) }

// ProfileTypeID returns the name by which queries select a sample type of a profile:
// process_cpu:cpu:nanoseconds:cpu:nanoseconds.
func ProfileTypeID(profile, typ, unit, periodType, periodUnit string) string {
	return strings.Join([]string{TypeName(profile), TypeName(typ), TypeName(UnitName(unit)), TypeName(periodType),
		TypeName(UnitName(periodUnit))}, ":")
}

// MaxLabelBytes is the longest value of a label. Pyroscope refuses the whole profile for a longer one.
const MaxLabelBytes = 2048

// LabelValue returns the beginning of a string that can be the value of a label.
func LabelValue(s string) string {
	return dictionary.CutUTF8(dictionary.ValidUTF8(s[:min(len(s), MaxLabelBytes+utf8.UTFMax)]), MaxLabelBytes)
}
