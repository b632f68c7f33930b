// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// handlePush answers a push, with 204 only when the pipeline has accepted everything, and 200 if samples are missing.
func (s *Server) handlePush(w http.ResponseWriter, r *pushRequest) error {
	payload, err := readQuery(r.URL.RawQuery, s.passedQueryKeys)
	if err != nil {
		return ingest.Reject(ingest.BadRequest, err)
	}
	payload.Reservation, payload.Shared = r.reservation, &ingest.Shared{}
	if r.isForm() {
		var files []namedPayload
		if files, err = s.readFiles(r, payload); err == nil {
			err = s.ingestAll(r.Context(), files, payload.Shared)
		}
	} else if payload.Data, err = s.readBody(r); err == nil {
		err = s.ingest.Ingest(r.Context(), payload, 0)
	}
	if err != nil {
		return err
	}
	if reasons := httpserver.Reasons[scan.DropReason](payload.Shared.Dropped[:]); reasons != "" {
		writeAnswer(w, http.StatusOK, answer{Warning: "samples were dropped, since they cannot be read: " + reasons})
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readBody reads the body of a request. Its error is a *Rejection.
func (s *Server) readBody(r *pushRequest) ([]byte, error) {
	data, err := r.body.ReadAll()
	if err != nil {
		return nil, s.rejectionOf(err)
	}
	return data, nil
}

// rejectionOf returns the rejection for a body that could not be read.
func (s *Server) rejectionOf(err error) error {
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		if tooLarge.Need > 0 {
			return ingest.Reject(ingest.TooLarge, fmt.Errorf("the body needs %w", tooLarge))
		}
		key := "max_profile_bytes"
		if tooLarge.Limit == s.cfg.HTTP.MaxRequestBodySize {
			key = "max_request_body_size"
		}
		return ingest.Reject(ingest.TooLarge, fmt.Errorf("the body is %w (`%s`)", tooLarge, key))
	case endedWaiting(err):
		return ingest.Reject(ingest.Busy, err)
	case errors.Is(err, httpserver.ErrStopping):
		return ingest.Reject(ingest.Stopping, err)
	case errors.Is(err, httpserver.ErrEncoding):
		return ingest.Reject(ingest.Encoding, err)
	case errors.Is(err, httpserver.ErrLate):
		return ingest.Reject(ingest.Timeout, err)
	}
	return ingest.Reject(ingest.Unreadable, fmt.Errorf("read body: %w", err))
}

// endedWaiting reports that there was no memory for a body, at once or until the request's time was up.
func endedWaiting(err error) bool {
	return errors.Is(err, budget.ErrBusy) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// readFiles reads the files of a form. payload has the query's statements about each file.
func (s *Server) readFiles(r *pushRequest, payload ingest.Payload) (files []namedPayload, err error) {
	err = s.readForm(r, func(part *multipart.Part) (*[]byte, error) {
		if part.FileName() == "" {
			return nil, ingest.Reject(ingest.BadRequest, fmt.Errorf(
				"form field %q is not a file: name the sender in the query, and send profiles as files", part.FormName()))
		}
		files = append(files, namedPayload{partName(part), payload})
		return &files[len(files)-1].Data, nil
	})
	if err == nil && len(files) == 0 {
		err = ingest.Reject(ingest.Empty, errors.New("the form has no files"))
	}
	return files, err
}

const (
	// maxParts bounds the files and other parts of one request. Each file costs tables of its own, however small it is.
	maxParts = 128
	// maxPartHeaderBytes bounds the boundary and header before the body of each part; multipart's own bound is 10 MiB.
	maxPartHeaderBytes = 64 << 10
)

func (r *pushRequest) isForm() bool {
	return httpserver.ContentType(r.Request) == "multipart/form-data"
}

// readForm reads the parts of a form within limits. place returns where the content of a part goes, or nil to leave it
// out. The error is a *Rejection, or that of place.
func (s *Server) readForm(r *pushRequest, place func(*multipart.Part) (*[]byte, error)) error {
	_, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	boundary := parameters["boundary"]
	if boundary == "" {
		return ingest.Reject(ingest.BadRequest, errors.New("multipart/form-data without a boundary"))
	}
	limited := &headerLimiter{body: r.body}
	reader := multipart.NewReader(limited, boundary)
	for parts := 0; ; parts++ {
		limited.left = maxPartHeaderBytes
		part, err := reader.NextPart()
		limited.left = math.MaxInt
		switch {
		case errors.Is(err, io.EOF):
			r.body.Complete()
			return nil
		case err != nil:
			return s.rejectionOfForm(err)
		case parts == maxParts:
			return ingest.Reject(ingest.TooLarge, fmt.Errorf("more than %d files in one request", maxParts))
		}
		to, err := place(part)
		if err != nil {
			return err
		}
		if to == nil {
			// Otherwise NextPart would read the part as if it were a header.
			_, err = io.Copy(io.Discard, part)
		} else {
			*to, err = r.reservation.ReadAll(r.Context(), part, -1, s.http.LimitBytes())
		}
		if err != nil {
			return s.rejectionOfForm(err)
		}
	}
}

// rejectionOfForm is rejectionOf for a body that may also be a malformed form.
func (s *Server) rejectionOfForm(err error) error {
	var fault *httpserver.BodyError
	if errors.As(err, &fault) || endedWaiting(err) {
		return s.rejectionOf(err)
	}
	return ingest.Reject(ingest.Unreadable, fmt.Errorf("read form: %w", err))
}

// headerLimiter bounds the headers before the body of each part.
type headerLimiter struct {
	body io.Reader
	left int
}

func (h *headerLimiter) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, fmt.Errorf("more than %d bytes before a file", maxPartHeaderBytes)
	}
	n, err := h.body.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

func partName(part *multipart.Part) string {
	if name := part.FileName(); name != "" {
		return name
	}
	return part.FormName()
}
