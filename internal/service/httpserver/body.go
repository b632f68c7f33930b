// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// The errors of reading a body, for errors.Is. If the body is too large, the error is an *budget.TooLargeError; if the
// budget is used up, it is budget.ErrBusy.
var (
	// ErrEncoding means that the Content-Encoding is not accepted.
	ErrEncoding = errors.New("Content-Encoding is not accepted")
	// ErrStopping means that the body had not arrived when the server stopped.
	ErrStopping = errors.New("the server stops")
	// ErrLate means that the body did not arrive within the server's read timeout.
	ErrLate = errors.New("the body did not arrive in time (`read_timeout`)")
)

// BodyError is a body that cannot be read, with the status to answer with.
type BodyError struct {
	Status int
	Err    error
}

func (e *BodyError) Error() string { return e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// HTTPStatus returns the status to answer with.
func (e *BodyError) HTTPStatus() int { return e.Status }

// BodyOptions bound a body.
type BodyOptions struct {
	// Reservation holds the body's memory. The caller releases it.
	Reservation *budget.Reservation
	// LimitBytes is the largest body, both as sent and decoded.
	LimitBytes int64
	// Encodings are the accepted values of Content-Encoding. No encoding and identity always are.
	Encodings []string
}

// Encodings are all values of Content-Encoding that OpenBody can decode.
var Encodings = []string{"gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4"}

const (
	// lz4Bytes is the memory that a reader of lz4 can need: two blocks of the largest size.
	lz4Bytes = 8 << 20
	// maxSnappyRatio bounds how many bytes a byte of snappy can become: three bytes copy at most 64.
	maxSnappyRatio = 64
)

// zstdWindowBytes are the largest windows that decoders of each class accept. RFC 8878 section 3.1.1.1.2 recommends 8
// MiB.
var zstdWindowBytes = [...]uint64{256 << 10, 1 << 20, 8 << 20}

var errZstdWindow = errors.New("its window is above 8 MiB: compress it without --long and --ultra")

// Readers with large buffers are reused until the garbage collector frees them.
var (
	zstdDecoders [len(zstdWindowBytes)]sync.Pool
	lz4Readers   = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
)

// Body reads the decoded body of a request. Its errors are *BodyError.
type Body struct {
	reader  io.Reader
	options BodyOptions
	ctx     context.Context
	stated  int64
	reading *bodyReading
	// isRead reports that the whole body has been read, so that the connection can be used again after an error.
	isRead bool
	// finish returns the decoder to its pool; nil if there is none.
	finish func()
}

// OpenBody prepares to read the body of r, which nothing has read or decoded before. A body with a Content-Encoding is
// read at once. The error is a *BodyError. After an error with some of the body unread, the server closes the
// connection with the answer.
func OpenBody(w http.ResponseWriter, r *http.Request, options BodyOptions) (*Body, error) {
	b := &Body{options: options, ctx: r.Context(), stated: r.ContentLength}
	b.reading, _ = b.ctx.Value(bodyReadingKey{}).(*bodyReading)
	if b.reading == nil { // the server was not started by Start
		b.reading = &bodyReading{stopping: context.Background(), writer: w}
	}
	b.reading.unread = 2 * options.LimitBytes
	if r.ContentLength > options.LimitBytes {
		return nil, b.fail(&budget.TooLargeError{Limit: options.LimitBytes})
	}
	wire := http.MaxBytesReader(nil, r.Body, options.LimitBytes)
	encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ", "))
	if encoding == "" || encoding == "identity" {
		b.reader = wire
		return b, nil
	}
	if !slices.Contains(options.Encodings, encoding) {
		accepted := "send the body without one"
		if len(options.Encodings) > 0 {
			accepted = "use one of " + strings.Join(options.Encodings, ", ") + ", or none"
		}
		return nil, b.fail(fmt.Errorf("%w: %q; %s", ErrEncoding, encoding, accepted))
	}
	// What a decoder needs is reserved once the body is there: its sender cannot hold that.
	data, err := options.Reservation.ReadAll(b.ctx, wire, b.stated, options.LimitBytes)
	if err != nil {
		return nil, b.fail(err)
	}
	b.isRead = true
	decoded, finish, err := decode(b.ctx, encoding, data, options.Reservation, options.LimitBytes)
	if err != nil {
		return nil, b.fail(fmt.Errorf("undo Content-Encoding %s: %w", encoding, err))
	}
	b.stated, b.finish = -1, finish
	b.reader = http.MaxBytesReader(nil, io.NopCloser(decoded), options.LimitBytes)
	return b, nil
}

// ReadBody reads a body within limits. The reservation holds its size. The error is a *BodyError.
func ReadBody(w http.ResponseWriter, r *http.Request, options BodyOptions) ([]byte, error) {
	body, err := OpenBody(w, r, options)
	if err != nil {
		return nil, err
	}
	return body.ReadAll()
}

// Read reads decoded bytes. The caller calls Complete when it has read enough.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.fail(err)
	}
	return n, err
}

// Complete reports that nothing more will be read.
func (b *Body) Complete() {
	if b.finish != nil {
		b.finish()
		b.finish = nil
		b.reader = nil
	}
}

func (b *Body) fail(err error) error {
	b.Complete()
	if !b.isRead {
		b.reading.close()
		if errors.Is(err, os.ErrDeadlineExceeded) { // its sender had the time that it has
			b.reading.unread = 0
		}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = &budget.TooLargeError{Limit: tooLarge.Limit}
	}
	return bodyError(err, b.reading.stopping.Err() != nil)
}

// bodyError returns the error of reading a body, with its status and, if the server stopped the reading, with that
// cause.
func bodyError(err error, stopping bool) *BodyError {
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return &BodyError{http.StatusRequestEntityTooLarge, err}
	case errors.Is(err, ErrEncoding):
		return &BodyError{http.StatusUnsupportedMediaType, err}
	case stopping:
		return &BodyError{http.StatusServiceUnavailable, ErrStopping}
	case errors.Is(err, budget.ErrBusy), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &BodyError{http.StatusServiceUnavailable, err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		// OTLP's senders retry a 503, but not a 408.
		return &BodyError{http.StatusServiceUnavailable, ErrLate}
	}
	return &BodyError{http.StatusBadRequest, err}
}

// ReadAll reads all of the body. The result is valid until the reservation is released.
func (b *Body) ReadAll() ([]byte, error) {
	data, err := b.options.Reservation.ReadAll(b.ctx, b.reader, b.stated, b.options.LimitBytes)
	if err != nil {
		return nil, b.fail(err)
	}
	b.Complete()
	return data, nil
}

// decode returns a reader of what data becomes, and what to call after its use, or nil. The reservation holds the
// decoder's memory.
func decode(
	ctx context.Context, encoding string, data []byte, reservation *budget.Reservation, limit int64,
) (io.Reader, func(), error) {
	wire := bytes.NewReader(data)
	var reader io.Reader
	var err error
	switch encoding {
	case "gzip":
		reader, err = gzip.NewReader(wire)
	case "zlib", "deflate": // RFC 9110 section 8.4.1.2: deflate is the zlib format
		reader, err = zlib.NewReader(wire)
	case "zstd":
		return decodeZstd(ctx, data, reservation, limit)
	case "lz4":
		return decodeLZ4(ctx, wire, reservation)
	default:
		// Collectors up to v0.120 use the same name for snappy's block format and its framing format.
		if encoding == "x-snappy-framed" || bytes.HasPrefix(data, []byte(snappyFrame)) {
			return s2.NewReader(wire, s2.ReaderMaxBlockSize(64<<10)), nil, nil
		}
		reader, err = decodeSnappy(ctx, data, reservation, limit)
	}
	return reader, nil, err
}

func decodeLZ4(ctx context.Context, wire io.Reader, reservation *budget.Reservation) (io.Reader, func(), error) {
	if err := reservation.ReserveBody(ctx, lz4Bytes); err != nil {
		return nil, nil, err
	}
	reader := lz4Readers.Get().(*lz4.Reader)
	reader.Reset(wire)
	return reader, func() {
		reader.Reset(nil)
		lz4Readers.Put(reader)
	}, nil
}

// decodeZstd decodes a stream. The reservation holds the window, which the decoder allocates at once.
func decodeZstd(
	ctx context.Context, data []byte, reservation *budget.Reservation, limit int64,
) (io.Reader, func(), error) {
	var frame zstd.Header
	if err := frame.Decode(data); err != nil {
		return nil, nil, err
	}
	window := frame.WindowSize
	if frame.SingleSegment { // the sender knew the size: its content is the window
		window = frame.FrameContentSize
	}
	// Frames after the first may not need more than the class of the first allows, unless that has no content.
	class := 0
	for class < len(zstdWindowBytes)-1 && (window > zstdWindowBytes[class] || frame.Skippable) {
		class++
	}
	switch {
	case frame.FrameContentSize > uint64(limit):
		return nil, nil, &budget.TooLargeError{Limit: limit}
	case window > zstdWindowBytes[class]:
		return nil, nil, errZstdWindow
	}
	if err := reservation.ReserveBody(ctx, int64(zstdWindowBytes[class])); err != nil {
		return nil, nil, err
	}
	decoder, isPooled := zstdDecoders[class].Get().(*zstd.Decoder)
	var err error
	if isPooled {
		err = decoder.Reset(bytes.NewReader(data))
	} else {
		decoder, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindowBytes[class]))
	}
	if err != nil {
		return nil, nil, err
	}
	return decoder, func() {
		if decoder.Reset(nil) == nil {
			zstdDecoders[class].Put(decoder)
		}
	}, nil
}

// snappyFrame is the beginning of a stream in snappy's framing format.
const snappyFrame = "\xff\x06\x00\x00sNaPpY"

// decodeSnappy decodes the block format.
func decodeSnappy(ctx context.Context, data []byte, reservation *budget.Reservation, limit int64) (io.Reader, error) {
	size, err := s2.DecodedLen(data)
	switch {
	case err != nil:
		return nil, err
	case int64(size) > limit:
		return nil, &budget.TooLargeError{Limit: limit}
	case size/maxSnappyRatio > len(data):
		return nil, s2.ErrCorrupt
	}
	if err := reservation.ReserveBody(ctx, int64(size)); err != nil {
		return nil, err
	}
	decoded, err := s2.Decode(make([]byte, size), data)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(decoded), nil
}
