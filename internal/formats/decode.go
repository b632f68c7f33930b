// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/cpuprofile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/firefox"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/jfr"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/perfscript"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/speedscope"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/torchmemory"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/torchtrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/signature"
)

// Decodable lists the formats that Decode reads.
var Decodable = []Format{GoTrace, PerfScript, CPUProfile, Folded, JFR, TorchTrace, TorchMemory, Speedscope, Firefox}

// Options configure Decode. The limit of strings and the anchor are the same for all formats.
type Options struct {
	events.Options
	// GoTrace configures what becomes of Go execution traces. The zero value means gotrace.DefaultOptions.
	GoTrace gotrace.Options
	// Folded is what folded stacks do not state themselves. Its types are those of speedscope's values, too.
	Folded folded.Options
	// Period is the time between two samples in a recording of Flight Recorder that does not state it.
	Period time.Duration
	// LaunchSizes adds the sizes of launches to the samples of a trace of PyTorch.
	LaunchSizes bool
	// Labels is what Pyroscope's Java agent sends beside a recording of Flight Recorder.
	Labels []byte
}

// SniffBytes is how much of a payload Sniff needs to recognise the Decodable formats.
const SniffBytes = headBytes + 1

// Decode returns the profiles of an uncompressed payload in one of the Decodable formats. Profiles without an id get
// one that follows from the payload, so that a payload that is sent again has the same ids.
func Decode(data []byte, format Format, options Options) (pd pprofile.Profiles, stats events.Stats, err error) {
	if signature.IsUTF16(data) {
		return pprofile.NewProfiles(), stats, ErrUTF16
	}
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
		o := options.Folded
		o.Options = options.Options
		pd, stats, err = folded.Decode(data, o)
	case Speedscope:
		pd, stats, err = speedscope.Decode(data, speedscope.Options{
			Options: options.Options, SampleType: options.Folded.SampleType, Unit: options.Folded.Unit,
		})
	case Firefox:
		pd, stats, err = firefox.Decode(data, options.Options)
	case JFR:
		pd, stats, err = jfr.Decode(data,
			jfr.Options{Options: options.Options, Labels: options.Labels, Period: options.Period})
	case TorchMemory:
		pd, stats, err = torchmemory.Decode(data, options.Options)
	case TorchTrace:
		return DecodeStream(bytes.NewReader(data), data, format, options)
	default:
		return pprofile.NewProfiles(), stats, fmt.Errorf("format %q: use one of %v", format, Decodable)
	}
	if err == nil {
		identify(pd, data)
	}
	return pd, stats, err
}

// IsStreamed reports whether DecodeStream reads a format. Its payloads are many times larger than what is kept of them.
func IsStreamed(format Format) bool { return format == TorchTrace }

// DecodeStream is Decode for a format that IsStreamed. payload is what r has, as it arrived.
func DecodeStream(
	r io.Reader, payload []byte, format Format, options Options,
) (pd pprofile.Profiles, stats events.Stats, err error) {
	if !IsStreamed(format) {
		return pprofile.NewProfiles(), stats, fmt.Errorf("format %q is not read as a stream", format)
	}
	if pd, stats, err = torchtrace.Decode(r,
		torchtrace.Options{Options: options.Options, LaunchSizes: options.LaunchSizes}); err == nil {
		identify(pd, payload)
	}
	return pd, stats, err
}

// ErrUTF16 is the error for text that is not in UTF-8, as some shells on Windows redirect it.
var ErrUTF16 = errors.New("it is " + signature.UTF16)

// IsDecodable reports whether Decode reads a format.
func IsDecodable(format Format) bool { return slices.Contains(Decodable, format) }

func identify(pd pprofile.Profiles, data []byte) {
	var content otlp.ContentID
	content.AddBytes(data)
	for profile := range otlp.Profiles(pd) {
		content.AddNumber(1)
		if profile.ProfileID().IsEmpty() {
			profile.SetProfileID(content.ProfileID())
		}
	}
}
