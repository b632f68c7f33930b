// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/cpuprofile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/jfr"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/perfscript"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdataiter"
)

// Decodable are the formats that Decode reads.
var Decodable = []Format{GoTrace, PerfScript, CPUProfile, Folded, JFR}

// Options are how Decode reads a payload.
type Options struct {
	// Options has the Anchor of formats whose clock is no wall clock.
	events.Options
	// GoTrace is what becomes of Go execution traces; its limits of text and its anchor are those above. The zero value
	// means gotrace.DefaultOptions.
	GoTrace gotrace.Options
	// Folded is what folded stacks do not say themselves; their limit of text and their anchor are those above.
	Folded folded.Options
	// Period is the time between two samples in a recording of Flight Recorder that does not say it.
	Period time.Duration
	// Labels is what Pyroscope's Java agent sends beside a recording of Flight Recorder.
	Labels []byte
}

// SniffBytes is how much of a payload is enough for Sniff to tell the Decodable formats.
const SniffBytes = headBytes + 1

// Decode returns the profiles of a payload without compression, in one of the Decodable formats. Profiles without an id get
// one that follows from the payload, so that what is sent again has the same ids.
func Decode(data []byte, format Format, options Options) (pd pprofile.Profiles, stats events.Stats, err error) {
	switch format {
	case GoTrace:
		o := options.GoTrace
		if o.MaxThreads == 0 {
			o = gotrace.DefaultOptions()
		}
		o.Options = options.Options
		pd, stats, err = gotrace.Decode(data, o)
	case PerfScript:
		pd, stats, err = perfscript.Decode(data, options.Options)
	case CPUProfile:
		pd, stats, err = cpuprofile.Decode(data, options.Options)
	case Folded:
		pd, stats, err = decodeFolded(data, &options)
	case JFR:
		pd, stats, err = jfr.Decode(data, jfr.Options{Labels: options.Labels, Period: options.Period, MaxTextBytes: options.MaxTextBytes})
	default:
		return pprofile.NewProfiles(), stats, fmt.Errorf("format %q: use one of %v", format, Decodable)
	}
	if err == nil {
		identify(pd, data)
	}
	return pd, stats, err
}

// IsDecodable reports whether Decode reads a format.
func IsDecodable(format Format) bool { return slices.Contains(Decodable, format) }

func decodeFolded(data []byte, options *Options) (pprofile.Profiles, events.Stats, error) {
	o := options.Folded
	o.MaxTextBytes, o.Anchor = options.MaxTextBytes, options.Anchor
	pd, stats, err := folded.Decode(data, o)
	return pd, events.Stats{
		Events: stats.Samples, Dropped: stats.Dropped, InvalidUTF8: stats.InvalidUTF8, Truncated: stats.Truncated,
		GuessedClock: stats.GuessedClock,
	}, err
}

func identify(pd pprofile.Profiles, data []byte) {
	var content compact.ContentID
	content.AddBytes(data)
	for profile := range pdataiter.Profiles(pd) {
		content.AddNumber(1)
		if profile.ProfileID().IsEmpty() {
			profile.SetProfileID(content.ProfileID())
		}
	}
}
