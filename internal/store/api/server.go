// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package api serves a store over HTTP: the page, the JSON that it shows, and pprof for pprof's tools.
//
// Every query gets the headers that browsers obey, waits for one of the slots for concurrent queries and for memory, and reads its
// parameters (params.go) and the store. Large answers are written in columns (columns.go); all are sent with ETag (answer.go) and
// gzip. The server is read only.
//
// All queries share a budget of memory. A query's claim holds what it computes with, and then the answer, until the last byte is
// written. The slot is for the processor: it is free again when the answer is complete. Otherwise a few clients that do not read
// would keep everyone else out.
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
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
	// Timeout bounds a query until its answer is complete. A client has ReadTimeout to read it; 0 is no limit.
	Timeout, ReadTimeout time.Duration
	// TimeoutHint tells users what to change if queries take too long.
	TimeoutHint string
	// Budget has the memory of all queries; nil is that of the process.
	Budget *budget.Budget
	// Observe is called for each query. outcome is ok, refused (the query was at fault) or failed.
	Observe func(ctx context.Context, endpoint, outcome string, took time.Duration)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// ServerTimeout is the WriteTimeout of a server of these settings. httpserver.Start ends requests after nine tenths of it; the whole
// Timeout is before.
func (s *Settings) ServerTimeout() time.Duration {
	if s.ReadTimeout == 0 {
		return 0
	}
	return s.Timeout/9*10 + s.ReadTimeout
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
	if s.Budget == nil {
		s.Budget = budget.Queries()
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
	s.mux.Handle("GET /profiles", compress(s.query("pprof", s.pprof))) // names such as .. have no path
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
	meter  *size.Meter
}

// query returns the handler of one endpoint.
func (s *server) query(endpoint string, serve func(*request) (*answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
		defer cancel()
		claim := s.Budget.Begin()
		defer claim.Release()
		a, err := s.serve(r.WithContext(ctx), claim, serve)
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
		a.write(w, r, claim, s.ReadTimeout)
	}
}

// serve returns the answer to a query. The claim holds its memory.
func (s *server) serve(r *http.Request, claim *budget.Claim, serve func(*request) (*answer, error)) (a *answer, err error) {
	p, err := parseParams(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	// The answer has a part of its memory before the query waits for a slot, and the rest at once or not: who has a slot does not wait
	// for the readers of other answers.
	if err := claim.AcquireBody(r.Context(), writingBytes); err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	// Ordinary queries need no more than they begin with, and wait for no large one.
	err = claim.Build(r.Context(), s.Budget.SmallBytes(), func(reserve size.Reserve) error {
		a, err = serve(&request{
			Request: r, params: p, now: s.Now(), meter: &size.Meter{Context: r.Context(), Reserve: reserve},
		})
		if err == nil {
			err = claim.ResizeBody(r.Context(), int64(a.size())+writingBytes)
		}
		return err
	})
	claim.Built(0)
	return a, err
}

// httpError is an error with its status and what to do next.
type httpError struct {
	status     int
	text, hint string
}

func (e *httpError) Error() string { return e.text }

func badRequest(text, hint string) error { return &httpError{http.StatusBadRequest, text, hint} }

const smallerHint = "choose a shorter time or one sample type (type=<type>), or add a filter (attr.<key>=<value>)"

// httpError returns an error with its status and a hint.
func (s *server) httpError(err error) *httpError {
	var known *httpError
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrNothing):
		return &httpError{http.StatusNotFound, err.Error(), "GET /api/profiles lists what there is"}
	case errors.Is(err, store.ErrTooLarge):
		return &httpError{http.StatusBadRequest, err.Error(), smallerHint}
	case errors.As(err, &tooLarge):
		return &httpError{http.StatusBadRequest, fmt.Sprintf(
			"%s: it needs at least %d bytes of memory, and the memory limit of this process leaves %d for one query",
			store.ErrTooLarge, tooLarge.Need, tooLarge.Limit), smallerHint}
	case errors.Is(err, budget.ErrBusy):
		return &httpError{http.StatusServiceUnavailable, "other queries take all the memory that queries may use at the moment", "try again"}
	case errors.Is(err, context.DeadlineExceeded):
		hint := "try again, or choose a shorter time"
		if s.TimeoutHint != "" {
			hint += "; " + s.TimeoutHint
		}
		return &httpError{http.StatusServiceUnavailable, fmt.Sprintf("the query took longer than %s", s.Timeout), hint}
	case errors.Is(err, context.Canceled):
		return &httpError{http.StatusServiceUnavailable, "the server is stopping", "try again"}
	default:
		return &httpError{http.StatusBadRequest, err.Error(), ""}
	}
}

// wantsPprofErrors reports whether errors must be text, as pprof's tools show them.
func wantsPprofErrors(r *http.Request) bool {
	return r.URL.Path == "/profiles" || strings.HasPrefix(r.URL.Path, "/profiles/") || strings.HasPrefix(r.URL.Path, "/services/")
}
