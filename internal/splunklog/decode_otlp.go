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
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
)

// readOTLP reads a body that is OTLP profiles, compressed or not, as bytes or, where its way had no bytes, as base64.
// What the record says beside it does not matter: the body has its own resources.
func (t *translator) readOTLP(body string) *Rejection {
	if t.bytesLeft <= 0 || t.samplesLeft <= 0 {
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
	payload, err := decompress(payload, compression, t.bytesLeft)
	switch {
	case errors.Is(err, errUnknownCompression):
		return reject(ReasonFormat, "`%s` is %q", keyBodyCompression, short(compression))
	case errors.Is(err, errTooLong):
		return reject(ReasonTooLarge, "the body unpacks to more than the %d bytes left", t.bytesLeft)
	case err != nil:
		return reject(ReasonNotOTLP, "unpack the body: %w", err)
	}
	t.bytesLeft -= len(payload)
	messages, err := weigh(payload, t.messagesLeft)
	switch {
	case errors.Is(err, errTooManyMessages):
		return reject(ReasonTooLarge, "the body has more than the %d messages left", t.messagesLeft)
	case err != nil:
		return reject(ReasonNotOTLP, "the body is no OTLP profiles: %w", err)
	}
	t.messagesLeft -= messages
	pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(payload)
	if err != nil {
		return reject(ReasonNotOTLP, "the body is no OTLP profiles: %w", err)
	}
	n := observations(pd)
	if n > t.samplesLeft {
		return reject(ReasonTooLarge, "the body has %d samples, more than the %d left", n, t.samplesLeft)
	}
	t.samplesLeft -= n
	t.whole = append(t.whole, pd)
	return nil
}

// joinWhole puts the profiles that came whole behind those that were made of the other records, under one dictionary.
func (t *translator) joinWhole() {
	if len(t.whole) == 0 {
		return
	}
	var batch compact.Batch
	batch.Reset(compact.Options{})
	if t.out.ResourceProfiles().Len() > 0 {
		batch.Add(t.out)
	}
	for _, pd := range t.whole {
		batch.Add(pd)
	}
	for part := range batch.Parts() {
		t.result.Profiles = part.Profiles
	}
	t.result.Samples += observations(t.result.Profiles) - observations(t.out)
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

// decompress gives at most limit bytes.
func decompress(payload []byte, compression string, limit int) ([]byte, error) {
	var from io.Reader
	switch compression {
	case compressionNone:
		if len(payload) > limit {
			return nil, errTooLong
		}
		return payload, nil
	case compressionGzip:
		z, err := gzip.NewReader(bytes.NewReader(payload))
		if err != nil {
			return nil, err
		}
		from = z
	case compressionZstd:
		z, err := zstd.NewReader(bytes.NewReader(payload), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	default:
		return nil, fmt.Errorf("%w %q", errUnknownCompression, compression)
	}
	out, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	if len(out) > limit || errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, errTooLong
	}
	return out, err
}
