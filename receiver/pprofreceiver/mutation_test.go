// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
)

// capturedRequest is what a client sent, in a folder of testdata.
type capturedRequest struct {
	Path, Query string
	Headers     http.Header
	body        []byte
}

func readRequest(t *testing.T, path string) (r capturedRequest) {
	t.Helper()
	text := profiletest.FileBytes(t, path)
	require.NoError(t, json.Unmarshal(text, &r))
	r.body = profiletest.FileBytes(t, strings.TrimSuffix(path, "json")+"body")
	return r
}

// capturedRequests returns those of Pyroscope's clients and of a library of Datadog, by name.
func capturedRequests(t *testing.T) map[string]capturedRequest {
	t.Helper()
	upload := profiletest.FileBytes(t, "../../internal/pprof/decode/testdata/dd-trace/input.body")
	requests := map[string]capturedRequest{"datadog": {
		Path: push.DatadogPath, body: upload,
		Headers: http.Header{"Content-Type": {"multipart/form-data; boundary=151e358505afa95f"}},
	}}
	paths := profiletest.Glob(t, "../../testdata/pyroscope/*/request-1.json")
	for _, path := range paths {
		r := readRequest(t, path)
		if r.Headers.Get("Content-Encoding") == "gzip" {
			r.Headers.Del("Content-Encoding")
			r.body = plain(t, r.body)
		}
		requests[filepath.Base(filepath.Dir(path))] = r
	}
	return requests
}

func plain(t *testing.T, data []byte) []byte {
	t.Helper()
	unpacked, err := decode.Uncompress(data, 64<<20, nil)
	require.NoError(t, err)
	return unpacked
}

// send passes the request with another body to the server.
func (r *capturedRequest) send(ctx context.Context, server http.Handler, body []byte) error {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+strings.TrimPrefix(r.Path, "/")+"?"+r.Query,
		bytes.NewReader(body))
	request.Header = r.Headers.Clone()
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	if answer.Code >= http.StatusBadRequest {
		return fmt.Errorf("status %d: %s", answer.Code, answer.Body)
	}
	return nil
}

// part is what is damaged of a request, without compression. with returns the body with a damaged one in its place.
type part struct {
	name    string
	content []byte
	with    func(content []byte) []byte
}

// parts returns the files of a form, or else the body.
func (r *capturedRequest) parts(t *testing.T) (all []part) {
	t.Helper()
	asBody := func(content []byte) []byte { return content }
	contentType, parameters, err := mime.ParseMediaType(r.Headers.Get("Content-Type"))
	require.NoError(t, err)
	switch contentType {
	case "application/proto":
		return []part{{"body", unpackedPush(t, r.body), asBody}}
	case "multipart/form-data":
	default:
		return []part{{"body", plain(t, r.body), asBody}}
	}
	form := multipart.NewReader(bytes.NewReader(r.body), parameters["boundary"])
	for next, err := form.NextRawPart(); !errors.Is(err, io.EOF); next, err = form.NextRawPart() {
		require.NoError(t, err)
		sent, err := io.ReadAll(next)
		require.NoError(t, err)
		all = append(all, part{fmt.Sprintf("part %d", len(all)+1), plain(t, sent), func(content []byte) []byte {
			return bytes.Replace(r.body, sent, content, 1)
		}})
	}
	return append(all, part{"body", r.body, asBody})
}

// unpackedPush returns a push.v1 whose profiles are not compressed.
func unpackedPush(t *testing.T, body []byte) []byte {
	t.Helper()
	var request pushv1.PushRequest
	require.NoError(t, proto.Unmarshal(body, &request))
	for _, series := range request.Series {
		for _, sample := range series.Samples {
			sample.RawProfile = plain(t, sample.RawProfile)
		}
	}
	body, err := proto.Marshal(&request)
	require.NoError(t, err)
	return body
}

// TestMutantsOfRequests sends damaged copies of what clients have sent. Each is answered in time.
func TestMutantsOfRequests(t *testing.T) {
	const mutants = 100
	f := startFixture(t, serverOnly)
	f.Next.Discard = true
	for name, r := range capturedRequests(t) {
		for _, p := range r.parts(t) {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				require.NoError(t, r.send(t.Context(), f.pushServer(), p.with(p.content)), "undamaged")
				isMessage := r.Headers.Get("Content-Type") == "application/proto" || formats.Sniff(p.content) == formats.Pprof
				profiletest.Mutation{Payload: p.content, Mutants: mutants, IsProtobuf: isMessage,
					Decode: func(ctx context.Context, mutant []byte) error {
						return r.send(ctx, f.pushServer(), p.with(mutant))
					}}.Run(t)
			})
		}
	}
}
