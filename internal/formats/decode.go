// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
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
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/traceevents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/signature"
)

// Decodable lists the formats that Decode reads.
var Decodable = []Format{GoTrace, PerfScript, CPUProfile, Folded, JFR, TraceEvents, TorchMemory, Speedscope, Firefox}

// Options configure Decode. The limit of strings and the anchor are the same for all formats.
type Options struct {
	events.Options
	// MaxPlainBytes bounds the payload without its compression; 0 means no bound.
	MaxPlainBytes int
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

// Stats counts what Decode did.
type Stats struct {
	events.Stats
	// PlainBytes is the size of the payload without its compression.
	PlainBytes int64
}

// SniffBytes is how much of a payload Sniff needs to recognise the Decodable formats.
const SniffBytes = headBytes + 1

// maxStreamFactor is how many times Options.MaxPlainBytes a payload may have that is read as a stream: its plain bytes
// take no memory, and the JSON of trace events is compressed to a twentieth.
const maxStreamFactor = 32

// IsStreamed reports whether Decode reads a format as a stream. Its payloads are many times larger than what is kept of
// them.
func IsStreamed(format Format) bool { return format == TraceEvents }

// Decode returns the profiles of a payload in one of the Decodable formats, compressed or not. Profiles without an id
// get one that follows from the payload, so that a payload that is sent again has the same ids. The error for damaged
// compression is a *scan.FormatError.
func Decode(payload []byte, format Format, options Options) (pd pprofile.Profiles, stats Stats, err error) {
	limit := cmp.Or(options.MaxPlainBytes, math.MaxInt/maxStreamFactor)
	data := payload
	if IsStreamed(format) {
		stats.PlainBytes, err = decode.Stream(payload, maxStreamFactor*int64(limit), func(plain io.Reader) (err error) {
			pd, stats.Stats, err = traceevents.Decode(plain, traceevents.Options{Options: options.Options,
				LaunchSizes: options.LaunchSizes, ReaderBytes: decode.ReaderBytes(payload)})
			return err
		})
	} else if data, err = decode.Uncompress(payload, limit, options.Meter); err == nil {
		stats.PlainBytes = int64(len(data))
		pd, stats.Stats, err = decodePlain(data, format, options)
	}
	switch {
	case err == nil && stats.Events == 0 && stats.Dropped > 0:
		err = fmt.Errorf("%w (%d)", errUnread, stats.Dropped)
	case err == nil:
		finish(pd, data)
	}
	return pd, stats, err
}

// errUnread is the error for a payload all of whose samples are dropped: its sender would not notice.
var errUnread = errors.New("none of its samples can be read")

func decodePlain(data []byte, format Format, options Options) (pprofile.Profiles, events.Stats, error) {
	if signature.IsUTF16(data) {
		return pprofile.NewProfiles(), events.Stats{}, ErrUTF16
	}
	switch format {
	case GoTrace:
		o := options.GoTrace
		if o.MaxLegacyBytes == 0 {
			o = gotrace.DefaultOptions()
		}
		o.Options = options.Options
		return gotrace.Decode(data, o)
	case PerfScript:
		return perfscript.Decode(data, options.Options)
	case CPUProfile:
		return cpuprofile.Decode(data, options.Options)
	case Folded:
		o := options.Folded
		o.Options = options.Options
		return folded.Decode(data, o)
	case Speedscope:
		return speedscope.Decode(data, speedscope.Options{
			Options: options.Options, SampleType: options.Folded.SampleType, Unit: options.Folded.Unit,
		})
	case Firefox:
		return firefox.Decode(data, options.Options)
	case JFR:
		return jfr.Decode(data, jfr.Options{Options: options.Options, Labels: options.Labels, Period: options.Period})
	case TorchMemory:
		return torchmemory.Decode(data, options.Options)
	default:
		return pprofile.NewProfiles(), events.Stats{}, fmt.Errorf("format %q: use one of %v", format, Decodable)
	}
}

// ErrUTF16 is the error for text that is not in UTF-8, as some shells on Windows redirect it.
var ErrUTF16 = errors.New("it is " + signature.UTF16)

// IsDecodable reports whether Decode reads a format.
func IsDecodable(format Format) bool { return slices.Contains(Decodable, format) }

// finish sets the ids that profiles lack, and a duration on those that would be taken for totals since the start of a
// process. Formats other than pprof record events, and totals have no duration.
func finish(pd pprofile.Profiles, data []byte) {
	var content otlp.ContentID
	content.AddBytes(data)
	for profile := range otlp.Profiles(pd) {
		content.AddNumber(1)
		if profile.ProfileID().IsEmpty() {
			profile.SetProfileID(content.ProfileID())
		}
		if kind.ValuesOfProfile(profile, pd.Dictionary()) == kind.Cumulative {
			profile.SetDurationNano(1)
		}
	}
}
