// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

const (
	// maxParts bounds the files and other parts of one request. Each file costs tables of its own, however small it is.
	maxParts = 128
	// maxPartHeaderBytes bounds the boundary and header before the body of each part; multipart's own bound is 10 MiB.
	maxPartHeaderBytes = 64 << 10
)

// readForm reads the parts of a form within limits. place returns where the content of a part goes, or nil to leave it out. The error is a
// *Rejection, or that of place.
func (s *Server) readForm(r *pushRequest, boundary string, place func(*multipart.Part) (*[]byte, error)) error {
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
			*to, err = r.claim.ReadAll(r.Context(), part, -1, s.http.LimitBytes())
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
