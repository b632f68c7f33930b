// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

const (
	// maxFiles bounds the files of one request. Each costs tables of its own, however small it is.
	maxFiles = 128
	// maxPartHeaderBytes bounds the boundary and header before each file of a form.
	maxPartHeaderBytes = 64 << 10
)

// handlePush takes one request. It answers 204 only when the pipeline took everything.
func (s *server) handlePush(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	if cors := s.cfg.HTTP.CORS.Get(); cors != nil {
		allowed = cors.AllowedOrigins
	}
	if err := httpserver.CheckOrigin(r, allowed); err != nil {
		s.refuse(w, r, http.StatusForbidden, fmt.Errorf("%w: list the origin in `cors.allowed_origins` if they should", err))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, r, http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed here: use POST", r.Method))
		return
	}
	id, err := queryIdentity(r.URL.RawQuery, s.passedQueryKeys)
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	claim := s.ingest.budget.Begin()
	defer claim.Release()
	body, err := httpserver.OpenBody(w, r, httpserver.BodyOptions{Claim: claim, LimitBytes: s.maxBodyBytes(), Encodings: s.encodings})
	if err != nil {
		writeError(w, s.bodyFailed(r, err), nil)
		return
	}
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		s.pushFiles(w, r, pushedForm{body: body, claim: claim, identity: id, boundary: parameters["boundary"]})
		return
	}
	data, err := body.ReadAll()
	if err != nil {
		err = s.bodyFailed(r, err)
	} else {
		err = s.ingest.ingest(r.Context(), payload{data: data, identity: id, claim: claim}, 0)
	}
	if err != nil {
		writeError(w, err, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers a request that is wrong by itself, whatever its body.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.ingest.metrics.reject(r.Context(), sourceServer, reasonBadRequest)
	writeAnswer(w, status, answer{Error: err.Error()})
}

// maxBodyBytes is the largest body, as sent and decoded: a larger one holds no payload within the limits.
func (s *server) maxBodyBytes() int64 {
	limit := int64(s.ingest.cfg.Limits.MaxProfileBytes)
	if s.cfg.HTTP.MaxRequestBodySize > 0 {
		limit = min(limit, s.cfg.HTTP.MaxRequestBodySize)
	}
	return limit
}

// bodyFailed counts a body that could not be read and returns the rejection that answers it.
func (s *server) bodyFailed(r *http.Request, err error) error {
	var tooLarge *admission.TooLargeError
	var fault *httpserver.BodyError
	switch {
	case errors.As(err, &tooLarge):
		key := "max_profile_bytes"
		if tooLarge.Limit == s.cfg.HTTP.MaxRequestBodySize {
			key = "max_request_body_size"
		}
		return s.ingest.rejected(r.Context(), reasonTooLarge, fmt.Errorf("the body is %w (`%s`)", tooLarge, key))
	case errors.Is(err, admission.ErrBusy):
		return s.ingest.rejected(r.Context(), reasonBusy, err)
	case errors.Is(err, httpserver.ErrStopping):
		return s.ingest.rejected(r.Context(), reasonStopping, err)
	case errors.Is(err, httpserver.ErrEncoding):
		return s.ingest.rejected(r.Context(), reasonEncoding, err)
	case errors.As(err, &fault) && fault.Status == http.StatusRequestTimeout:
		return s.ingest.rejected(r.Context(), reasonTimeout, err)
	}
	return s.ingest.rejected(r.Context(), reasonUnreadable, fmt.Errorf("read body: %w", err))
}

// pushedForm is a multipart request.
type pushedForm struct {
	body     *httpserver.Body
	claim    *admission.Claim
	identity identity
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
func (s *server) pushFiles(w http.ResponseWriter, r *http.Request, f pushedForm) {
	files, faults, err := s.readFiles(r, f)
	f.body.Complete()
	if err != nil {
		writeError(w, err, faults)
		return
	}
	results := make([]fileAnswer, len(files))
	for i, file := range files {
		results[i] = fileAnswer{File: file.name, Error: "not tried"}
	}
	for i, file := range files {
		if err := s.ingest.deliver(r.Context(), file.profiles, 0); err != nil {
			results[i].Error = err.Error()
			writeError(w, err, results)
			return
		}
		results[i].Error = ""
	}
	w.WriteHeader(http.StatusNoContent)
}

// readFiles decodes the files of a form. Its error, where there is one, says how to answer, and
// faults holds one entry for each bad file.
func (s *server) readFiles(r *http.Request, f pushedForm) (files []pushedFile, faults []fileAnswer, err error) {
	ctx := r.Context()
	if f.boundary == "" {
		return nil, nil, s.ingest.rejected(ctx, reasonBadRequest, errors.New("multipart/form-data without a boundary"))
	}
	// All files of a request share the limit: else a small form could unpack to many times of it.
	left := s.ingest.cfg.Limits.MaxProfileBytes
	body := &headerLimiter{body: f.body}
	reader := multipart.NewReader(body, f.boundary)
	for {
		body.left = maxPartHeaderBytes
		part, err := reader.NextPart()
		body.left = math.MaxInt
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, s.formFailed(r, err)
		}
		name := partName(part)
		if len(files)+len(faults) == maxFiles {
			return nil, nil, s.ingest.rejected(ctx, reasonTooLarge, fmt.Errorf("more than %d files in one request", maxFiles))
		}
		if part.FileName() == "" {
			return nil, nil, s.ingest.rejected(ctx, reasonBadRequest, fmt.Errorf(
				"form field %q is not a file: say who sends in the query, and send profiles as files", part.FormName()))
		}
		data, err := f.claim.ReadAll(ctx, part, -1, s.maxBodyBytes())
		if err != nil {
			return nil, nil, s.formFailed(r, err)
		}
		profiles, stats, err := s.ingest.decode(ctx, payload{data: data, identity: f.identity, claim: f.claim, maxBytes: max(left, 1)})
		if isBusy(err) {
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
		return nil, nil, s.ingest.rejected(ctx, reasonEmpty, errors.New("the form has no files"))
	}
	return files, nil, nil
}

// formFailed is bodyFailed for a form, whose body is also one that is no form.
func (s *server) formFailed(r *http.Request, err error) error {
	var fault *httpserver.BodyError
	if errors.As(err, &fault) || errors.Is(err, admission.ErrBusy) {
		return s.bodyFailed(r, err)
	}
	return s.ingest.rejected(r.Context(), reasonUnreadable, fmt.Errorf("read form: %w", err))
}

// headerLimiter bounds what is read before the body of each part.
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
