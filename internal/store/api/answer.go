// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// maxAnswerBytes bounds an answer before it is compressed.
const maxAnswerBytes = 128 << 20

// answer is a body, complete before the first byte is sent, so that a slow reader does not block a query.
type answer struct {
	body        []byte
	contentType string
	// filename, if it is set, makes a browser save the body.
	filename string
	// gzipped reports that the body is a gzip file. It gets no Content-Encoding.
	gzipped bool
}

// jsonAnswer marshals v.
func jsonAnswer(v any) (*answer, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &answer{body: body, contentType: "application/json"}, nil
}

func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	etag := fmt.Sprintf(`W/"%016x"`, xxhash.Sum64(a.body))
	h.Set("ETag", etag)
	if a.filename != "" {
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(a.filename))
	}
	if a.gzipped {
		h.Set(gzhttp.HeaderNoCompression, "1")
	}
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	// The server drops the body of an answer to HEAD. Any other error means that the client has disconnected.
	_, _ = w.Write(a.body)
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
func writeError(w http.ResponseWriter, r *http.Request, e *httpError) {
	h := w.Header()
	h.Del("ETag")
	if e.status == http.StatusServiceUnavailable {
		httpserver.SetRetryAfter(w, httpserver.DefaultRetryDelay)
	}
	if wantsPprofErrors(r) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Go-Pprof", "1")
		w.WriteHeader(e.status)
		text := e.text
		if e.hint != "" {
			text += "; " + e.hint
		}
		_, _ = fmt.Fprintln(w, text)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	body, _ := json.Marshal(map[string]string{"error": e.text, "hint": e.hint}) // strings can be marshalled
	_, _ = w.Write(body)
}
