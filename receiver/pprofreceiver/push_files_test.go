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
	three := []any{"a", heap, "b", mutex, "c", heap}
	// It seems to be a CPU profile of V8, but ends too early; its sum is wrong, too.
	truncated := profiletest.Gzip([]byte(`{"nodes":[{"id":1,"callFrame":{}}` + strings.Repeat(" ", 3<<20)))
	wrongSum := slices.Clone(truncated)
	wrongSum[len(wrongSum)-8] ^= 1
	for name, tt := range map[string]struct {
		limit  int   // max_profile_bytes, 0 is the default
		second error // of the second delivery
		parts  []any
		code   int
		says   string
		files  []fileAnswer // with a part of the error
		taken  int
	}{
		"one is bad: none is taken": {parts: []any{"heap.pb.gz", heap, "g.txt", text, "empty", []byte{}}, code: 415,
			says: "2 of 3 files are bad", files: []fileAnswer{{"g.txt", "seems to be"}, {"empty", "the payload is empty"}}},
		"the pipeline refuses the second": {second: errors.New("busy"), parts: three, code: 503,
			files: []fileAnswer{{"a", ""}, {"b", "busy"}, {"c", "not tried"}}, taken: 1},
		"the pipeline refuses the second permanently": {second: consumererror.NewPermanent(errors.New("no")), parts: three,
			code: 422, files: []fileAnswer{{"a", ""}, {"b", "no"}, {"c", ""}}, taken: 2},
		"what is no file is refused": {parts: []any{"heap.pb.gz", heap, "=service.name", []byte("shop")}, code: 400,
			says: `form field "service.name" is not a file`},
		"no files":       {code: 400, says: "no files"},
		"too many files": {parts: manyFiles(128+1, []byte("x")), code: 413, says: "more than 128 files"},
		"bad files count towards the limit": {limit: 4 << 20, parts: manyFiles(128, truncated), code: 400,
			says: "2 of 128 files are bad", files: []fileAnswer{{"0", "cpuprofile"}, {"1", "exceeds a limit"}}},
		"so do those with a wrong sum": {limit: 4 << 20, parts: manyFiles(128, wrongSum), code: 400,
			says: "2 of 128 files are bad", files: []fileAnswer{{"0", "invalid checksum"}, {"1", "exceeds a limit"}}},
		"the files share the limit": {limit: 2*len(profiletest.Gunzip(t, heap)) - 1, parts: []any{"a", heap, "b", heap},
			code: 413, files: []fileAnswer{{"b", "exceeds a limit"}}},
	} {
		t.Run(name, func(t *testing.T) {
			config := serverOnly
			if tt.limit > 0 {
				config += fmt.Sprintf("limits: {max_profile_bytes: %d}\n", tt.limit)
			}
			f := startFixture(t, config)
			f.Next.Err = func(n int) error {
				if n == 1 {
					return tt.second
				}
				return nil
			}
			body, contentType := form(t, tt.parts...)
			code, header, a := send(t, f.pushURL(), body, "Content-Type", contentType)
			assert.Equal(t, tt.code, code)
			assert.Equal(t, code == http.StatusServiceUnavailable, header.Get("Retry-After") == "5")
			assert.Contains(t, a.Error, tt.says)
			require.Len(t, a.Files, len(tt.files))
			for i, want := range tt.files {
				assert.Equal(t, want.File, a.Files[i].File)
				assert.Equal(t, want.Error == "", a.Files[i].Error == "", a.Files[i].Error)
				assert.Contains(t, a.Files[i].Error, want.Error)
			}
			assert.Len(t, f.Next.All(), tt.taken)
		})
	}

	f := startFixture(t, serverOnly)
	body, contentType := form(t, "heap.pb.gz", heap, "mutex.pb", profiletest.Gunzip(t, mutex))
	accepted(t, f.pushURL()+"?service.name=shop", body, "Content-Type", contentType)
	require.Len(t, f.Next.All(), 2)
	for _, pd := range f.Next.All() {
		assert.Equal(t, "shop", sourcetest.ResourceOf(t, pd)["service.name"])
	}
}

func TestABadFileGivesItsMemoryBack(t *testing.T) {
	in := startFixture(t, serverOnly).Ingester("server", "http", 64<<20)
	reservation := in.Begin()
	defer reservation.Release()
	_, _, err := in.Decode(t.Context(), ingest.Payload{Reservation: reservation,
		Data: profiletest.Gzip([]byte(`{"nodes":[` + strings.Repeat(" ", 3<<20)))})
	require.Equal(t, ingest.NotPprof, ingest.ReasonOf(err), "%v", err)
	assert.Zero(t, reservation.HeldBytes())
}
