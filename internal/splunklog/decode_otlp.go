// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// readOTLP reads a body that is OTLP profiles, compressed or not, as bytes or, where its way had no bytes, as base64.
// What the record says beside it does not matter: the body has its own resources.
func (t *translator) readOTLP(body string) *Rejection {
	if min(t.bytesLeft, t.workLeft, t.samplesLeft) <= 0 {
		return reject(ReasonTooLarge, "the records before it used up what one request may carry")
	}
	attributes := t.record.log.Attributes()
	if version, ok := attributes.Get(keyBodyVersion); ok && version.AsString() != bodyVersion {
		return reject(ReasonFormat, "`%s` is %q, not %s", keyBodyVersion, short(version.AsString()), bodyVersion)
	}
	payload := []byte(body)
	if t.record.log.Body().Type() != pcommon.ValueTypeBytes {
		var err error
		if payload, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(body, "=\r\n\t ")); err != nil {
			return reject(ReasonBase64, "the body is not base64: %w", err)
		}
	}
	compression := compressionNone
	if value, ok := attributes.Get(keyBodyCompression); ok {
		compression = value.AsString()
	}
	limit := min(t.bytesLeft, t.workLeft)
	payload, err := t.unpacker.unpack(payload, compression, limit)
	switch {
	case errors.Is(err, errUnknownCompression):
		return reject(ReasonFormat, "`%s` is %q", keyBodyCompression, short(compression))
	case errors.Is(err, errTooLong):
		t.workLeft -= limit
		return reject(ReasonTooLarge, "the body unpacks to more than the %d bytes left", limit)
	case err != nil:
		return reject(ReasonNotOTLP, "unpack the body: %w", err)
	}
	t.bytesLeft -= len(payload)
	t.workLeft -= len(payload)
	memory, err := pdatasize.Profiles(payload)
	if err != nil {
		return reject(ReasonNotOTLP, "the body is not OTLP profiles: %w", err)
	}
	if t.memoryLeft -= memory; t.memoryLeft < 0 {
		return reject(ReasonTooLarge, "the body would take %d bytes of memory, more than are left", memory)
	}
	pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(payload)
	if err != nil {
		return reject(ReasonNotOTLP, "the body is not OTLP profiles: %w", err)
	}
	if most := constantShared + maxShared*len(payload); sharedBytes(pd) > most {
		return reject(ReasonTooLarge, "the attributes of its resources and scopes would be more than %d bytes", most)
	}
	n := observations(pd)
	if n > t.samplesLeft {
		return reject(ReasonTooLarge, "the body has %d samples, more than the %d left", n, t.samplesLeft)
	}
	t.samplesLeft -= n
	t.whole = append(t.whole, pd)
	return nil
}

// Attributes of resources and scopes can refer to the string table too, and are resolved by the unmarshaler. What they
// become is bounded by constantShared + maxShared × the size of the body.
const (
	constantShared = 1 << 20
	maxShared      = 32
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

// joinWhole puts the profiles that came whole behind those that were made of the other records, under one dictionary.
func (t *translator) joinWhole() {
	if len(t.whole) == 0 {
		return
	}
	var batch compact.Batch
	batch.Reset(compact.Options{})
	made := t.result.Profiles
	if made.ResourceProfiles().Len() > 0 {
		batch.Add(made)
	}
	for _, pd := range t.whole {
		batch.Add(pd)
	}
	for part := range batch.Parts() {
		t.result.Profiles = part.Profiles
	}
	t.result.Samples += observations(t.result.Profiles) - observations(made)
	for _, n := range batch.Stats().Dropped {
		t.result.Dropped[pprofconv.DropMalformed] += n
	}
	clear(t.whole)
	t.whole = t.whole[:0]
}

var (
	errUnknownCompression = errors.New("unknown compression")
	errTooLong            = errors.New("too long")
)

// unpacker undoes the compression of bodies. It keeps its readers for the next body: making one costs more than a small
// body does.
type unpacker struct {
	source bytes.Reader
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
}

// maxWindowBytes bounds what a zstd reader holds beside its output (RFC 8878 section 3.1.1.1.2 asks for 8 MiB).
const maxWindowBytes = 8 << 20

// unpack returns a payload without its compression, or errTooLong if that is more than limit.
func (u *unpacker) unpack(payload []byte, compression string, limit int) ([]byte, error) {
	defer u.source.Reset(nil)
	u.source.Reset(payload)
	var from io.Reader
	var err error
	switch compression {
	case compressionNone:
		if len(payload) > limit {
			return nil, errTooLong
		}
		return payload, nil
	case compressionGzip:
		if u.gzip == nil {
			u.gzip = new(gzip.Reader)
		}
		from, err = u.gzip, u.gzip.Reset(&u.source)
	case compressionZstd:
		if u.zstd == nil {
			u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindowBytes), zstd.WithDecoderLowmem(true))
		}
		if err == nil {
			from, err = u.zstd, u.zstd.Reset(&u.source)
		}
	default:
		return nil, fmt.Errorf("%w %q", errUnknownCompression, compression)
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	if len(out) > limit {
		return nil, errTooLong
	}
	return out, err
}
