// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

const (
	// maxFiles bounds the files of one request. Each costs tables of its own, however small it is.
	maxFiles = 128
	// readAhead bounds what is allocated on the word of a Content-Length header.
	readAhead = 1 << 20
)

// handlePush takes one request. It answers 204 only when the pipeline took everything.
func (s *server) handlePush(w http.ResponseWriter, r *http.Request) {
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
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		s.pushFiles(w, r, id, parameters["boundary"])
		return
	}
	s.pushBody(w, r, id)
}

// refuse answers a request that is wrong by itself, whatever its body.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.ingest.metrics.reject(r.Context(), sourceServer, reasonBadRequest)
	writeAnswer(w, status, answer{Error: err.Error()})
}

func (s *server) pushBody(w http.ResponseWriter, r *http.Request, id identity) {
	data, err := s.readBody(r)
	if err == nil {
		err = s.ingest.ingest(r.Context(), payload{data: data, identity: id}, 0)
	}
	if err != nil {
		writeError(w, err, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) readBody(r *http.Request) ([]byte, error) {
	limit := s.cfg.HTTP.MaxRequestBodySize
	if r.ContentLength > limit {
		return nil, s.readFailed(r, &http.MaxBytesError{Limit: limit})
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, readAhead)))
	}
	if _, err := body.ReadFrom(r.Body); err != nil {
		return nil, s.readFailed(r, err)
	}
	return body.Bytes(), nil
}

// readFailed tells a body above the limit from one that broke off.
func (s *server) readFailed(r *http.Request, err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return s.ingest.rejected(r.Context(), reasonTooLarge,
			fmt.Errorf("the body is larger than %d bytes (`max_request_body_size`)", tooLarge.Limit))
	}
	return s.ingest.rejected(r.Context(), reasonUnreadable, fmt.Errorf("read body: %w", err))
}

// pushedFile is one file of a multipart request.
type pushedFile struct {
	name     string
	profiles pprofile.Profiles
}

// pushFiles takes a form whose parts are files. All are read before the first is delivered, so that
// a form with a bad file leaves nothing behind. They are then delivered one by one: should the
// pipeline refuse one, the answer says which were taken.
func (s *server) pushFiles(w http.ResponseWriter, r *http.Request, id identity, boundary string) {
	files, faults, err := s.readFiles(r, id, boundary)
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
func (s *server) readFiles(r *http.Request, id identity, boundary string) (files []pushedFile, faults []fileAnswer, err error) {
	ctx := r.Context()
	if boundary == "" {
		return nil, nil, s.ingest.rejected(ctx, reasonBadRequest, errors.New("multipart/form-data without a boundary"))
	}
	// All files of a request share the limit: else a small form could unpack to many times of it.
	left := s.ingest.cfg.Limits.MaxProfileBytes
	reader := multipart.NewReader(r.Body, boundary)
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, s.readFailed(r, err)
		}
		name := partName(part)
		if len(files)+len(faults) == maxFiles {
			return nil, nil, s.ingest.rejected(ctx, reasonTooLarge, fmt.Errorf("more than %d files in one request", maxFiles))
		}
		if part.FileName() == "" {
			return nil, nil, s.ingest.rejected(ctx, reasonBadRequest, fmt.Errorf(
				"form field %q is not a file: say who sends in the query, and send profiles as files", part.FormName()))
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, s.readFailed(r, err)
		}
		profiles, stats, err := s.ingest.decode(ctx, payload{data: data, identity: id, maxBytes: max(left, 1)})
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

func partName(part *multipart.Part) string {
	if name := part.FileName(); name != "" {
		return name
	}
	return part.FormName()
}
