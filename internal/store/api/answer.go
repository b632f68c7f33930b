// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzhttp"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

const (
	// maxAnswerBytes bounds an answer before it is compressed.
	maxAnswerBytes = 128 << 20
	// pieceBytes is the size of an answer's pieces; overhang is room for what is appended before a piece is seen to be
	// full.
	pieceBytes = 64 << 10
	overhang   = 20 << 10
)

// body is what is sent. It is made of pieces, so that it is not copied while it grows; their memory is reserved before
// it is taken.
type body struct {
	meter  *pdatasize.Meter
	pieces [][]byte // but the last one
	last   []byte
	bytes  int // of pieces
	err    error
}

func (b *body) size() int { return b.bytes + len(b.last) }

// grow begins another piece if the last one is full, and reports whether more may be written.
func (b *body) grow() bool {
	if b.err != nil || len(b.last) < pieceBytes {
		return b.err == nil
	}
	b.pieces, b.bytes = append(b.pieces, b.last), b.size()
	b.last = nil
	if b.bytes > maxAnswerBytes {
		b.err = fmt.Errorf("%w: more than %d bytes", model.ErrTooLarge, maxAnswerBytes)
	} else if b.err = b.meter.Grow(pieceBytes + overhang); b.err == nil {
		b.last = make([]byte, 0, pieceBytes+overhang)
	}
	return b.err == nil
}

func (b *body) Write(p []byte) (int, error) {
	written := 0
	for b.grow() && written < len(p) {
		n := min(len(p)-written, pieceBytes-len(b.last))
		b.last = append(b.last, p[written:written+n]...)
		written += n
	}
	return written, b.err
}

// answer is complete before the first byte is sent, so that a slow reader does not block a query.
type answer struct {
	body
	contentType string
	// filename, if it is set, makes a browser save the body.
	filename string
	// leftOut is how many samples are left out of a pprof.
	leftOut int
	// gzipped reports that the body is a gzip file. It gets no Content-Encoding.
	gzipped bool
}

const jsonType = "application/json"

func jsonAnswer(v any) (*answer, error) {
	data, err := json.Marshal(v)
	return &answer{body: body{last: data}, contentType: jsonType}, err
}

// write sends the answer. timeout bounds how long the client may take to read it; 0 is no limit. The reservation holds
// the bytes, and releases them as they are sent.
func (a *answer) write(w http.ResponseWriter, r *http.Request, reservation *budget.Reservation, timeout time.Duration) {
	a.pieces, a.last = append(a.pieces, a.last), nil
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	hash, size := xxhash.New(), 0
	for _, piece := range a.pieces {
		_, _ = hash.Write(piece) // it does not fail
		size += len(piece)
	}
	etag := fmt.Sprintf(`W/"%016x"`, hash.Sum64())
	h.Set("ETag", etag)
	if a.filename != "" {
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(a.filename))
	}
	if a.leftOut > 0 {
		h.Set(leftOutHeader, strconv.Itoa(a.leftOut))
	}
	if a.gzipped {
		h.Set(gzhttp.HeaderNoCompression, "1")
	}
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(size))
	if timeout > 0 {
		// The query's own time does not count. A server that knows no deadlines has none, either.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
	for i, piece := range a.pieces {
		// The server drops the body of an answer to HEAD. Any other error means that the client has disconnected, or is too
		// slow.
		if _, err := w.Write(piece); err != nil {
			return
		}
		a.pieces[i] = nil
		size -= len(piece)
		_ = reservation.ResizeBody(int64(size) + query.WritingBytes) // it only shrinks
	}
}

// matches reports whether a list of entity tags contains etag (RFC 9110 section 13.1.2, weak comparison).
func matches(list, etag string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// writeError answers with JSON, or with text for pprof's tools, which show it to their user.
func writeError(w http.ResponseWriter, r *http.Request, e *query.Error) {
	h := w.Header()
	h.Del("ETag")
	if isCall(r) {
		writeCallError(w, r, connect.NewError(cmp.Or(callCodes[e.Status], connect.CodeInvalidArgument), e))
		return
	}
	if e.Status == http.StatusServiceUnavailable {
		httpserver.SetRetryAfter(w, otlpstatus.DefaultRetryDelay)
	}
	if wantsPprofErrors(r) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Go-Pprof", "1")
		w.WriteHeader(e.Status)
		message := e.Message
		if e.Hint != "" {
			message += "; " + e.Hint
		}
		_, _ = fmt.Fprintln(w, message)
		return
	}
	h.Set("Content-Type", jsonType)
	w.WriteHeader(e.Status)
	body, _ := json.Marshal(map[string]string{"error": e.Message, "hint": e.Hint}) // strings can be marshalled
	_, _ = w.Write(body)
}
