// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

func pprofValueTypeText(t *profile.ValueType) string {
	if t == nil {
		t = &profile.ValueType{}
	}
	return resolved.Word(t.Type) + " in " + resolved.Word(t.Unit)
}

func valueTypesText(types []*profile.ValueType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = pprofValueTypeText(t)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// pprofSampleText returns a sample's labels and frames, leaf first.
func pprofSampleText(s *profile.Sample) string {
	var frames []string
	for i, l := range s.Location {
		if i == maxFramesInDifference {
			frames = append(frames, fmt.Sprintf("and %d more", len(s.Location)-i))
			break
		}
		frames = append(frames, pprofLocationText(l))
	}
	return resolved.Spaced(pprofLabelsText(s, s.Label), "<"+strings.Join(frames, " < ")+">")
}

// pprofLabelsText covers the strings and then the numbers: profile.Profile does not keep their order under one key.
// Keys without values are ignored.
func pprofLabelsText(s *profile.Sample, ofStrings map[string][]string) string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(ofStrings)) {
		if values := ofStrings[name]; len(values) > 0 {
			labels = append(labels, fmt.Sprintf("%s=%q", resolved.Word(name), values))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.NumLabel)) {
		values := make([]string, len(s.NumLabel[name]))
		for i, v := range s.NumLabel[name] {
			values[i] = strconv.FormatInt(v, 10)
			if units := s.NumUnit[name]; i < len(units) && units[i] != "" {
				values[i] += " in " + resolved.Word(units[i])
			}
		}
		if len(values) > 0 {
			labels = append(labels, resolved.Word(name)+"=["+strings.Join(values, ", ")+"]")
		}
	}
	return resolved.Braces("{" + strings.Join(labels, ", ") + "}")
}

func pprofLocationText(l *profile.Location) string {
	if l == nil {
		return "nil"
	}
	var parts []string
	for _, line := range l.Line {
		parts = append(parts, pprofLineText(line))
	}
	text := strings.Join(parts, "; ")
	if l.Address != 0 {
		text += fmt.Sprintf(" at 0x%x", l.Address)
	}
	if m := l.Mapping; m != nil && pprofMappingText(m) != pprofMappingText(&profile.Mapping{}) {
		text += pprofMappingText(m)
	}
	if l.IsFolded {
		text += " folded"
	}
	return strings.TrimLeft(text, " ")
}

func pprofMappingText(m *profile.Mapping) string {
	return fmt.Sprintf(" in [%s 0x%x-0x%x+0x%x build id %s, has functions %t, filenames %t, lines %t, inlined %t]",
		resolved.Word(m.File), m.Start, m.Limit, m.Offset, resolved.Word(m.BuildID),
		m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames)
}

func pprofLineText(line profile.Line) string {
	f := line.Function
	if f == nil {
		f = &profile.Function{}
	}
	text := resolved.Word(f.Name)
	if f.SystemName != "" {
		text += " (" + resolved.Word(f.SystemName) + ")"
	}
	if f.StartLine != 0 {
		text += " from line " + strconv.FormatInt(f.StartLine, 10)
	}
	return fmt.Sprintf("%s %s:%d:%d", text, resolved.Word(f.Filename), line.Line, line.Column)
}
