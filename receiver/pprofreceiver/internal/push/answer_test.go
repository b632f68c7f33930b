// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestStatusOfForms checks that a form for which there was no memory until its request ended is sent again.
func TestStatusOfForms(t *testing.T) {
	s := &Server{cfg: &Config{}}
	for _, err := range []error{context.DeadlineExceeded, context.Canceled} {
		status, retryAfter := statusOf(s.rejectionOfForm(fmt.Errorf("read: %w", err)))
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.GreaterOrEqual(t, retryAfter, time.Second)
	}
	status, _ := statusOf(s.rejectionOfForm(errors.New("malformed MIME header")))
	assert.Equal(t, http.StatusBadRequest, status)
}

// People read errors at a terminal.
func TestErrorsAreReadable(t *testing.T) {
	w := httptest.NewRecorder()
	writeError(w, nil, http.StatusBadRequest, errors.New("use attr.<key> & others"))
	assert.Equal(t, `{"error":"use attr.<key> & others"}`+"\n", w.Body.String())
}
