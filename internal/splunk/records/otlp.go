// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"errors"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// keyBodyVersion is an attribute of a record whose body is OTLP profiles, bodyVersion the package of their message in
// opentelemetry-proto.
const (
	keyBodyVersion = "profiling.data.version"
	bodyVersion    = "opentelemetry.proto.profiles.v1development"
)

// addOTLP writes all of pd as one record. If pd has one resource, the record has it too.
func (s *sink) addOTLP(pd pprofile.Profiles) {
	body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd)
	if err != nil {
		return // the marshaler returns no errors
	}
	rl := s.part.Logs.ResourceLogs().AppendEmpty()
	if pd.ResourceProfiles().Len() == 1 {
		rp := pd.ResourceProfiles().At(0)
		rp.Resource().CopyTo(rl.Resource())
		rl.SetSchemaUrl(rp.SchemaUrl())
	}
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ProfilingName)
	record := sl.LogRecords().AppendEmpty()
	attributes := record.Attributes()
	attributes.PutStr(KeySourceType, ProfilingName)
	attributes.PutStr(keyFormat, FormatOTLP.String())
	attributes.PutStr(keyBodyVersion, bodyVersion)
	frames := 0
	for p := range otlp.Profiles(pd) {
		record.SetTimestamp(cmp.Or(record.Timestamp(), p.Time()))
		for _, sample := range p.Samples().All() {
			frames += s.framesOf(sample.StackIndex()) * observationsIn(sample)
		}
	}
	attributes.PutInt(keyFrameCount, int64(frames))
	record.Body().SetEmptyBytes().FromRaw(zstdEncoder.EncodeAll(body, nil))
	s.finish(record, s.total)
}

// zstdEncoder is safe for concurrent use. There is only one, since it takes much memory.
var zstdEncoder = func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}()

// readOTLP reads a body that is OTLP profiles, as bytes or, if it came by a protocol without bytes, as base64. The
// record's resource and other attributes do not matter: the body has its own.
func (t *translator) readOTLP(body string) *Rejection {
	attributes := t.record.log.Attributes()
	if version, ok := attributes.Get(keyBodyVersion); ok && version.AsString() != bodyVersion {
		return reject(ReasonFormat, "`%s` is %.64q, not %s", keyBodyVersion, version.AsString(), bodyVersion)
	}
	if err := t.decodeBase64(body, true); err != nil {
		return err
	}
	payload, rejected := t.uncompress()
	if rejected != nil {
		return rejected
	}
	t.bytesLeft -= len(payload)
	t.workLeft -= len(payload)
	memory, err := size.Profiles(payload)
	if err != nil {
		return reject(ReasonNotOTLP, "the body is not OTLP profiles: %w", err)
	}
	if rejected := t.reserveWhole(memory, len(payload)); rejected != nil {
		return rejected
	}
	pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(payload)
	if err != nil {
		return reject(ReasonNotOTLP, "the body is not OTLP profiles: %w", err)
	}
	return t.addWhole(pd, len(payload))
}

// reserveWhole reserves the memory of profiles that a body has as a whole, and of merging them.
func (t *translator) reserveWhole(memory, bodyBytes int) *Rejection {
	if t.memoryLeft -= memory; t.memoryLeft < 0 {
		return reject(ReasonTooLarge, "the body would take %d bytes of memory, more than are left", memory)
	}
	t.wholeBytes += 2*memory + bodyBytes
	if err := t.opts.Meter.GrowTo(t.memory()); err != nil {
		return reject(ReasonTooLarge, "%w", err)
	}
	return nil
}

// addWhole adds profiles that a body has as a whole.
func (t *translator) addWhole(pd pprofile.Profiles, bodyBytes int) *Rejection {
	t.sharedLeft += maxShared * bodyBytes
	shared := sharedBytes(pd)
	if shared > t.sharedLeft {
		return reject(ReasonTooLarge, "the attributes of its resources and scopes would be %d bytes, more than the %d left",
			shared, t.sharedLeft)
	}
	t.sharedLeft -= shared
	n := observations(pd)
	if n > t.samplesLeft {
		return reject(ReasonTooLarge, "the body has %d samples, more than the %d left", n, t.samplesLeft)
	}
	t.samplesLeft -= n
	t.whole = append(t.whole, pd)
	return nil
}

// uncompress returns t.payload without its compression.
func (t *translator) uncompress() ([]byte, *Rejection) {
	limit := min(t.bytesLeft, t.workLeft)
	payload, err := decode.Uncompress(t.payload, limit, &t.scratch)
	var damaged *scan.FormatError
	switch {
	case errors.Is(err, scan.ErrTooLarge):
		t.workLeft -= limit
		return nil, reject(ReasonTooLarge, "the body is more than the %d bytes left when decompressed", limit)
	case errors.As(err, &damaged):
		return nil, reject(ReasonNotOTLP, "the body is %s", damaged.Seems)
	case err != nil:
		return nil, reject(ReasonTooLarge, "%w", err)
	}
	return payload, nil
}

// Attributes of resources and scopes can refer to the string table too, and are resolved by the unmarshaler. Those of
// all bodies together are bounded by constantShared + maxShared × the size of the bodies.
const (
	constantShared = 1 << 20
	maxShared      = 16
)

func sharedBytes(pd pprofile.Profiles) (n int) {
	add := func(m pcommon.Map) {
		for key, value := range m.All() {
			n += len(key)
			if value.Type() == pcommon.ValueTypeStr {
				n += len(value.Str())
			}
		}
	}
	for _, rp := range pd.ResourceProfiles().All() {
		add(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			add(sp.Scope().Attributes())
		}
	}
	return n
}

// joinWhole merges the profiles of OTLP bodies with those of the other records.
func (t *translator) joinWhole() {
	if len(t.whole) == 0 {
		return
	}
	var batch compact.Batch
	batch.Reset(compact.Options{})
	translated := t.result.Profiles
	batch.Add(translated)
	for _, pd := range t.whole {
		batch.Add(pd)
		stats := batch.TakeStats()
		if dropped := stats.DroppedSamples(); dropped > 0 {
			t.result.Incomplete++
			t.result.Dropped[scan.DropMalformed] += dropped
		}
		t.result.addAttributes(stats.Repairs)
	}
	t.result.Profiles = batch.Whole()
	t.result.Samples += observations(t.result.Profiles) - observations(translated)
}
