// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

const (
	// maxTrustedRatio bounds the size that a gzip trailer may reservation, as a multiple of the payload's: a sender can
	// write anything there. Profiles are seldom compressed to less than a sixth.
	maxTrustedRatio = 16
	firstReadBytes  = 32 << 10
	// maxZstdWindowBytes bounds the memory of a zstd stream beside its output.
	maxZstdWindowBytes = 8 << 20
	// lz4Buffers is how many blocks a reader of lz4 holds.
	lz4Buffers = 3
)

// decompressor turns a payload into plain bytes. It keeps its readers and its buffer for the next payload.
type decompressor struct {
	source bytes.Reader
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	buffer []byte
	probe  [1]byte
}

// Uncompress returns the plain bytes of a payload that is gzip, zstd, lz4 or plain. The error is ErrTooLarge if they
// are more than limit, or that of meter.
func Uncompress(payload []byte, limit int, meter *pdatasize.Meter) ([]byte, error) {
	d := decompressors.Get().(*decompressor)
	defer decompressors.Put(d)
	defer d.release()
	plain, err := d.plain(payload, limit, meter)
	d.buffer = nil // it is the caller's
	return plain, err
}

// Head returns the first n plain bytes of a payload that is gzip, zstd, lz4 or plain, fewer if it ends or is damaged
// before. It takes ReaderBytes.
func Head(payload []byte, n int) []byte {
	if !isCompressed(payload) {
		return payload[:min(len(payload), n)]
	}
	head, read := make([]byte, n), 0
	_, _ = Stream(payload, int64(n), func(r io.Reader) (err error) {
		read, err = io.ReadFull(r, head)
		return err
	})
	return head[:read]
}

// Stream calls use with the plain bytes of a payload that is gzip, zstd, lz4 or plain, one after the other. Reading
// more than limit of them is ErrTooLarge. It returns how many were read. Reading takes ReaderBytes.
func Stream(payload []byte, limit int64, use func(io.Reader) error) (read int64, err error) {
	plain := limited{r: bytes.NewReader(payload), left: limit, limit: limit}
	if isCompressed(payload) {
		d := decompressors.Get().(*decompressor)
		defer decompressors.Put(d)
		defer d.release()
		if plain.r, err = d.stream(payload); err != nil {
			return 0, damaged("stream", err)
		}
	}
	err = use(&plain)
	return limit - max(plain.left, 0), err
}

// limited is a reader that ends with an error beyond a limit.
type limited struct {
	r           io.Reader
	left, limit int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, tooLarge(int(l.limit))
	}
	if err != nil && err != io.EOF { // an io.Reader's end
		return n, damaged("compressed", err)
	}
	return n, err
}

func isGzip(payload []byte) bool { return bytes.HasPrefix(payload, []byte{0x1f, 0x8b}) }

func isZstd(payload []byte) bool { return bytes.HasPrefix(payload, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

// IsLZ4 reports whether a payload is a frame of lz4.
func IsLZ4(payload []byte) bool { return bytes.HasPrefix(payload, []byte{0x04, 0x22, 0x4d, 0x18}) }

func isCompressed(payload []byte) bool { return isGzip(payload) || isZstd(payload) || IsLZ4(payload) }

// ReaderBytes is the memory that a reader of a frame of lz4 takes beside the plain bytes, up to 12 MiB. Its sixth byte
// has the largest size of a block: 64 KiB, or four times as much for each step. Other readers are small.
func ReaderBytes(payload []byte) int {
	const smallest, sizes = 4, 4
	if !IsLZ4(payload) || len(payload) < 6 {
		return 0
	}
	index := int(payload[5]>>4) & 7
	return lz4Buffers * (64 << 10) << (2 * min(max(index-smallest, 0), sizes-1))
}

// Making a reader costs more than reading a small payload.
var decompressors = sync.Pool{New: func() any { return new(decompressor) }}

// plain returns the payload without its compression. It is an error if that has more than limit bytes.
// The result is borrowed: it is the payload itself, or the decompressor's buffer.
func (d *decompressor) plain(payload []byte, limit int, meter *pdatasize.Meter) ([]byte, error) {
	format, claimed := "zstd", 0
	switch {
	case len(payload) == 0:
		return nil, &scan.FormatError{Seems: "an empty body"}
	case isGzip(payload):
		format = "gzip"
		// The last four bytes of gzip are the size modulo 2^32.
		if len(payload) >= 18 {
			claimed = int(binary.LittleEndian.Uint32(payload[len(payload)-4:]))
		}
		claimed = min(claimed, len(payload)*maxTrustedRatio)
	case isZstd(payload):
	case IsLZ4(payload):
		format = "lz4"
	case len(payload) > limit:
		return nil, tooLarge(limit)
	default:
		return payload, nil
	}
	for size := min(max(claimed, firstReadBytes), limit); ; {
		plain, left, err := d.read(payload, size, limit, meter)
		switch {
		case err != nil && meter.Err() != nil:
			return nil, err
		case err != nil:
			return nil, damaged(format, err)
		case len(plain)+left > limit:
			return nil, tooLarge(limit)
		case left > 0: // now the size is known
			meter.Reset()
			size = len(plain) + left
		case len(plain) == 0:
			return nil, &scan.FormatError{Seems: "an empty " + format + " stream"}
		default:
			return plain, nil
		}
	}
}

// read reads up to size plain bytes of a payload into the buffer, and counts those that are left, up to the limit.
func (d *decompressor) read(
	payload []byte, size, limit int, meter *pdatasize.Meter,
) (plain []byte, left int, err error) {
	if err := meter.Grow(size + ReaderBytes(payload)); err != nil {
		return nil, 0, err
	}
	if cap(d.buffer) < size {
		d.buffer = nil // so that it can be freed before the next is made
		d.buffer = make([]byte, 0, size)
	}
	r, err := d.stream(payload)
	if err != nil {
		return nil, 0, err
	}
	n, err := io.ReadFull(r, d.buffer[:size])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The end, or that of a truncated stream: the stream tells.
		if _, err = r.Read(d.probe[:]); errors.Is(err, io.EOF) {
			err = nil
		}
		return d.buffer[:n], 0, err
	}
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, io.LimitReader(r, int64(limit-n)+1))
		left = int(rest)
	}
	return d.buffer[:n], left, err
}

func tooLarge(limit int) error {
	return fmt.Errorf("%w: more than %d bytes uncompressed", scan.ErrTooLarge, limit)
}

// stream returns a reader of the plain bytes of a payload that is gzip, zstd or lz4.
func (d *decompressor) stream(payload []byte) (_ io.Reader, err error) {
	d.source.Reset(payload)
	switch {
	case IsLZ4(payload):
		return lz4.NewReader(&d.source), nil
	case isZstd(payload) && d.zstd == nil:
		d.zstd, err = zstd.NewReader(&d.source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindowBytes))
		return d.zstd, err
	case isZstd(payload):
		return d.zstd, d.zstd.Reset(&d.source)
	case d.gzip == nil:
		d.gzip, err = gzip.NewReader(&d.source)
		return d.gzip, err
	default:
		return d.gzip, d.gzip.Reset(&d.source)
	}
}

func damaged(format string, err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return &scan.FormatError{Seems: "a zstd stream whose window is above 8 MiB (compress it without --long and --ultra)"}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &scan.FormatError{Seems: "a truncated " + format + " stream", Err: err}
	}
	return &scan.FormatError{Seems: "a damaged " + format + " stream", Err: err}
}

// release forgets the payload, and a buffer that is too large to be kept.
func (d *decompressor) release() {
	d.source.Reset(nil)
	if cap(d.buffer) > scan.MaxKeptBytes {
		d.buffer = nil
	}
}
