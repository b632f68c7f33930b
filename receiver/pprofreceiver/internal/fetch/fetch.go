// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch gets payloads over HTTP.
package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// TransferTime is the least time that a timeout leaves for the answer after the target has recorded.
const TransferTime = 5 * time.Second

// HasRecorded reports whether a target that was asked by `seconds` to record for a time, and took some until it answered,
// has recorded: net/http/pprof then subtracts what there was before, states included. One that answers sooner ignores
// `seconds`, and has served totals.
func HasRecorded(asked, took time.Duration) bool { return asked > 0 && took >= asked-asked/10 }

// Port returns the port of a URL, or the default of its scheme.
func Port(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// Fetcher gets payloads over HTTP. It neither counts nor logs: its errors wrap an *ingest.Rejection.
type Fetcher struct {
	Client *http.Client
	// Header is sent with every request; it is read only. It has an Accept-Encoding, so that the client leaves the
	// Content-Encoding of answers to the Fetcher.
	Header http.Header
	// MaxBytes is the largest answer.
	MaxBytes int64
}

// Get fetches one payload into memory that reservation holds. Errors name the URL as shown.
func (f *Fetcher) Get(ctx context.Context, target *url.URL, shown string, reservation *budget.Reservation) ([]byte,
	error) {
	data, err := f.get(ctx, target, reservation)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", shown, err)
	}
	return data, nil
}

func (f *Fetcher) get(ctx context.Context, target *url.URL, reservation *budget.Reservation) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, ingest.Reject(ingest.Unreachable, errors.New("the URL is invalid")) // err repeats the URL
	}
	maps.Copy(request.Header, f.Header)
	response, err := f.Client.Do(request)
	if err != nil {
		// The client's error repeats the URL; only the cause is of interest.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, ingest.Reject(transportReason(err), err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, ingest.Reject(ingest.HTTPStatus,
			fmt.Errorf("%w%s", ingest.StatusError(response.StatusCode), firstLine(response.Body)))
	}
	body, err := undoEncoding(response.Header.Values("Content-Encoding"), response.Body)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); isTextType(kind) {
		start := bufio.NewReaderSize(body, formats.SniffBytes)
		if isOtherText(start) {
			return nil, ingest.Reject(ingest.ContentType, fmt.Errorf(
				"the answer is %s, not a profile (does the query have debug=?)%s", kind, firstLine(start)))
		}
		body = start
	}
	stated := response.ContentLength
	if response.Header.Get("Content-Encoding") != "" {
		stated = -1 // it is the encoded length
	}
	data, err := reservation.ReadAll(ctx, body, stated, f.MaxBytes)
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &tooLarge) && tooLarge.Limit == f.MaxBytes:
		return nil, ingest.Reject(ingest.TooLarge, fmt.Errorf("the answer is %w (`max_profile_bytes`)", tooLarge))
	case tooLarge != nil:
		return nil, ingest.Reject(ingest.TooLarge, fmt.Errorf("the answer is %w", tooLarge))
	case errors.Is(err, budget.ErrBusy):
		return nil, ingest.Reject(ingest.Busy, fmt.Errorf("after %d bytes: %w", len(data), err))
	case err != nil:
		return nil, ingest.Reject(transportReason(err), fmt.Errorf("after %d bytes: %w", len(data), err))
	}
	return data, nil
}

// transportReason distinguishes a target that is too slow from one that is unreachable.
func transportReason(err error) ingest.Reason {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout()) {
		return ingest.Timeout
	}
	return ingest.Unreachable
}

// isTextType reports whether a content type is one of text. pprof has no content type of its own, and servers use many.
func isTextType(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "xml"))
}

// isOtherText reports whether a body is text, as its content type states, and no text that can be read, such as folded
// stacks. Several web frameworks call everything text: the decoder judges binary data.
func isOtherText(body *bufio.Reader) bool {
	start, _ := body.Peek(formats.SniffBytes) // reading on returns the error
	return strings.HasPrefix(http.DetectContentType(start), "text/") && !formats.IsDecodable(formats.Sniff(start))
}

// firstLine quotes the beginning of a text answer, which often states the fault.
func firstLine(body io.Reader) string {
	start, _ := io.ReadAll(io.LimitReader(body, 200))
	line, _, _ := strings.Cut(strings.TrimSpace(string(start)), "\n")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": it begins with %q", line)
}

// undoEncoding decompresses a body whose Content-Encoding is gzip. It leaves other compression to the decoder, which
// reads a pprof with its own gzip or without: servers differ in whether they call a pprof's own gzip an encoding, and
// some compress it again. The error is a *ingest.Rejection.
func undoEncoding(encodings []string, body io.Reader) (io.Reader, error) {
	switch name := strings.ToLower(strings.Join(encodings, ", ")); name {
	case "", "identity", "zstd": // the decoder reads zstd too
		return body, nil
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(body)
		switch {
		case errors.Is(err, gzip.ErrHeader):
			return nil, ingest.Reject(ingest.NotPprof, err)
		case err != nil:
			return nil, ingest.Reject(transportReason(err), err)
		}
		return unzipped, nil
	default:
		return nil, ingest.Reject(ingest.Encoding, fmt.Errorf("Content-Encoding %q is not supported", name))
	}
}
