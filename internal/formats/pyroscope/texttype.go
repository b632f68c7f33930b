// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscope

import (
	"cmp"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// TextType is what the values of a text format are. Clients state it at the end of the application's name:
// shop.alloc_space.
type TextType struct {
	ProfileName, SampleType, Unit string
	// PeriodType is cpu or wall if the values are samples of a clock, or empty.
	PeriodType string
}

const (
	count       = "count"
	inBytes     = "bytes"
	nanoseconds = "nanoseconds"
	samples     = "samples"
	contentions = "contentions"
	delay       = "delay"
	cpu         = "cpu"
	wall        = "wall"
)

// textTypes are the suffixes that Pyroscope's server knows (convertMetadata in
// pkg/ingester/pyroscope/ingest_adapter.go).
var textTypes = map[string]TextType{
	"cpu":                        {kind.ProcessCPU, samples, count, cpu},
	"itimer":                     {kind.ProcessCPU, samples, count, cpu},
	"wall":                       {kind.Wall, samples, count, wall},
	"seconds":                    {kind.Wall, samples, count, wall},
	"milliseconds":               {kind.Wall, samples, count, wall},
	"microseconds":               {kind.Wall, samples, count, wall},
	"nanoseconds":                {kind.Wall, samples, count, wall},
	"inuse_objects":              {kind.Memory, "inuse_objects", count, ""},
	"inuse_space":                {kind.Memory, "inuse_space", inBytes, ""},
	"alloc_objects":              {kind.Memory, "alloc_objects", count, ""},
	"alloc_space":                {kind.Memory, "alloc_space", inBytes, ""},
	"alloc_in_new_tlab_objects":  {kind.Memory, "alloc_in_new_tlab_objects", count, ""},
	"alloc_in_new_tlab_bytes":    {kind.Memory, "alloc_in_new_tlab_bytes", inBytes, ""},
	"alloc_outside_tlab_objects": {kind.Memory, "alloc_outside_tlab_objects", count, ""},
	"alloc_outside_tlab_bytes":   {kind.Memory, "alloc_outside_tlab_bytes", inBytes, ""},
	"live":                       {kind.Memory, "live", count, ""},
	"bytes":                      {kind.Memory, samples, inBytes, ""},
	"goroutines":                 {kind.Goroutine, "goroutine", count, ""},
	"mutex_count":                {kind.Mutex, contentions, count, ""},
	"mutex_duration":             {kind.Mutex, delay, nanoseconds, ""},
	"block_count":                {kind.Block, contentions, count, ""},
	"block_duration":             {kind.Block, delay, nanoseconds, ""},
	"lock_count":                 {kind.Block, contentions, count, ""},
	"lock_duration":              {kind.Block, delay, nanoseconds, ""},
	"exceptions":                 {"exceptions", samples, count, ""},
}

// unitTypes are the types for the units in the query, of clients that do not name the type.
var unitTypes = map[string]TextType{
	"objects":          {SampleType: "alloc_objects", Unit: count},
	"bytes":            {SampleType: "alloc_space", Unit: inBytes},
	"goroutines":       {SampleType: "goroutine", Unit: count},
	"lock_samples":     {SampleType: contentions, Unit: count},
	"lock_nanoseconds": {SampleType: delay, Unit: nanoseconds},
}

// averageTypes are those of unitTypes for clients whose values are a state.
var averageTypes = map[string]TextType{
	"objects": {SampleType: "inuse_objects", Unit: count},
	"bytes":   {SampleType: "inuse_space", Unit: inBytes},
}

// CutTextType returns the type of the values of a text format, by the application's name or by the units, or samples of
// CPU time. isStated is false for these. It cuts the type off the name of the service, if that is the application's.
func (in *Ingest) CutTextType() (t TextType, isStated bool) {
	at := strings.LastIndexByte(in.application, '.')
	if t, isKnown := textTypes[in.application[at+1:]]; isKnown && at > 0 {
		if in.Service == in.application {
			in.Service = in.application[:at]
		}
		if in.ProfileName == "" {
			in.ProfileName = t.ProfileName
		}
		return t, true
	}
	if in.IsAverage {
		in.Temporality = cmp.Or(in.Temporality, kind.StatedGauge)
		if t, isKnown := averageTypes[in.Units]; isKnown {
			return t, true
		}
	}
	if t, isKnown := unitTypes[in.Units]; isKnown {
		return t, true
	}
	return TextType{SampleType: samples, Unit: count, PeriodType: cpu}, false
}
