// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package ingest is the path of all payloads, regardless of their source: decode, name, deliver.
//
// A source begins a reservation on the budget, reads a payload into it, and calls Ingest (or Decode and Deliver, if
// something happens in between). An error is a *Rejection if the payload never reached the pipeline; the source counts
// it with CountRejected.
package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/folded"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	pprofdecode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// Payload is a received body with its context.
type Payload struct {
	Data []byte
	// Reservation holds the bytes of the payload and of its decoded form. The source releases it after the delivery.
	Reservation *budget.Reservation
	Identity
	// ProfileName is which profile it is, as otlp/kind names it, or empty.
	ProfileName string
	// IsNamedByTypes names a profile without a ProfileName by its sample and period types.
	IsNamedByTypes bool
	// ScopeName and ScopeVersion are the sender's, if it states them; otherwise the scope is this receiver.
	ScopeName, ScopeVersion string
	// From and Until are the time of the recording as the request states it, which wins over the profile's own: Node's
	// libraries write its end there. Times of single samples stay as they are.
	From, Until time.Time
	// Temporality of the values, as the sender or the configuration states it.
	Temporality kind.Temporality
	// IsDifference means that the sender has subtracted an earlier profile, states included.
	IsDifference bool
	// Baseline turns cumulative values into the change since the payload before, and Fetched is when this one was
	// fetched. The caller commits the Baseline.
	Baseline *pprofdecode.Baseline
	Fetched  time.Time
	// Format is the format of Data if the sender states it; otherwise it is recognised by content.
	Format formats.Format
	// Folded has the sender's statements about folded stacks.
	Folded folded.Options
	// Period is the time between two samples, and Labels the labels beside the profile, of a recording of Flight Recorder.
	Period time.Duration
	Labels []byte
	// Ended is when the recording ended, if the sender states it, and Modified when its file was written. They are for
	// recordings without wall-clock times; without them the recording is taken to have ended at its arrival.
	Ended, Modified time.Time
	// Shared has the bounds of all payloads of the request; nil if it is the only one.
	Shared *Shared
}

// Attribute keys of the semantic conventions.
const (
	AttributeServiceName       = "service.name"
	AttributeServiceNamespace  = "service.namespace"
	AttributeServiceVersion    = "service.version"
	AttributeServiceInstanceID = "service.instance.id"
	AttributeServerAddress     = "server.address"
	AttributeServerPort        = "server.port"
	AttributeURLFull           = "url.full"
	AttributeFileName          = "file.name"
	AttributeFilePath          = "file.path"
)

// Identity is where a payload comes from. Its maps are shared between payloads and read only.
type Identity struct {
	// Derived are the attributes that the receiver found out by itself; configured attributes win over them.
	Derived pcommon.Map
	// Stated are the attributes that the sender stated; they win over configured ones.
	Stated pcommon.Map
}

// NewIdentity returns the identity of an unknown service.
func NewIdentity() Identity {
	id := Identity{Derived: pcommon.NewMap(), Stated: pcommon.NewMap()}
	id.Derived.PutStr(AttributeServiceName, kind.UnknownService)
	return id
}

func (id Identity) putTo(attributes, configured pcommon.Map) {
	for _, from := range []pcommon.Map{id.Derived, configured, id.Stated} {
		for key, value := range from.All() {
			value.CopyTo(attributes.PutEmpty(key))
		}
	}
}

// Shared bounds the payloads of one request together: otherwise a small request could unpack to many times the limit of
// one payload, or repeat the attributes that its sender states at too many resources.
type Shared struct {
	// OtherBytes is the size of the request besides its payloads.
	OtherBytes int
	// Dropped counts the samples that could not be read, by reason.
	Dropped [scan.NumDropReasons]int
	// plainBytes and statedBytes are those of the payloads so far.
	plainBytes, statedBytes int
}

// Config is the part of the receiver's configuration that all sources share.
type Config struct {
	// ResourceAttributes are added to every resource. Values are scalars.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
	// IncludeOriginalPayload keeps the bytes of a pprof in the profile that it was decoded to.
	IncludeOriginalPayload bool `mapstructure:"include_original_payload"`
	// Formats are the formats that payloads may have; a payload's format is recognised by its content.
	Formats []string `mapstructure:"formats"`
	// GoTrace configures the decoding of Go execution traces.
	GoTrace GoTraceConfig `mapstructure:"go_trace"`
	// TraceEvents configures the decoding of Chrome's trace events.
	TraceEvents TraceEventsConfig `mapstructure:"trace_events"`
	// TimestampLabels are the keys of the labels that hold the times of a pprof's samples.
	TimestampLabels []string `mapstructure:"timestamp_labels"`
}

// Settings are the settings of an Ingester.
type Settings struct {
	Set     receiver.Settings
	Config  Config
	Limits  scan.Limits
	Budget  *budget.Budget
	Next    xconsumer.Profiles
	Metrics *metadata.TelemetryBuilder
	// Source is the source's key in the configuration.
	Source string
	// Transport is the source's transport in the collector's standard metrics.
	Transport string
}

// Ingester processes the payloads of one source.
type Ingester struct {
	Settings
	obsreport *receiverhelper.ObsReport
	// configured are the configured resource attributes; read only.
	configured pcommon.Map
	unread     unreadTypes
}

// New returns an Ingester.
func New(s Settings) (*Ingester, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: s.Set.ID, Transport: s.Transport, ReceiverCreateSettings: s.Set,
	})
	if err != nil {
		return nil, err
	}
	in := &Ingester{Settings: s, obsreport: obsreport, configured: pcommon.NewMap()}
	for _, key := range slices.Sorted(maps.Keys(s.Config.ResourceAttributes)) {
		if err := in.configured.PutEmpty(key).FromRaw(s.Config.ResourceAttributes[key]); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Decode decodes a payload to OTLP profiles, sets their resource and scope, and counts the faults. The error is a
// *Rejection; the reservation is then as before.
func (in *Ingester) Decode(ctx context.Context, p Payload) (pprofile.Profiles, pprofdecode.Stats, error) {
	stated := statedSize(p.Data)
	pd, stats, err := in.decode(ctx, &p)
	if err == nil {
		in.countFaults(ctx, &stats)
		err = in.finish(pd, &p, &stats)
	}
	plainBytes := stats.UncompressedBytes
	if err != nil { // a bad payload costs as much as a good one
		plainBytes = max(plainBytes, min(stated, in.limit(&p)))
	}
	if p.Shared != nil {
		p.Shared.plainBytes += plainBytes
		for why, n := range stats.Dropped {
			p.Shared.Dropped[why] += n
		}
	}
	return pd, stats, err
}

func (in *Ingester) decode(ctx context.Context, p *Payload) (pprofile.Profiles, pprofdecode.Stats, error) {
	if len(p.Data) == 0 {
		return pprofile.Profiles{}, pprofdecode.Stats{}, Reject(Empty, errors.New("the payload is empty"))
	}
	if pprofdecode.IsLZ4(p.Data) {
		if err := in.openLZ4(ctx, p); err != nil {
			return pprofile.Profiles{}, pprofdecode.Stats{}, err
		}
	}
	if p.Format == formats.Unknown && in.accepts(formats.Pprof) {
		// Nearly every payload is pprof, and no other format can be read as pprof. Sniffing first would decompress most of a
		// small payload twice.
		pd, stats, err := in.decodePprof(ctx, p)
		why := ReasonOf(err)
		if why != NotPprof && why != TooLarge {
			return pd, stats, err
		}
		p.Format = SniffFormat(p.Data)
		if why == TooLarge && !formats.IsStreamed(p.Format) {
			return pd, stats, err
		}
		if p.Format == formats.Pprof {
			var other *scan.FormatError
			if errors.As(err, &other) {
				err = Reject(NotPprof, fmt.Errorf("%w; accepted are %s", err, in.Config.Formats))
			}
			return pd, stats, err
		}
	}
	if p.Format == formats.Unknown {
		p.Format = SniffFormat(p.Data)
	}
	if !in.accepts(p.Format) {
		return pprofile.Profiles{}, pprofdecode.Stats{}, Reject(NotPprof,
			fmt.Errorf("the payload seems to be %s, but `formats` has only %v", p.Format, in.Config.Formats))
	}
	if p.Format == formats.Pprof {
		return in.decodePprof(ctx, p)
	}
	return in.decodeFormat(ctx, p)
}

// openLZ4 replaces a frame of lz4 by its plain bytes, unless its format is read as a stream.
func (in *Ingester) openLZ4(ctx context.Context, p *Payload) error {
	seen := p.Format
	if seen == formats.Unknown {
		err := in.build(ctx, p, func(meter *pdatasize.Meter) error {
			err := meter.Grow(pprofdecode.ReaderBytes(p.Data))
			if err == nil {
				seen = formats.Sniff(pprofdecode.Head(p.Data, formats.SniffBytes))
			}
			return err
		})
		if err != nil {
			return err
		}
		p.Reservation.Built(0)
	}
	if formats.IsStreamed(seen) {
		p.Format = seen
		return nil
	}
	plain, err := in.Plain(ctx, p)
	if err == nil {
		p.Data = plain
	}
	return err
}

// decodePprof decodes a payload as pprof.
func (in *Ingester) decodePprof(
	ctx context.Context, p *Payload,
) (pd pprofile.Profiles, stats pprofdecode.Stats, err error) {
	options := pprofdecode.Options{
		Limits:                 in.Limits,
		IncludeOriginalPayload: in.Config.IncludeOriginalPayload,
		TimestampLabels:        in.Config.TimestampLabels,
		Baseline:               p.Baseline,
		At:                     p.Fetched,
		Temporality:            p.Temporality,
		Window:                 p.window(),
	}
	options.Limits.MaxProfileBytes = in.limit(p)
	err = in.build(ctx, p, func(meter *pdatasize.Meter) (err error) {
		options.Meter = meter
		pd, stats, err = pprofdecode.Decode(p.Data, options)
		if errors.Is(err, scan.ErrTooLarge) && stats.UncompressedBytes == 0 {
			return fmt.Errorf("%w (`max_profile_bytes`)", err)
		}
		if err == nil && stats.Samples == 0 && stats.DroppedSamples() > 0 {
			err = fmt.Errorf("none of its samples can be read: %s", httpserver.Reasons[scan.DropReason](stats.Dropped[:]))
		}
		return err
	})
	return pd, stats, err
}

// expectedFactor is how much memory most payloads take while they are decoded, for each plain byte.
const expectedFactor = 10

// build calls decode with a meter that reserves memory in the payload's reservation. The error is a *Rejection.
func (in *Ingester) build(ctx context.Context, p *Payload, decode func(*pdatasize.Meter) error) error {
	plain := min(max(statedSize(p.Data), len(p.Data)), in.limit(p))
	err := p.Reservation.Build(ctx, int64(expectedFactor*plain), func(reserve pdatasize.Reserve) error {
		return decode(&pdatasize.Meter{Context: ctx, Reserve: reserve})
	})
	is := func(target error) bool { return errors.Is(err, target) }
	var tooLarge *budget.TooLargeError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the request's time was up, or the receiver stops
		return Reject(Busy, fmt.Errorf("the request ended before its payload was decoded: %w", ctx.Err()))
	case is(budget.ErrBusy):
		return Reject(Busy, err)
	case errors.As(err, &tooLarge):
		return Reject(TooLarge, tooLarge)
	case ReasonOf(err) != "":
		return err
	case slices.ContainsFunc([]error{scan.ErrTooLarge, events.ErrTooLarge, gotrace.ErrThreads, gotrace.ErrLegacy}, is):
		return Reject(TooLarge, err)
	}
	return Reject(NotPprof, err)
}

// finish prepares decoded profiles for their delivery: they replace the payload in its reservation, and get their
// resource and scope.
func (in *Ingester) finish(pd pprofile.Profiles, p *Payload, stats *pprofdecode.Stats) error {
	if err := p.checkStated(pd, stats.UncompressedBytes); err != nil {
		return err
	}
	statement := kind.Statement{Dictionary: pd.Dictionary()}
	for _, rp := range pd.ResourceProfiles().All() {
		p.putTo(rp.Resource().Attributes(), in.configured)
		for _, sp := range rp.ScopeProfiles().All() {
			sp.Scope().SetName(metadata.ScopeName)
			sp.Scope().SetVersion(in.Set.BuildInfo.Version)
			if p.ScopeName != "" {
				sp.Scope().SetName(p.ScopeName)
				sp.Scope().SetVersion(p.ScopeVersion)
			}
			if name := p.profileName(pd, sp); name != "" {
				sp.Scope().Attributes().PutStr(kind.NameAttribute, name)
			}
			for _, profile := range sp.Profiles().All() {
				p.setTime(profile)
				p.setTemporality(profile, &statement)
			}
		}
	}
	p.Reservation.Built(int64(pdatasize.OfProfiles(pd)))
	return nil
}

// limit returns the largest plain size of a payload.
func (in *Ingester) limit(p *Payload) int {
	if p.Shared == nil {
		return in.Limits.MaxProfileBytes
	}
	return max(in.Limits.MaxProfileBytes-p.Shared.plainBytes, 1)
}

// checkStated bounds the size of the attributes that the sender states: each resource of the payload repeats them, and
// so do the other payloads of a request.
func (p *Payload) checkStated(pd pprofile.Profiles, plainBytes int) error {
	const leastBytes, maxFactor, attributeBytes = 64 << 10, 16, 64
	size := 0
	for key, value := range p.Stated.All() {
		size += len(key) + len(value.AsString()) + attributeBytes
	}
	resources := pd.ResourceProfiles().Len()
	size *= resources
	if p.Shared != nil {
		size += p.Shared.statedBytes
		p.Shared.statedBytes = size
		plainBytes += p.Shared.plainBytes + p.Shared.OtherBytes
	}
	if size > leastBytes+maxFactor*plainBytes {
		return Reject(TooLarge,
			fmt.Errorf("%d stated attributes for each of %d resources are too many for a payload of %d bytes",
				p.Stated.Len(), resources, plainBytes))
	}
	return nil
}

// profileName returns which profile a scope holds, or "" if the scope gets no name. A pprof of several kinds gets one,
// so that its types keep it where they are sent apart.
func (p *Payload) profileName(pd pprofile.Profiles, sp pprofile.ScopeProfiles) string {
	if p.ProfileName != "" || sp.Profiles().Len() == 0 || p.Format != formats.Pprof && p.Format != formats.Unknown &&
		!p.IsNamedByTypes {
		return p.ProfileName
	}
	name, differs := kind.NameOfPprof(sp.Profiles(), pd.Dictionary())
	if !differs && !p.IsNamedByTypes {
		return ""
	}
	return name
}

// window returns the time of the recording if the request states it. Totals have none.
func (p *Payload) window() pprofdecode.Window {
	isTotal := p.Temporality == kind.StatedCumulative && p.Baseline == nil
	if p.From.IsZero() || !p.Until.After(p.From) || isTotal {
		return pprofdecode.Window{}
	}
	return pprofdecode.Window{Time: uint64(p.From.UnixNano()), Duration: uint64(p.Until.Sub(p.From))}
}

// setTime sets the time and duration of a profile whose samples have no times of their own. A time in milliseconds or
// another unit would be one in 1970 as nanoseconds. Any other time in 1970 counts as none.
func (p *Payload) setTime(profile pprofile.Profile) {
	const year1971 = 365 * 24 * time.Hour
	if isTimed := profile.Samples().Len() > 0 && profile.Samples().At(0).TimestampsUnixNano().Len() > 0; isTimed {
		return
	}
	if w := p.window(); w.Duration > 0 {
		profile.SetTime(pcommon.Timestamp(w.Time))
		profile.SetDurationNano(w.Duration)
	}
	if profile.DurationNano() == 0 && (p.IsDifference || p.Temporality == kind.StatedDelta) {
		profile.SetDurationNano(1) // without one it could be taken for a total
	}
	if nanos := events.UnixNanos(int64(profile.Time())); nanos != 0 {
		profile.SetTime(pcommon.Timestamp(nanos))
	}
	switch {
	case profile.Time() >= pcommon.Timestamp(year1971):
	case !p.From.IsZero():
		profile.SetTime(pcommon.NewTimestampFromTime(p.From))
	case !p.Ended.IsZero():
		profile.SetTime(pcommon.NewTimestampFromTime(p.Ended.Add(-time.Duration(profile.DurationNano()))))
	}
}

// setTemporality states the temporality of a profile, where its type, time and period do not tell.
func (p *Payload) setTemporality(profile pprofile.Profile, statement *kind.Statement) {
	declared := kind.DeclaredOf(profile, statement.Dictionary)
	values := p.Temporality.ValuesOf(declared)
	asTotal := declared
	asTotal.DurationNanos = 0
	if p.IsDifference || p.Baseline != nil && p.Temporality.ValuesOf(asTotal) == kind.Cumulative {
		values = kind.Delta
	}
	statement.Put(profile, declared, values)
}

// Plain returns the plain bytes of a payload, whose memory its reservation holds from then on. The error is a
// *Rejection.
func (in *Ingester) Plain(ctx context.Context, p *Payload) (plain []byte, err error) {
	if len(p.Data) == 0 {
		return nil, nil
	}
	err = in.build(ctx, p, func(meter *pdatasize.Meter) (err error) {
		plain, err = pprofdecode.Uncompress(p.Data, in.limit(p), meter)
		return uncompressed(err)
	})
	if err == nil {
		p.Reservation.Built(int64(len(plain)))
	}
	return plain, err
}

// uncompressed returns the error of reading a payload: a *Rejection if it is too large or its compression is damaged.
func uncompressed(err error) error {
	var damaged *scan.FormatError
	switch {
	case errors.Is(err, scan.ErrTooLarge):
		return Reject(TooLarge, fmt.Errorf("%w (`max_profile_bytes`)", err))
	case errors.As(err, &damaged):
		return Reject(Unreadable, err)
	}
	return err
}

// statedSize returns the plain size that a compressed payload states, or a guess; 0 if the payload is not compressed.
func statedSize(data []byte) int {
	const (
		least = 64 << 10
		// maxDeflateRatio is the largest ratio of deflate, and guessedRatio is above those of most profiles.
		maxDeflateRatio, guessedRatio = 1032, 8
	)
	isGzip := bytes.HasPrefix(data, []byte{0x1f, 0x8b})
	if !isGzip && !bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) && !pprofdecode.IsLZ4(data) {
		return 0
	}
	if isGzip && len(data) >= 18 {
		// The last four bytes of gzip are the size modulo 2^32.
		if stated := int64(binary.LittleEndian.Uint32(data[len(data)-4:])); stated <= int64(len(data))*maxDeflateRatio {
			return int(min(max(least, stated), math.MaxInt32))
		}
	}
	return max(least, guessedRatio*len(data))
}

// Begin returns a reservation on the budget for one payload.
func (in *Ingester) Begin() *budget.Reservation { return in.Budget.Begin() }

// MaxBytes returns the configured size of the largest payload. The budget can have less room: see CheckSize.
func (in *Ingester) MaxBytes() int64 { return int64(in.Limits.MaxProfileBytes) }

// CheckSize returns a *Rejection for a payload that no retry makes room for.
func (in *Ingester) CheckSize(bytes int64) error {
	if limit := in.MaxBytes(); bytes > limit {
		return Reject(TooLarge, fmt.Errorf("larger than %d bytes (`max_profile_bytes`)", limit))
	}
	if limit := in.Budget.MaxBodyBytes(); bytes > limit {
		return Reject(TooLarge, &budget.TooLargeError{Need: bytes, Limit: limit})
	}
	return nil
}

// Deliver passes profiles to the pipeline, which owns them from then on. It does nothing if there are none, as after a
// payload without samples.
func (in *Ingester) Deliver(ctx context.Context, pd pprofile.Profiles, timeout time.Duration) error {
	if pd.ResourceProfiles().Len() == 0 {
		return nil
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ctx = in.obsreport.StartProfilesOp(ctx)
	samples := pd.SampleCount()
	err := in.Next.ConsumeProfiles(ctx, pd)
	in.obsreport.EndProfilesOp(ctx, "pprof", samples, err)
	return err
}

// Ingest decodes a payload and delivers the profiles.
func (in *Ingester) Ingest(ctx context.Context, p Payload, timeout time.Duration) error {
	pd, _, err := in.Decode(ctx, p)
	if err != nil {
		return err
	}
	p.Reservation.DropBody()
	return in.Deliver(ctx, pd, timeout)
}
