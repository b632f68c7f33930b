// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// get fetches from a site with a client that leaves a Content-Encoding to the Fetcher.
func get(t *testing.T, handler http.HandlerFunc, maxBytes, budgetBytes int64) ([]byte, error) {
	t.Helper()
	target, err := url.Parse(sourcetest.NewSite(t, handler).URL)
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	reservation := budget.New(budgetBytes).Begin()
	defer reservation.Release()
	f := Fetcher{Client: &http.Client{Transport: transport}, MaxBytes: maxBytes}
	data, err := f.Get(t.Context(), target, "the target", reservation)
	return append([]byte(nil), data...), err // the reservation owns data
}

// TestBinaryAnswerNamedText has frameworks that call every answer text, or a page.
func TestBinaryAnswerNamedText(t *testing.T) {
	zipped := sourcetest.Captured(t, "go-heap.pb.gz")
	plain := profiletest.Gunzip(t, zipped)
	for _, kind := range []string{"text/plain", "text/html; charset=utf-8", "application/json"} {
		for name, tc := range map[string]struct {
			handler http.HandlerFunc
			want    []byte
		}{
			"gzip":        {sourcetest.Serve(zipped, "Content-Type", kind), zipped},
			"plain":       {sourcetest.Serve(plain, "Content-Type", kind), plain},
			"encoded":     {sourcetest.Serve(zipped, "Content-Type", kind, "Content-Encoding", "gzip"), plain},
			"not encoded": {sourcetest.Serve(zipped, "Content-Type", kind, "Content-Encoding", "identity"), zipped},
			"encoded twice": {sourcetest.Serve(profiletest.Gzip(zipped), "Content-Type", kind, "Content-Encoding", "GZIP"),
				zipped},
		} {
			got, err := get(t, tc.handler, 1<<20, 64<<20)
			require.NoError(t, err, "%s as %s", name, kind)
			assert.Equal(t, tc.want, got, "%s as %s", name, kind)
		}
		text := []byte("<html>goroutine profile: total 7</html>")
		_, err := get(t, sourcetest.Serve(profiletest.Gzip(text), "Content-Type", kind, "Content-Encoding", "gzip"),
			1<<20, 64<<20)
		assert.ErrorContains(t, err, `it begins with "<html>goroutine profile`, kind)
	}
}

// TestEncodedLengthIsNotThatOfTheAnswer has an answer that is as large as allowed, and larger while it is encoded.
func TestEncodedLengthIsNotThatOfTheAnswer(t *testing.T) {
	plain := make([]byte, 100_000)
	_, _ = rand.Read(plain)
	encoded := profiletest.Gzip(plain)
	require.Greater(t, len(encoded), len(plain))
	got, err := get(t, sourcetest.Serve(encoded, "Content-Type", "x/y", "Content-Encoding", "gzip",
		"Content-Length", strconv.Itoa(len(encoded))), int64(len(plain)), 64<<20)
	require.NoError(t, err)
	assert.Equal(t, plain, got)
}

// TestTooLargeNamesTheLimit has answers above the configured limit, and above what the budget has room for.
func TestTooLargeNamesTheLimit(t *testing.T) {
	_, err := get(t, sourcetest.Serve(make([]byte, 1001), "Content-Type", "x/y"), 1000, 64<<20)
	assert.ErrorContains(t, err, "larger than 1000 bytes (`max_profile_bytes`)")
	_, err = get(t, sourcetest.Serve(make([]byte, 1<<20), "Content-Type", "x/y"), 2<<20, 1<<20)
	assert.ErrorContains(t, err, "the memory limit of this process leaves")
	assert.NotContains(t, err.Error(), "max_profile_bytes")
	assert.Equal(t, 1, strings.Count(err.Error(), "the memory limit of this process leaves"), err)
}
