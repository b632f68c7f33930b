// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscopetest has a server like Pyroscope's that keeps what it accepts, for tests of senders.
package pyroscopetest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"
)

const pushPath = "/push.v1.PusherService/Push"

// Series is one series as the server received it.
type Series struct {
	Labels map[string]string
	ID     string
	Pprof  *profile.Profile
	// Bytes is the size of the pprof before compression.
	Bytes  int
	Tenant string
}

// Server accepts series by push.v1.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []http.HandlerFunc
	got      []Series
	calls    int
	discards bool
}

// New starts a server that stops when the test ends.
func New(t testing.TB) *Server {
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(t, w, r) }))
	t.Cleanup(s.Close)
	return s
}

// Answer sets the answers to the next requests; nil accepts a request.
func (s *Server) Answer(answers ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Discard makes the server accept all further requests without reading them.
func (s *Server) Discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discards = true
}

// Calls returns the number of requests so far.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Series returns what was accepted so far.
func (s *Server) Series() []Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *Server) serve(t testing.TB, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.discards {
		return
	}
	if len(s.answers) > 0 {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		if answer != nil {
			answer(w, r)
			return
		}
	}
	assert.Equal(t, pushPath, r.URL.Path)
	assert.Equal(t, "application/proto", r.Header.Get("Content-Type"))
	body, err := io.ReadAll(r.Body)
	assert.NoError(t, err)
	var request pushv1.PushRequest
	assert.NoError(t, proto.Unmarshal(body, &request))
	for _, one := range request.Series {
		labels := map[string]string{}
		for i, l := range one.Labels {
			labels[l.Name] = l.Value
			assert.True(t, i == 0 || one.Labels[i-1].Name < l.Name, "labels are sorted")
		}
		for _, sample := range one.Samples {
			unzip, err := gzip.NewReader(bytes.NewReader(sample.RawProfile))
			assert.NoError(t, err)
			plain, err := io.ReadAll(unzip)
			assert.NoError(t, err)
			p, err := profile.ParseUncompressed(plain)
			assert.NoError(t, err)
			s.got = append(s.got, Series{labels, sample.ID, p, len(plain), r.Header.Get("X-Scope-OrgID")})
		}
	}
}
