// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package api serves a store over HTTP: the page, the JSON that it shows, pprof for pprof's tools, and what Grafana
// calls (pyroscope.go).
//
// Every query gets the headers that browsers obey, and runs within the limits that all queries share (package query).
// Large answers are written in columns (columns.go); all are sent with ETag (answer.go) and gzip. The server is read
// only.
package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// Settings configure what the API serves, and its bounds.
type Settings struct {
	Store   *answers.Querier
	Page    fs.FS
	Version string
	// MaxBytes is the bound of the store's memory, for /api/status.
	MaxBytes int
	query.Limits
	// ReadTimeout is how long a client may read an answer; 0 is no limit.
	ReadTimeout time.Duration
	// SourceLink is a template of links to source code, for the page; empty: the page makes links to the repository of the
	// profiles.
	SourceLink string
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// MCP returns what answers assistants at /mcp, by queries within the same limits; nil is nothing.
	MCP func(*query.Queries) http.Handler
}

// ServerTimeout is the WriteTimeout of a server of these settings. httpserver.Start ends requests after nine tenths of
// it; the whole Timeout is before.
func (s *Settings) ServerTimeout() time.Duration {
	if s.ReadTimeout == 0 {
		return 0
	}
	return s.Timeout/9*10 + s.ReadTimeout
}

// contentSecurityPolicy allows the page its own files and nothing else.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const mcpPath = "/mcp"

const maxQueryBytes = 16 << 10

type server struct {
	Settings
	mux     *http.ServeMux
	queries *query.Queries
	// progress has the queries that have a name.
	progress progress
	troubles troubles
}

// Browsers is the rule for the browsers that may read. hint tells users what to change if a host is not allowed.
func Browsers(allowedHosts []string, hint string) httpserver.Browsers {
	return httpserver.Browsers{
		IsPage: true, AllowedHosts: allowedHosts, Hint: hint, Linked: []string{"/"},
		Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
			writeError(w, r, &query.Error{Status: http.StatusForbidden, Message: err.Error()})
		},
	}
}

// New returns the handler.
func New(settings Settings) http.Handler {
	s := &server{Settings: settings, mux: http.NewServeMux(), progress: progress{byID: map[string]*named{}},
		troubles: troubles{byCount: map[string]trouble{}},
		queries:  query.New(settings.Limits)}
	if s.Now == nil {
		s.Now = time.Now
	}
	// the level is valid
	compress, _ := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	for name, serve := range map[string]func(*request) (*answer, error){
		"status": s.status, "services": s.services, "profiles": s.profiles, "attributes": s.attributes,
		"timeline": s.timeline, "flamegraph": s.flamegraph, "table": s.table, "diff": s.diff,
		"heatmap": s.heatmap, "events": s.events, "overview": s.overview, "types": s.types, "page": s.page,
		"versions": s.versions, "lines": s.lines, "findings": s.findings,
	} {
		s.mux.Handle("GET /api/"+name, compress(s.query(name, serve)))
	}
	s.mux.Handle("GET /profiles/{service}/{profile}", compress(s.query("pprof", s.pprof)))
	s.mux.Handle("GET /profiles", compress(s.query("pprof", s.pprof))) // names such as .. have no path
	s.mux.Handle("GET /services/{service}/debug/pprof/{kind}", compress(s.query("debug_pprof", s.debugPprof)))
	s.mux.Handle("GET /api/progress", &s.progress)
	s.pyroscope(compress)
	if s.MCP != nil {
		s.mux.Handle(mcpPath, s.MCP(s.queries))
	} else {
		s.mux.HandleFunc(mcpPath, func(w http.ResponseWriter, r *http.Request) {
			writeError(w, r, &query.Error{Status: http.StatusNotFound, Message: "assistants are not answered here",
				Hint: "set `mcp: {}` in the configuration of the exporter profile_store"})
		})
	}
	files := compress(pageFiles(settings.Page))
	s.mux.Handle("GET /{$}", files)
	s.mux.Handle("GET /static/", files)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if isCall(r) {
			writeCallError(w, r, errNotServed)
			return
		}
		writeError(w, r,
			&query.Error{Status: http.StatusNotFound, Message: "nothing is here",
				Hint: "the page is at /; GET /api/services lists the services; " + receivedAt})
	})
	return s
}

// pageFiles serves the files of the page with an ETag, so that a browser that has them does not fetch them again.
func pageFiles(page fs.FS) http.Handler {
	files := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := fs.ReadFile(page, cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "index.html"))
		if err == nil {
			sum := sha256.Sum256(content)
			w.Header().Set("ETag", fmt.Sprintf(`W/"%x"`, sum[:8])) // weak: it is that of the compressed file, too
		}
		files.ServeHTTP(w, r)
	})
}

// receivedAt names the ports at which profiles arrive in the configurations that have this server.
const receivedAt = "profiles are received on other ports: pprof, Pyroscope's and Datadog's on 4040, OTLP on 4317 and 4318"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	switch {
	case r.URL.Path == mcpPath: // by POST
		s.mux.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions && !isCall(r):
		h.Set("Allow", "GET, HEAD")
		writeError(w, r, &query.Error{Status: http.StatusMethodNotAllowed, Message: "this server is read only",
			Hint: "use GET; " + receivedAt})
	case len(r.URL.RawQuery) > maxQueryBytes:
		writeError(w, r, &query.Error{Status: http.StatusRequestURITooLong, Message: "the query is too long", Hint: "use fewer attributes"})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

type request struct {
	*http.Request
	params *query.Params
	now    time.Time
	meter  *size.Meter
}

func (s *server) query(endpoint string, serve func(*request) (*answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reservation := s.queries.Begin()
		defer reservation.Release()
		ctx, end := s.progress.begin(r)
		defer end()
		var a *answer
		err := s.queries.Run(ctx, reservation, endpoint, func(ctx context.Context, meter *size.Meter) (int, error) {
			p, err := query.ParseParams(r.URL.RawQuery)
			if err != nil {
				return 0, err
			}
			if a, err = serve(&request{Request: r.WithContext(ctx), params: p, now: s.Now(), meter: meter}); err != nil {
				return 0, err
			}
			return a.size(), nil
		})
		if err != nil {
			writeError(w, r, s.queries.Error(err))
			return
		}
		a.write(w, r, reservation, s.ReadTimeout)
	}
}

// wantsPprofErrors reports whether errors must be text, as pprof's tools show them.
func wantsPprofErrors(r *http.Request) bool {
	return r.URL.Path == "/profiles" || strings.HasPrefix(r.URL.Path, "/profiles/") || strings.HasPrefix(r.URL.Path, "/services/")
}
