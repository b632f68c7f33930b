// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch gets payloads over HTTP.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// Fetcher gets payloads over HTTP. It neither counts nor logs: its errors are *ingest.Rejection.
type Fetcher struct {
	Client *http.Client
	// Header goes with every request; it is read only.
	Header http.Header
	// ExplicitEncoding is set where the client does not undo a Content-Encoding by itself.
	ExplicitEncoding bool
	// MaxBytes is the largest answer.
	MaxBytes int64
}

// Get fetches one payload into memory that claim holds. Errors name the URL as shown.
func (f *Fetcher) Get(ctx context.Context, target *url.URL, shown string, claim *admission.Claim) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	claim.OnRefusal(cancel)
	defer claim.Complete()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, ingest.Reject(ingest.Unreachable, fmt.Errorf("get %s: not a URL that can be asked", shown))
	}
	maps.Copy(request.Header, f.Header)
	response, err := f.Client.Do(request)
	if err != nil {
		// The client's error repeats the URL; only what is inside it is of interest.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, ingest.Reject(transportReason(err), fmt.Errorf("get %s: %w", shown, err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, ingest.Reject(ingest.HTTPStatus, fmt.Errorf("get %s: %w%s", shown, ingest.StatusError(response.StatusCode), firstLine(response.Body)))
	}
	if kind := response.Header.Get("Content-Type"); !mayBePprof(kind) {
		return nil, ingest.Reject(ingest.ContentType, fmt.Errorf(
			"get %s: the answer is %s, not a pprof (does the query have debug=?)%s", shown, kind, firstLine(response.Body)))
	}
	body := claim.Count(response.Body)
	if f.ExplicitEncoding {
		if body, err = undoEncoding(response.Header.Values("Content-Encoding"), body); err != nil {
			return nil, encodingFault(shown, err)
		}
	}
	stated := response.ContentLength
	if response.Header.Get("Content-Encoding") != "" {
		stated = -1 // the length of what is encoded
	}
	data, err := claim.ReadAll(ctx, body, stated, f.MaxBytes)
	var tooLarge *admission.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return nil, ingest.Reject(ingest.TooLarge, fmt.Errorf("get %s: the answer is %w (`max_profile_bytes`)", shown, tooLarge))
	case errors.Is(err, admission.ErrBusy):
		return nil, ingest.Reject(ingest.Busy, fmt.Errorf("get %s: after %d bytes: %w", shown, len(data), err))
	case err != nil:
		return nil, ingest.Reject(transportReason(err), fmt.Errorf("get %s: after %d bytes: %w", shown, len(data), err))
	}
	return data, nil
}

// transportReason tells a target that is too slow from one that cannot be reached.
func transportReason(err error) ingest.Reason {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout()) {
		return ingest.Timeout
	}
	return ingest.Unreachable
}

// mayBePprof refuses what says of itself that it is text. Anything else is left to the decoder:
// pprof has no content type of its own, and servers give it many.
func mayBePprof(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", strings.HasSuffix(kind, "xml"):
		return false
	}
	return true
}

// firstLine quotes the beginning of a text answer, which tends to say what is wrong.
func firstLine(body io.Reader) string {
	start, _ := io.ReadAll(io.LimitReader(body, 200))
	line, _, _ := strings.Cut(strings.TrimSpace(string(start)), "\n")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": it begins with %q", line)
}

// SameOriginOnly lets a target redirect within its own origin. Elsewhere, configured headers could tell credentials to
// a stranger, and a target could make the collector ask what only the collector reaches.
func SameOriginOnly(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
		return errors.New("the target redirects to another scheme, host or port")
	case len(via) >= 10:
		return errors.New("the target redirects in a circle")
	}
	// It repeats the query of the scrape, which may hold a secret.
	next.Header.Del("Referer")
	return nil
}

// errEncoding is an answer's Content-Encoding that nobody asked for and that is unknown here.
var errEncoding = errors.New("Content-Encoding is unknown here")

// undoEncoding takes off a gzip that the answer calls its Content-Encoding. What it does not call so
// is left to the decoder, which takes a pprof with its own gzip or without: servers differ in
// whether they call a pprof's own gzip an encoding, and some put another one around it.
func undoEncoding(encodings []string, body io.Reader) (io.Reader, error) {
	switch name := strings.ToLower(strings.Join(encodings, ", ")); name {
	case "", "identity", "zstd": // the decoder knows zstd too
		return body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(body)
	default:
		return nil, fmt.Errorf("%w: %q", errEncoding, name)
	}
}

// encodingFault is the rejection for an answer whose Content-Encoding cannot be undone.
func encodingFault(shown string, err error) error {
	why := transportReason(err)
	switch {
	case errors.Is(err, errEncoding):
		why = ingest.Encoding
	case errors.Is(err, gzip.ErrHeader):
		why = ingest.NotPprof
	}
	return ingest.Reject(why, fmt.Errorf("get %s: %w", shown, err))
}
