// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// handlePush answers a push, with 204 only when the pipeline has accepted everything.
func (s *Server) handlePush(w http.ResponseWriter, r *pushRequest) error {
	payload, err := readQuery(r.URL.RawQuery, s.passedQueryKeys)
	if err != nil {
		return ingest.Reject(ingest.BadRequest, err)
	}
	payload.Claim = r.claim
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		var files []namedPayload
		if files, err = s.readFiles(r, payload, parameters["boundary"]); err == nil {
			err = s.ingestAll(r.Context(), files, 0)
		}
	} else if payload.Data, err = s.readBody(r); err == nil {
		err = s.ingest.Ingest(r.Context(), payload, 0)
	}
	if err != nil {
		return err
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
	var fault *httpserver.BodyError
	switch {
	case errors.As(err, &tooLarge):
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
	case errors.As(err, &fault) && fault.Status == http.StatusRequestTimeout:
		return ingest.Reject(ingest.Timeout, err)
	}
	return ingest.Reject(ingest.Unreadable, fmt.Errorf("read body: %w", err))
}

// endedWaiting reports that there was no memory for a body, at once or until the request's time was up.
func endedWaiting(err error) bool {
	return errors.Is(err, budget.ErrBusy) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// readFiles reads the files of a form. payload is what the query states of each file.
func (s *Server) readFiles(r *pushRequest, payload ingest.Payload, boundary string) ([]namedPayload, error) {
	var files []namedPayload
	err := s.readForm(r, boundary, func(part *multipart.Part) (*[]byte, error) {
		if part.FileName() == "" {
			return nil, ingest.Reject(ingest.BadRequest, fmt.Errorf(
				"form field %q is not a file: name the sender in the query, and send profiles as files", part.FormName()))
		}
		files = append(files, namedPayload{partName(part), payload})
		return &files[len(files)-1].Data, nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, ingest.Reject(ingest.Empty, errors.New("the form has no files"))
	}
	return files, nil
}
