// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// form returns a multipart body of (file name, content) pairs; a name that begins with "=" is a plain field.
func form(t testing.TB, parts ...any) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		var part io.Writer
		var err error
		if name, isField := strings.CutPrefix(parts[i].(string), "="); isField {
			part, err = w.CreateFormField(name)
		} else {
			part, err = w.CreateFormFile("profile", name)
		}
		require.NoError(t, err)
		_, err = part.Write(parts[i+1].([]byte))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// manyFiles returns parts for form, all with the same data.
func manyFiles(n int, data []byte) []any {
	var parts []any
	for i := range n {
		parts = append(parts, fmt.Sprint(i), data)
	}
	return parts
}

func TestPushFiles(t *testing.T) {
	heap, mutex := sourcetest.Captured(t, "go-heap.pb.gz"), sourcetest.Captured(t, "go-mutex.pb.gz")
	text := sourcetest.Captured(t, "go-goroutine-debug1.txt")

	t.Run("all are taken", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		body, contentType := form(t, "heap.pb.gz", heap, "mutex.pb", profiletest.Gunzip(t, mutex))
		accepted(t, f.pushURL()+"?service.name=shop", body, "Content-Type", contentType)
		require.Len(t, f.Next.All(), 2)
		for _, pd := range f.Next.All() {
			assert.Equal(t, "shop", sourcetest.ResourceOf(t, pd)["service.name"])
		}
	})
	t.Run("one is bad: none is taken", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		body, contentType := form(t, "heap.pb.gz", heap, "g.txt", text, "empty", []byte{})
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusUnsupportedMediaType, code)
		assert.Contains(t, a.Error, "2 of 3 files are bad")
		require.Len(t, a.Files, 2)
		assert.Equal(t, "g.txt", a.Files[0].File)
		assert.Contains(t, a.Files[0].Error, "seems to be")
		assert.Equal(t, fileAnswer{File: "empty", Error: "the payload is empty"}, a.Files[1])
		assert.Zero(t, f.Next.Attempts())
	})
	t.Run("the pipeline refuses the second", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		f.Next.Err = func(n int) error {
			if n == 1 {
				return errors.New("busy")
			}
			return nil
		}
		body, contentType := form(t, "a", heap, "b", mutex, "c", heap)
		code, header, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "5", header.Get("Retry-After"))
		assert.Equal(t, []fileAnswer{{File: "a"}, {File: "b", Error: "busy"}, {File: "c", Error: "not tried"}}, a.Files)
		assert.Len(t, f.Next.All(), 1)
	})
	t.Run("the pipeline refuses the second permanently", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		f.Next.Err = func(n int) error {
			if n == 1 {
				return consumererror.NewPermanent(errors.New("no"))
			}
			return nil
		}
		body, contentType := form(t, "a", heap, "b", mutex, "c", heap)
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusUnprocessableEntity, code)
		assert.Equal(t, []fileAnswer{{File: "a"}, {File: "b", Error: "no"}, {File: "c"}}, a.Files)
		assert.Len(t, f.Next.All(), 2)
	})
	t.Run("what is no file is refused", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		body, contentType := form(t, "heap.pb.gz", heap, "=service.name", []byte("shop"))
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusBadRequest, code)
		assert.Contains(t, a.Error, `form field "service.name" is not a file`)
		assert.Zero(t, f.Next.Attempts())
	})
	t.Run("no files", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		body, contentType := form(t)
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusBadRequest, code)
		assert.Contains(t, a.Error, "no files")
	})
	t.Run("too many files", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		var parts []any
		for range 128 + 1 {
			parts = append(parts, "x", []byte("x"))
		}
		body, contentType := form(t, parts...)
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusRequestEntityTooLarge, code)
		assert.Contains(t, a.Error, "more than 128 files")
	})
	t.Run("bad files count towards the limit", func(t *testing.T) {
		f := startFixture(t, serverOnly+"limits: {max_profile_bytes: 4194304}\n")
		// It seems to be a CPU profile of V8, but ends too early; its sum is wrong, too.
		truncated := profiletest.Gzip([]byte(`{"nodes":[{"id":1,"callFrame":{}}` + strings.Repeat(" ", 3<<20)))
		wrongSum := slices.Clone(truncated)
		wrongSum[len(wrongSum)-8] ^= 1
		for name, data := range map[string][]byte{"truncated": truncated, "wrong sum": wrongSum} {
			body, contentType := form(t, manyFiles(128, data)...)
			code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
			assert.Equal(t, http.StatusBadRequest, code, name)
			require.Len(t, a.Files, 2, name)
			assert.Contains(t, a.Error, "2 of 128 files are bad", name)
			assert.Contains(t, a.Files[1].Error, "exceeds a limit", name)
		}
	})
	t.Run("a bad file gives its memory back", func(t *testing.T) {
		f := startFixture(t, serverOnly)
		in := f.Ingester("server", "http", 64<<20)
		reservation := in.Begin()
		defer reservation.Release()
		_, _, err := in.Decode(t.Context(),
			ingest.Payload{Reservation: reservation,
				Data: profiletest.Gzip([]byte(`{"nodes":[` + strings.Repeat(" ", 3<<20)))})
		require.Equal(t, ingest.NotPprof, ingest.ReasonOf(err), "%v", err)
		assert.Zero(t, reservation.HeldBytes())
	})
	t.Run("the files share the limit", func(t *testing.T) {
		size := len(profiletest.Gunzip(t, heap))
		f := startFixture(t, serverOnly+fmt.Sprintf("limits: {max_profile_bytes: %d}\n", 2*size-1))
		body, contentType := form(t, "a", heap, "b", heap)
		code, _, a := send(t, f.pushURL(), body, "Content-Type", contentType)
		assert.Equal(t, http.StatusRequestEntityTooLarge, code)
		require.Len(t, a.Files, 1)
		assert.Equal(t, "b", a.Files[0].File)
	})
}
