// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// handlePush takes one request. It answers 204 only when the pipeline took everything.
func (s *Server) handlePush(w http.ResponseWriter, r *http.Request) {
	if err := httpserver.CheckOrigin(r, s.allowedOrigins()); err != nil {
		s.refuse(w, r, http.StatusForbidden, fmt.Errorf("%w: list the origin in `cors.allowed_origins` if they should", err))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, r, http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed here: use POST", r.Method))
		return
	}
	payload, err := readQuery(r.URL.RawQuery, s.passedQueryKeys)
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	claim := s.ingest.Begin()
	defer claim.Release()
	body, err := httpserver.OpenBody(w, r, httpserver.BodyOptions{Claim: claim, LimitBytes: s.maxBodyBytes(), Encodings: s.encodings})
	if err != nil {
		s.fail(w, r, s.rejectionOf(err), nil)
		return
	}
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		s.pushFiles(w, r, pushedForm{body: body, claim: claim, payload: payload, boundary: parameters["boundary"]})
		return
	}
	data, err := body.ReadAll()
	if err != nil {
		err = s.rejectionOf(err)
	} else {
		payload.Data, payload.Claim = data, claim
		err = s.ingest.Ingest(r.Context(), payload, 0)
	}
	if err != nil {
		s.fail(w, r, err, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) allowedOrigins() []string {
	if cors := s.cfg.HTTP.CORS.Get(); cors != nil {
		return cors.AllowedOrigins
	}
	return nil
}

// refuse answers a request that is wrong by itself, whatever its body.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.ingest.CountRejected(r.Context(), ingest.Reject(ingest.BadRequest, err))
	writeAnswer(w, status, answer{Error: err.Error()})
}

// maxBodyBytes is the largest body, as sent and decoded: a larger one holds no payload within the limits.
func (s *Server) maxBodyBytes() int64 {
	limit := s.ingest.MaxBytes()
	if s.cfg.HTTP.MaxRequestBodySize > 0 {
		limit = min(limit, s.cfg.HTTP.MaxRequestBodySize)
	}
	return limit
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

// pushedForm is a multipart request.
type pushedForm struct {
	body  *httpserver.Body
	claim *admission.Claim
	// payload is what the query says of each file.
	payload  ingest.Payload
	boundary string
}

// pushedFile is one file of a multipart request.
type pushedFile struct {
	name     string
	profiles pprofile.Profiles
}

// pushFiles takes a form whose parts are files. All are read before the first is delivered, so that
// a form with a bad file leaves nothing behind. They are then delivered one by one: should the
// pipeline refuse one, the answer says which were taken.
func (s *Server) pushFiles(w http.ResponseWriter, r *http.Request, f pushedForm) {
	files, faults, err := s.readFiles(r, f)
	f.body.Complete()
	if err != nil {
		s.fail(w, r, err, faults)
		return
	}
	results := make([]fileAnswer, len(files))
	for i, file := range files {
		results[i] = fileAnswer{File: file.name, Error: "not tried"}
	}
	for i, file := range files {
		if err := s.ingest.Deliver(r.Context(), file.profiles, 0); err != nil {
			results[i].Error = err.Error()
			s.fail(w, r, err, results)
			return
		}
		results[i].Error = ""
	}
	w.WriteHeader(http.StatusNoContent)
}

// readFiles decodes the files of a form. Its error, where there is one, says how to answer, and
// faults holds one entry for each bad file.
func (s *Server) readFiles(r *http.Request, f pushedForm) (files []pushedFile, faults []fileAnswer, err error) {
	ctx := r.Context()
	// All files of a request share the limit: else a small form could unpack to many times of it.
	left := s.ingest.Config.Limits.MaxProfileBytes
	for part, err := range s.partsOf(f.body, f.boundary) {
		if err != nil {
			return nil, nil, err
		}
		name := partName(part)
		if part.FileName() == "" {
			return nil, nil, ingest.Reject(ingest.BadRequest, fmt.Errorf(
				"form field %q is not a file: say who sends in the query, and send profiles as files", part.FormName()))
		}
		data, err := f.claim.ReadAll(ctx, part, -1, s.maxBodyBytes())
		if err != nil {
			return nil, nil, s.rejectionOfForm(err)
		}
		p := f.payload
		p.Data, p.Claim, p.MaxBytes = data, f.claim, max(left, 1)
		profiles, stats, err := s.ingest.Decode(ctx, p)
		if ingest.IsBusy(err) {
			return nil, nil, err
		}
		if err != nil {
			faults = append(faults, fileAnswer{File: name, Error: err.Error(), err: err})
			continue
		}
		left -= stats.UncompressedBytes
		files = append(files, pushedFile{name: name, profiles: profiles})
	}
	switch {
	case len(faults) > 0:
		// The first file's fault decides the status; it wraps the rejection.
		return nil, faults, fmt.Errorf("nothing was taken: %d of %d files are bad, the first: %w",
			len(faults), len(faults)+len(files), faults[0].err)
	case len(files) == 0:
		return nil, nil, ingest.Reject(ingest.Empty, errors.New("the form has no files"))
	}
	return files, nil, nil
}
