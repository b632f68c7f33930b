// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	_ "embed" // the page's template
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

const (
	// statusPath is where the page is, as Prometheus users know it.
	statusPath = "/targets"
	// statusTargets is how many targets the page lists where the query does not say.
	statusTargets = 500
	// maxStatusTargets bounds how many it lists at all: a page takes some 5 kB for each.
	maxStatusTargets = 5000
)

//go:embed page.html
var statusPageText string

var statusPage = template.Must(template.New("targets").Funcs(template.FuncMap{
	"ago":   func(now, then time.Time) string { return shortDuration(now.Sub(then)) },
	"until": func(now, then time.Time) string { return shortDuration(then.Sub(now)) },
	"took":  func(seconds float64) string { return shortDuration(time.Duration(seconds * float64(time.Second))) },
	"size":  shownSize,
}).Parse(statusPageText))

// statusServer serves the page.
type statusServer struct {
	cfg      *StatusConfig
	set      component.TelemetrySettings
	schedule *schedule

	drainTimeout time.Duration
	http         *httpserver.Server
	address      net.Addr
}

func (s *statusServer) start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler(statusPath, http.StatusFound))
	mux.HandleFunc("GET "+statusPath, s.serve)
	server, err := s.cfg.HTTP.ToServer(ctx, host.GetExtensions(), s.set, mux)
	if err != nil {
		return err
	}
	listener, err := s.cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info("the targets of `scrape` are listed", zap.Stringer("endpoint", s.address), zap.String("path", statusPath))
	s.http = httpserver.Start(server, listener, httpserver.Options{
		DrainTimeout: s.drainTimeout,
		OnFailure:    func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
	})
	return nil
}

// statusView is what the template gets.
type statusView struct {
	scrapeStatus
	Query  url.Values
	States []string
	Limit  int
}

func (s *statusServer) serve(w http.ResponseWriter, r *http.Request) {
	if err := httpserver.CheckHost(r, append(s.cfg.AllowedHosts, s.host())); err != nil {
		http.Error(w, fmt.Sprintf("%v: list the name in `status.allowed_hosts`", err), http.StatusForbidden)
		return
	}
	query := r.URL.Query()
	filter := statusFilter{job: query.Get("job"), state: query.Get("state"), text: query.Get("q"), limit: statusTargets}
	if given := query.Get("limit"); given != "" {
		limit, err := strconv.Atoi(given)
		if err != nil || limit < 0 || limit > maxStatusTargets {
			http.Error(w, fmt.Sprintf("limit must be a number of targets up to %d, found %q", maxStatusTargets, given), http.StatusBadRequest)
			return
		}
		filter.limit = limit
	}
	status := s.schedule.status(filter)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if query.Get("format") == "json" || (query.Get("format") == "" && strings.HasPrefix(r.Header.Get("Accept"), "application/json")) {
		header.Set("Content-Type", "application/json")
		// The reader is gone where this fails, and there is nobody else to tell.
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	// Labels come from elsewhere; the template escapes them, and nothing on the page may run or load.
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	err := statusPage.Execute(w, statusView{scrapeStatus: status, Query: query, States: allStates, Limit: filter.limit})
	if err != nil {
		s.set.Logger.Debug("cannot send the whole page of targets", zap.Error(err))
	}
}

// host is the name by which the configuration knows the server.
func (s *statusServer) host() string {
	name, _, err := net.SplitHostPort(s.cfg.HTTP.NetAddr.Endpoint)
	if err != nil {
		return ""
	}
	return name
}

// shortDuration keeps what a reader can use.
func shortDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func shownSize(bytes int) string {
	switch {
	case bytes < 1<<10:
		return strconv.Itoa(bytes) + " B"
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
