// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
)

// FuzzPush sends arbitrary requests through the handlers of real ones. docs/push.md has each answer.
// It is 204 if and only if the pipeline got something or there was nothing to deliver. The pipeline checks that
// profiles are conformant.
func FuzzPush(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "pprof", "*"))
	require.NoError(f, err)
	for _, path := range paths {
		data := profiletest.FileBytes(f, path)
		if len(data) < 20000 {
			f.Add(data, "service.name=shop&attr.region=eu", "", "application/octet-stream")
			f.Add(profiletest.Gzip(data), "", "gzip", "")
			body, contentType := form(f, filepath.Base(path), data, "again", data)
			f.Add(body, "", "", contentType)
		}
	}
	f.Add([]byte("x"), "%zz", "br", "multipart/form-data; boundary=x")
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\n\x1f\x8b\r\n--x--"), "", "",
		"multipart/form-data; boundary=x")

	// Small limits, so that inputs reach them.
	fixture := newFixture(f,
		"server: {endpoint: 'localhost:0', max_request_body_size: 100000}\nlimits: {max_profile_bytes: 400000}").start(nil)
	server := fixture.pushServer()
	f.Fuzz(func(t *testing.T, body []byte, query, encoding, contentType string) {
		fixture.Next.T = t
		before := len(fixture.Next.All())
		request := httptest.NewRequest(http.MethodPost, push.Path, bytes.NewReader(body))
		request.URL.RawQuery = query
		request.Header.Set("Content-Type", contentType)
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		delivered := len(fixture.Next.All()) - before

		switch recorder.Code {
		case http.StatusNoContent:
			if recorder.Body.Len() > 0 {
				t.Errorf("204 with a body: %s", recorder.Body)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			var a answer
			if err := json.Unmarshal(recorder.Body.Bytes(), &a); err != nil || a.Error == "" {
				t.Errorf("an answer without a reason: %q", recorder.Body)
			}
			if delivered > 0 {
				t.Errorf("status %d, but the pipeline got %d payloads", recorder.Code, delivered)
			}
		default:
			t.Errorf("status %d: %s", recorder.Code, recorder.Body)
		}
		fixture.Next.Forget()
	})
}
