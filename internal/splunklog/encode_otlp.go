// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// What the attributes of a record say whose body is OTLP profiles.
const (
	keyBodyVersion     = "profiling.data.version"
	keyBodyCompression = "profiling.data.compression"

	formatOTLPValue = "otlp"
	// bodyVersion is the package of the ProfilesData message in opentelemetry-proto.
	bodyVersion     = "opentelemetry.proto.profiles.v1development"
	compressionZstd = "zstd"
	compressionGzip = "gzip"
	compressionNone = "none"
)

// addOTLP makes one record of all of pd, with one dictionary. The record has the resource of the profiles where that
// is one; the body has them all.
func (s *sink) addOTLP(pd pprofile.Profiles) {
	body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(pd)
	if err != nil {
		return // the marshaler has no error to give
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
	attributes.PutStr(keyFormat, formatOTLPValue)
	attributes.PutStr(keyBodyVersion, bodyVersion)
	attributes.PutStr(keyBodyCompression, compressionZstd)
	frames := 0
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				if i+j+k == 0 {
					record.SetTimestamp(p.Time())
				}
				for _, sample := range p.Samples().All() {
					frames += s.framesOf(sample.StackIndex()) * observationsIn(sample)
				}
			}
		}
	}
	attributes.PutInt(keyFrameCount, int64(frames))
	record.Body().SetEmptyBytes().FromRaw(zstdEncoder.EncodeAll(body, nil))
	s.finish(record, s.total)
}

// zstdEncoder is safe for concurrent use, as is zstdDecoder; both are costly to make.
var zstdEncoder = func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}()
