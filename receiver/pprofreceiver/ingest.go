// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// attributeProfileName is the scope attribute that tells apart profiles whose sample types are the
// same: the Go runtime's mutex and block profiles are.
const attributeProfileName = "pprof.scope.profile_name"

// payload is what every source hands in.
type payload struct {
	data []byte
	// claim holds the payload's bytes, and those that it is decoded to. The source releases it after the delivery.
	claim *admission.Claim
	identity
	// profileName is the runtime's name for the profile, or empty.
	profileName string
	// baseline makes cumulative values say what has happened since the payload before, which was
	// fetched at another time than this one. The caller commits it.
	baseline *pprofconv.Baseline
	fetched  time.Time
	// maxBytes lowers the limit on the decompressed size; 0 leaves it as configured.
	maxBytes int
}

// rejection is the error for a payload that never reached the pipeline, by its own fault or its sender's.
type rejection struct {
	reason reason
	err    error
}

func (r *rejection) Error() string { return r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }

func reject(why reason, err error) error { return &rejection{reason: why, err: err} }

type ingesterSettings struct {
	set               receiver.Settings
	cfg               *Config
	budget            *admission.Budget
	next              xconsumer.Profiles
	metrics           *metrics
	source, transport string
}

// ingester is the path that the payloads of one source take: decode, name, deliver.
type ingester struct {
	ingesterSettings
	obsreport *receiverhelper.ObsReport
	// configured is read only once made.
	configured pcommon.Map
}

func newIngester(s ingesterSettings) (*ingester, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: s.set.ID, Transport: s.transport, ReceiverCreateSettings: s.set,
	})
	if err != nil {
		return nil, err
	}
	in := &ingester{ingesterSettings: s, obsreport: obsreport, configured: pcommon.NewMap()}
	for _, key := range sortedKeys(s.cfg.ResourceAttributes) {
		if err := in.configured.PutEmpty(key).FromRaw(s.cfg.ResourceAttributes[key]); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// decode makes OTLP profiles of a payload, with their resource and scope, and counts what it met.
// The error is a *rejection, and counted, or that of ctx.
func (in *ingester) decode(ctx context.Context, p payload) (pprofile.Profiles, pprofconv.DecodeStats, error) {
	if len(p.data) == 0 {
		return pprofile.Profiles{}, pprofconv.DecodeStats{}, in.rejected(ctx, reasonEmpty, errors.New("the payload is empty"))
	}
	pd, stats, err := in.decodeAdmitted(ctx, p)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return pd, stats, ctx.Err()
	case errors.Is(err, admission.ErrBusy):
		return pd, stats, in.rejected(ctx, reasonBusy, err)
	case errors.Is(err, pprofconv.ErrTooLarge):
		return pd, stats, in.rejected(ctx, reasonTooLarge, err)
	default:
		return pd, stats, in.rejected(ctx, reasonNotPprof, err)
	}
	// What the pipeline gets replaces the payload. It takes more memory, and the pipeline may hold it for a while.
	p.claim.DropBuffers()
	if err := p.claim.Acquire(ctx, max(0, pdataBytes(pd)-int64(len(p.data)+stats.UncompressedBytes))); err != nil {
		return pd, stats, in.rejected(ctx, reasonBusy, err)
	}
	in.metrics.count(ctx, &stats)
	for _, rp := range pd.ResourceProfiles().All() {
		p.putTo(rp.Resource().Attributes(), in.configured)
		for _, sp := range rp.ScopeProfiles().All() {
			sp.Scope().SetName(scopeName)
			sp.Scope().SetVersion(in.set.BuildInfo.Version)
			if p.profileName != "" {
				sp.Scope().Attributes().PutStr(attributeProfileName, p.profileName)
			}
		}
	}
	return pd, stats, nil
}

// decodeAdmitted decodes a payload within what its claim holds. Compression hides how large the result is: the claim
// grows by what the payload states, and fourfold while that is not enough.
func (in *ingester) decodeAdmitted(ctx context.Context, p payload) (pd pprofile.Profiles, stats pprofconv.DecodeStats, err error) {
	limit := in.cfg.Limits.MaxProfileBytes
	if p.maxBytes > 0 {
		limit = min(limit, p.maxBytes)
	}
	options := pprofconv.DecodeOptions{
		Limits:                 in.cfg.Limits.ofDecoder(),
		IncludeOriginalPayload: in.cfg.IncludeOriginalPayload,
		Baseline:               p.baseline,
		At:                     p.fetched,
	}
	held, size := 0, statedSize(p.data)
	for ; ; size *= 4 {
		options.Limits.MaxProfileBytes = min(size, limit)
		if size == 0 { // the payload itself is decoded: the claim has it already
			options.Limits.MaxProfileBytes = limit
		} else if err = p.claim.Acquire(ctx, int64(options.Limits.MaxProfileBytes-held)); err != nil {
			return pd, stats, err
		}
		held = options.Limits.MaxProfileBytes
		if workErr := p.claim.Work(ctx, func() { pd, stats, err = pprofconv.Decode(p.data, options) }); workErr != nil {
			return pd, stats, workErr
		}
		// Other limits than that of the size do not depend on what the claim holds.
		if !errors.Is(err, pprofconv.ErrTooLarge) || stats.UncompressedBytes > 0 || held == limit {
			return pd, stats, err
		}
	}
}

// pdataBytes returns about how much memory the tables of profiles take, their texts aside.
func pdataBytes(pd pprofile.Profiles) int64 {
	const bytesPerEntry, bytesPerSample, bytesPerString = 80, 100, 16
	d := pd.Dictionary()
	entries := d.LocationTable().Len() + d.FunctionTable().Len() + d.StackTable().Len() + d.MappingTable().Len() +
		d.AttributeTable().Len() + d.LinkTable().Len()
	return int64(entries)*bytesPerEntry + int64(pd.SampleCount())*bytesPerSample + int64(d.StringTable().Len())*bytesPerString
}

// statedSize returns the size that a compressed payload states for its plain bytes, or a guess; 0 if it is not
// compressed.
func statedSize(data []byte) int {
	const (
		least = 64 << 10
		// mostDeflate is what deflate can make of a byte, and usual is above what is usual for profiles.
		mostDeflate, usual = 1032, 8
	)
	isGzip := bytes.HasPrefix(data, []byte{0x1f, 0x8b})
	if !isGzip && !bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return 0
	}
	if isGzip && len(data) >= 18 {
		// The last four bytes of gzip are the size modulo 2^32.
		if stated := int64(binary.LittleEndian.Uint32(data[len(data)-4:])); stated <= int64(len(data))*mostDeflate {
			return int(max(least, stated))
		}
	}
	return max(least, usual*len(data))
}

// rejected counts a rejection and returns it as an error.
func (in *ingester) rejected(ctx context.Context, why reason, err error) error {
	in.metrics.reject(ctx, in.source, why)
	return reject(why, err)
}

// countRejected counts an error of the fetcher's.
func (in *ingester) countRejected(ctx context.Context, err error) {
	var r *rejection
	if errors.As(err, &r) {
		in.metrics.reject(ctx, in.source, r.reason)
	}
}

// deliver hands profiles to the pipeline, which owns them from then on. A payload without samples
// makes no profiles, and there is nothing to deliver.
func (in *ingester) deliver(ctx context.Context, pd pprofile.Profiles, timeout time.Duration) error {
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
	err := in.next.ConsumeProfiles(ctx, pd)
	in.obsreport.EndProfilesOp(ctx, "pprof", samples, err)
	return err
}

// ingest is decode and deliver in one.
func (in *ingester) ingest(ctx context.Context, p payload, timeout time.Duration) error {
	pd, _, err := in.decode(ctx, p)
	if err != nil {
		return err
	}
	return in.deliver(ctx, pd, timeout)
}
