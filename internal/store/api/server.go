// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package api serves a store over HTTP: the page, the JSON that it shows, and pprof for pprof's tools.
//
// Every query passes through CheckHost, gets the headers that browsers obey, waits for one of the slots for concurrent
// queries, and reads its parameters (params.go) and the store. Large answers are written in columns (columns.go); all are
// sent with ETag (answer.go) and gzip. The server is read only.
package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// Settings configure what the API serves, and its bounds.
type Settings struct {
	Store   *store.Store
	Page    fs.FS
	Version string
	// MaxBytes is the bound of the store's memory, for /api/status.
	MaxBytes int
	// Files reports that profiles are written to files, too.
	Files         bool
	MaxConcurrent int
	Timeout       time.Duration
	// TimeoutHint tells users what to change if queries take too long.
	TimeoutHint string
	// Observe is called for each query. outcome is ok, refused (the query was at fault) or failed.
	Observe func(ctx context.Context, endpoint, outcome string, took time.Duration)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// contentSecurityPolicy allows the page its own files and nothing else.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// maxQueryBytes bounds the query string of a URL.
const maxQueryBytes = 16 << 10

type server struct {
	Settings
	mux *http.ServeMux
	// slots holds a token for each query under way.
	slots chan struct{}
}

// Browsers is the rule for the browsers that may read. hint tells users what to change if a host is not allowed.
func Browsers(allowedHosts []string, hint string) httpserver.Browsers {
	return httpserver.Browsers{
		IsPage: true, AllowedHosts: allowedHosts, Hint: hint, Linked: []string{"/"},
		Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
			writeError(w, r, &httpError{http.StatusForbidden, err.Error(), hint})
		},
	}
}

// New returns the handler.
func New(settings Settings) http.Handler {
	s := &server{Settings: settings, mux: http.NewServeMux(), slots: make(chan struct{}, settings.MaxConcurrent)}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Observe == nil {
		s.Observe = func(context.Context, string, string, time.Duration) {}
	}
	compress, _ := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false)) // the level is valid
	for name, serve := range map[string]func(*request) (*answer, error){
		"status": s.status, "services": s.services, "profiles": s.profiles, "attributes": s.attributes,
		"timeline": s.timeline, "flamegraph": s.flamegraph, "table": s.table, "diff": s.diff,
		"heatmap": s.heatmap, "events": s.events,
	} {
		s.mux.Handle("GET /api/"+name, compress(s.query(name, serve)))
	}
	s.mux.Handle("GET /profiles/{service}/{profile}", compress(s.query("pprof", s.pprof)))
	s.mux.Handle("GET /services/{service}/debug/pprof/{kind}", compress(s.query("debug_pprof", s.debugPprof)))
	files := http.FileServerFS(settings.Page)
	s.mux.Handle("GET /{$}", files)
	s.mux.Handle("GET /static/", files)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, r, &httpError{http.StatusNotFound, "nothing is here", "the page is at /; GET /api/services lists the services"})
	})
	return s
}

// ServeHTTP sets the headers of every answer.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		h.Set("Allow", "GET, HEAD")
		writeError(w, r, &httpError{http.StatusMethodNotAllowed, "this server is read only", "use GET"})
	case len(r.URL.RawQuery) > maxQueryBytes:
		writeError(w, r, &httpError{http.StatusRequestURITooLong, "the query is too long", "use fewer attributes"})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// request is one query.
type request struct {
	*http.Request
	params *params
	now    time.Time
}

// query returns the handler of one endpoint.
func (s *server) query(endpoint string, serve func(*request) (*answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
		defer cancel()
		a, err := s.serve(r.WithContext(ctx), serve)
		outcome := "ok"
		if err != nil {
			outcome = "failed"
			if s.httpError(err).status < http.StatusInternalServerError {
				outcome = "refused"
			}
		}
		s.Observe(r.Context(), endpoint, outcome, time.Since(start))
		if err != nil {
			writeError(w, r, s.httpError(err))
			return
		}
		a.write(w, r)
	}
}

func (s *server) serve(r *http.Request, serve func(*request) (*answer, error)) (*answer, error) {
	p, err := parseParams(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	q := &request{Request: r, params: p, now: s.Now()}
	a, err := serve(q)
	if err != nil {
		return nil, err
	}
	// Otherwise a misspelt key would show other profiles than the user expects.
	return a, p.unused()
}

// httpError is an error with its status and what to do next.
type httpError struct {
	status     int
	text, hint string
}

func (e *httpError) Error() string { return e.text }

func badRequest(text, hint string) error { return &httpError{http.StatusBadRequest, text, hint} }

// httpError returns an error with its status and a hint.
func (s *server) httpError(err error) *httpError {
	var known *httpError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrNothing):
		return &httpError{http.StatusNotFound, err.Error(), "GET /api/profiles lists what there is"}
	case errors.Is(err, store.ErrTooLarge):
		return &httpError{http.StatusBadRequest, err.Error(), "choose a shorter time or one sample type (type=<type>), or add a filter (attr.<key>=<value>)"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		hint := "try again, or choose a shorter time"
		if s.TimeoutHint != "" {
			hint += "; " + s.TimeoutHint
		}
		return &httpError{http.StatusServiceUnavailable, "the query took too long", hint}
	default:
		return &httpError{http.StatusBadRequest, err.Error(), ""}
	}
}

// wantsPprofErrors reports whether errors must be text, as pprof's tools show them.
func wantsPprofErrors(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/profiles/") || strings.HasPrefix(r.URL.Path, "/services/")
}
