// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
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
		err = s.pushFiles(r, payload, parameters["boundary"])
	} else if payload.Data, err = s.readBody(r); err == nil {
		err = s.ingest.Ingest(r.Context(), payload, 0)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) allowedOrigins() []string {
	if cors := s.cfg.HTTP.CORS.Get(); cors != nil {
		return cors.AllowedOrigins
	}
	return nil
}

// maxBodyBytes returns the size of the largest body, as sent and decoded: a larger one holds no payload within the limits.
func (s *Server) maxBodyBytes() int64 {
	limit := s.ingest.MaxBytes()
	if s.cfg.HTTP.MaxRequestBodySize > 0 {
		limit = min(limit, s.cfg.HTTP.MaxRequestBodySize)
	}
	return limit
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
	var tooLarge *admission.TooLargeError
	var fault *httpserver.BodyError
	switch {
	case errors.As(err, &tooLarge):
		key := "max_profile_bytes"
		if tooLarge.Limit == s.cfg.HTTP.MaxRequestBodySize {
			key = "max_request_body_size"
		}
		return ingest.Reject(ingest.TooLarge, fmt.Errorf("the body is %w (`%s`)", tooLarge, key))
	case errors.Is(err, admission.ErrBusy):
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

// pushFiles delivers the files of a form. It reads all before it delivers the first, so that nothing of a form with a bad file is
// accepted. It then delivers them one by one: if the pipeline refuses one, the error lists those that it accepted before. payload is
// what the query states of each file.
func (s *Server) pushFiles(r *pushRequest, payload ingest.Payload, boundary string) error {
	files, err := s.readFiles(r, payload, boundary)
	r.body.Complete()
	if err != nil {
		return err
	}
	for i := range files {
		file := &files[i]
		if err := s.ingest.Deliver(r.Context(), file.profiles, 0); err != nil {
			file.Error = err.Error()
			return &formError{err, files}
		}
		file.Error = ""
	}
	return nil
}

// readFiles decodes the files of a form, none of which has been delivered. If files are bad, its error lists them.
func (s *Server) readFiles(r *pushRequest, payload ingest.Payload, boundary string) ([]pushedFile, error) {
	var files, bad []pushedFile
	// All files of a request share the limit: otherwise a small form could unpack to many times of it.
	left := s.ingest.Config.Limits.MaxProfileBytes
	for part, err := range s.partsOf(r.body, boundary) {
		if err != nil {
			return nil, err
		}
		file := pushedFile{Name: partName(part), Error: "not tried"}
		if part.FileName() == "" {
			return nil, ingest.Reject(ingest.BadRequest, fmt.Errorf(
				"form field %q is not a file: name the sender in the query, and send profiles as files", part.FormName()))
		}
		if payload.Data, err = r.claim.ReadAll(r.Context(), part, -1, s.maxBodyBytes()); err != nil {
			return nil, s.rejectionOfForm(err)
		}
		payload.MaxBytes = max(left, 1)
		var stats pprofconv.DecodeStats
		file.profiles, stats, err = s.ingest.Decode(r.Context(), payload)
		if ingest.IsBusy(err) {
			return nil, err
		}
		if err != nil {
			file.Error, file.err = err.Error(), err
			bad = append(bad, file)
			continue
		}
		left -= stats.UncompressedBytes
		files = append(files, file)
	}
	switch {
	case len(bad) > 0:
		// The first file's fault decides the status.
		return nil, &formError{files: bad, error: fmt.Errorf("nothing was accepted: %d of %d files are bad, the first: %w",
			len(bad), len(bad)+len(files), bad[0].err)}
	case len(files) == 0:
		return nil, ingest.Reject(ingest.Empty, errors.New("the form has no files"))
	}
	return files, nil
}
