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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

const (
	// statusPath is the path of the page, as in Prometheus.
	statusPath = "/targets"
	// statusTargets is how many targets the page lists by default.
	statusTargets = 500
	// maxStatusTargets bounds how many the query can ask for: each adds some 5 kB to the page.
	maxStatusTargets = 5000
)

//go:embed page.html
var statusPageHTML string

var statusPage = template.Must(template.New("targets").Funcs(template.FuncMap{
	"ago":   func(now, then time.Time) string { return shortDuration(now.Sub(then)) },
	"until": func(now, then time.Time) string { return shortDuration(then.Sub(now)) },
	"took":  func(seconds float64) string { return shortDuration(time.Duration(seconds * float64(time.Second))) },
	"size":  shortSize,
}).Parse(statusPageHTML))

type statusServer struct {
	cfg      *StatusConfig
	set      component.TelemetrySettings
	schedule *schedule
	http     *httpserver.Server
}

func (s *statusServer) start(ctx context.Context, host component.Host) (err error) {
	name, _, _ := net.SplitHostPort(s.cfg.HTTP.NetAddr.Endpoint)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler(statusPath, http.StatusFound))
	mux.HandleFunc("GET "+statusPath, s.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusNotFound
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			status = http.StatusMethodNotAllowed
		}
		http.Error(w,
			"only the page of targets is here, at "+statusPath+
				"; profiles are received on port 4040 by default, and shown on 4042", status)
	})
	server := httpserver.HTTP{Config: &s.cfg.HTTP, Browsers: httpserver.Browsers{
		IsPage: true, AllowedHosts: slices.Concat(s.cfg.AllowedHosts, []string{name}), Linked: []string{"/", statusPath},
		Hint: "list the name in `status.allowed_hosts`",
	}}
	if s.http, err = server.Start(ctx, mux, httpserver.Env{Host: host, Telemetry: s.set}); err != nil {
		return err
	}
	s.set.Logger.Info("serving the page of scraped targets", zap.Stringer("endpoint", s.http.Addr()),
		zap.String("path", statusPath))
	return nil
}

type statusView struct {
	scrapeStatus
	Query  url.Values
	States []string
	Limit  int
}

func (s *statusServer) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	filter := statusFilter{job: query.Get("job"), state: query.Get("state"), text: query.Get("q"), limit: statusTargets}
	if given := query.Get("limit"); given != "" {
		limit, err := strconv.Atoi(given)
		if err != nil || limit < 0 || limit > maxStatusTargets {
			http.Error(w, fmt.Sprintf("limit must be a number of targets up to %d, found %q", maxStatusTargets, given),
				http.StatusBadRequest)
			return
		}
		filter.limit = limit
	}
	status := s.schedule.status(filter)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if query.Get("format") == "json" ||
		(query.Get("format") == "" && strings.HasPrefix(r.Header.Get("Accept"), "application/json")) {
		header.Set("Content-Type", "application/json")
		// An error means that the reader is gone.
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	// Labels come from the targets. The template escapes them, and the policy forbids scripts and requests.
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	err := statusPage.Execute(w, statusView{scrapeStatus: status, Query: query, States: allStates, Limit: filter.limit})
	if err != nil {
		s.set.Logger.Debug("cannot send the whole page of targets", zap.Error(err))
	}
}

// shortDuration rounds to the digits that a reader can use.
func shortDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func shortSize(bytes int) string {
	switch {
	case bytes < 1<<10:
		return strconv.Itoa(bytes) + " B"
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// scrapeStatus is the content of the page, and its JSON form.
type scrapeStatus struct {
	Time time.Time   `json:"time"`
	Jobs []jobStatus `json:"jobs"`
	// Targets counts the targets of all listed jobs by state, and Requests their scrapes in progress.
	Targets  map[string]int `json:"targets"`
	Requests int64          `json:"requests"`
	// Left counts the selected targets beyond the limit.
	Left int `json:"left_out"`
}

type jobStatus struct {
	Job        string         `json:"job"`
	Discovered int            `json:"discovered"`
	States     map[string]int `json:"states"`
	Dropped    map[string]int `json:"dropped"`
	// Examples are some of the dropped targets.
	Examples []droppedStatus `json:"dropped_examples"`
	Targets  []targetStatus  `json:"targets"`
}

type droppedStatus struct {
	Discovered map[string]string `json:"discovered"`
	Profile    string            `json:"profile,omitempty"`
	Reason     string            `json:"reason"`
	Detail     string            `json:"detail,omitempty"`
}

type targetStatus struct {
	State      string            `json:"state"`
	Labels     map[string]string `json:"labels"`
	Discovered map[string]string `json:"discovered"`
	Resource   map[string]any    `json:"resource"`
	Interval   float64           `json:"interval_seconds"`
	Endpoints  []endpointStatus  `json:"endpoints"`
}

type endpointStatus struct {
	Profile string    `json:"profile"`
	URL     string    `json:"url"`
	State   string    `json:"state"`
	Last    time.Time `json:"last_scrape,omitzero"`
	Next    time.Time `json:"next_scrape,omitzero"`
	Seconds float64   `json:"duration_seconds"`
	Bytes   int       `json:"bytes"`
	Samples int       `json:"samples"`
	Outcome string    `json:"outcome,omitempty"`
	Error   string    `json:"error,omitempty"`
	// InProgress means that a scrape is in progress.
	InProgress bool `json:"in_progress"`
}

// statusFilter selects targets. Empty fields select all.
type statusFilter struct {
	job, state, text string
	limit            int
}

// status copies the data of the page. It counts all targets, and lists those that filter selects.
func (s *schedule) status(filter statusFilter) scrapeStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := scrapeStatus{Time: time.Now(), Targets: map[string]int{}, Jobs: []jobStatus{}}
	for _, report := range s.reports {
		if filter.job != "" && filter.job != report.Job {
			continue
		}
		job := s.jobs[report.Job]
		status := job.status(report)
		for _, t := range job.targets {
			state := t.state()
			made.Targets[state]++
			status.States[state]++
			switch {
			case filter.state != "" && filter.state != state || !t.has(filter.text):
			case filter.limit == 0:
				made.Left++
			default:
				filter.limit--
				status.Targets = append(status.Targets, t.status(state, job))
			}
		}
		made.Requests += job.requests
		made.Jobs = append(made.Jobs, status)
	}
	return made
}

func (j *scrapeJob) status(report targets.JobReport) jobStatus {
	status := jobStatus{
		Job: report.Job, Discovered: report.Discovered, States: map[string]int{}, Dropped: map[string]int{},
		Examples: []droppedStatus{}, Targets: []targetStatus{},
	}
	for why, n := range report.Dropped {
		if n > 0 {
			status.Dropped[targets.DropReason(why).String()] = n
		}
	}
	for _, dropped := range report.Examples {
		status.Examples = append(status.Examples, droppedStatus{
			Discovered: j.shownLabels(dropped.Discovered), Profile: dropped.Profile, Reason: dropped.Reason.String(),
			Detail: dropped.Detail,
		})
	}
	return status
}

// has reports whether text is part of a label's value or of a URL of the target.
func (t *scrapedTarget) has(text string) bool {
	found := text == ""
	t.target.Labels.Range(func(l labels.Label) { found = found || strings.Contains(l.Value, text) })
	for _, e := range t.endpoints {
		found = found || strings.Contains(e.shown, text)
	}
	return found
}

func (t *scrapedTarget) status(state string, job *scrapeJob) targetStatus {
	made := targetStatus{
		State: state, Labels: job.shownLabels(t.target.Labels), Discovered: job.shownLabels(t.target.Discovered),
		Resource: t.target.Resource.AsRaw(), Interval: t.target.Interval.Seconds(),
		Endpoints: make([]endpointStatus, 0, len(t.endpoints)),
	}
	for _, e := range t.endpoints {
		endpoint := endpointStatus{
			Profile: e.Profile.Name, URL: e.shown, State: e.state(), Last: e.last.began,
			Seconds: e.last.took.Seconds(), Bytes: e.last.bodyBytes, Samples: e.last.samples,
			Outcome: e.last.outcome, InProgress: e.cancel != nil,
		}
		if !endpoint.InProgress {
			endpoint.Next = e.due
		}
		if e.last.err != nil {
			// URL has it already.
			endpoint.Error = strings.TrimPrefix(e.last.err.Error(), "get "+e.shown+": ")
		}
		made.Endpoints = append(made.Endpoints, endpoint)
	}
	return made
}

// shownLabels returns labels without the hidden ones, without the values of query parameters whose names look secret,
// and without the credentials in URLs: __meta_url is the configured one of http_sd_configs.
func (j *scrapeJob) shownLabels(from labels.Labels) map[string]string {
	shown := from.Map()
	for name := range shown {
		if j.isHidden(name) {
			delete(shown, name)
			continue
		}
		if parameter, found := strings.CutPrefix(name, "__param_"); found && redact.IsSecret(parameter) {
			shown[name] = redact.Placeholder
		} else {
			shown[name] = redact.URLs(shown[name])
		}
	}
	return shown
}
