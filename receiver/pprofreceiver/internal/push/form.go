// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// maxParts bounds the files and other parts of one request. Each file costs tables of its own, however small it is.
const maxParts = 128

// partsOf yields the parts of a form within limits. An error is a *Rejection and ends the iteration.
func (s *Server) partsOf(body io.Reader, boundary string) iter.Seq2[*multipart.Part, error] {
	return func(yield func(*multipart.Part, error) bool) {
		if boundary == "" {
			yield(nil, ingest.Reject(ingest.BadRequest, errors.New("multipart/form-data without a boundary")))
			return
		}
		reader := multipart.NewReader(body, boundary)
		for parts := 0; ; parts++ {
			part, err := reader.NextPart() // it skips what is left of the last one, and bounds the header
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, s.rejectionOfForm(err))
				return
			case parts == maxParts:
				yield(nil, ingest.Reject(ingest.TooLarge, fmt.Errorf("more than %d files in one request", maxParts)))
				return
			}
			if !yield(part, nil) {
				return
			}
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

func partName(part *multipart.Part) string {
	if name := part.FileName(); name != "" {
		return name
	}
	return part.FormName()
}
