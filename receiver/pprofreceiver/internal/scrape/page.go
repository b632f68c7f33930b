// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"

	_ "embed" // the page's template
)

const (
	// statusPath is where the page is, as Prometheus users know it.
	statusPath = "/targets"
	// statusTargets is how many targets the page lists where the query does not say.
	statusTargets = 500
	// maxStatusTargets bounds how many it lists at all: each adds some 5 kB to the page.
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

// scrapeStatus is what the page shows, and its JSON form.
type scrapeStatus struct {
	Time time.Time   `json:"time"`
	Jobs []jobStatus `json:"jobs"`
	// Targets counts those of all listed jobs by state, and Requests their scrapes under way.
	Targets  map[string]int `json:"targets"`
	Requests int64          `json:"requests"`
	// Left counts the targets that were asked for and that the limit left out.
	Left int `json:"left_out"`
}

// jobStatus is the part of one job.
type jobStatus struct {
	Job        string         `json:"job"`
	Discovered int            `json:"discovered"`
	States     map[string]int `json:"states"`
	Dropped    map[string]int `json:"dropped"`
	// Examples are some of the dropped ones.
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
	// Asking says that a scrape is under way.
	Asking bool `json:"asking"`
}

// statusFilter says which targets are wanted. Empty fields want all.
type statusFilter struct {
	job, state, text string
	limit            int
}

// status copies what the page needs. Counts are of all targets, the lists of those that filter wants.
func (s *schedule) status(filter statusFilter) scrapeStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := scrapeStatus{Time: s.now(), Targets: map[string]int{}, Jobs: make([]jobStatus, 0, len(s.report))}
	place := map[string]int{}
	for i := range s.report {
		if job := s.jobStatusOf(&s.report[i]); filter.job == "" || filter.job == job.Job {
			place[job.Job] = len(made.Jobs)
			made.Jobs = append(made.Jobs, job)
			made.Requests += s.jobs[job.Job].requests
		}
	}
	for _, t := range s.latest {
		i, wanted := place[t.target.Job]
		if !wanted {
			continue
		}
		state, job := t.state(), &made.Jobs[i]
		made.Targets[state]++
		job.States[state]++
		if filter.state != "" && filter.state != state || !t.has(filter.text) {
			continue
		}
		if filter.limit == 0 {
			made.Left++
			continue
		}
		filter.limit--
		job.Targets = append(job.Targets, t.status(state, s.jobs[job.Job]))
	}
	return made
}

func (s *schedule) jobStatusOf(report *targets.JobReport) jobStatus {
	job := jobStatus{
		Job: report.Job, Discovered: report.Discovered, States: map[string]int{}, Dropped: map[string]int{},
		Examples: []droppedStatus{}, Targets: []targetStatus{},
	}
	for why, n := range report.Dropped {
		if n > 0 {
			job.Dropped[targets.DropReason(why).String()] = n
		}
	}
	for _, dropped := range report.Examples {
		job.Examples = append(job.Examples, droppedStatus{
			Discovered: s.jobs[report.Job].shownLabels(dropped.Discovered), Profile: dropped.Profile,
			Reason: dropped.Reason.String(), Detail: dropped.Detail,
		})
	}
	return job
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
		State: state, Labels: t.target.Labels.Map(), Discovered: job.shownLabels(t.target.Discovered),
		Resource: t.target.Resource.AsRaw(), Interval: t.target.Interval.Seconds(),
		Endpoints: make([]endpointStatus, 0, len(t.endpoints)),
	}
	for _, e := range t.endpoints {
		endpoint := endpointStatus{
			Profile: e.Profile.Name, URL: e.shown, State: e.state(), Last: e.last.began,
			Seconds: e.last.took.Seconds(), Bytes: e.last.bodyBytes, Samples: e.last.samples,
			Outcome: e.last.outcome, Asking: e.position == notWaiting,
		}
		if !endpoint.Asking {
			endpoint.Next = e.due
		}
		if e.last.err != nil {
			// The URL stands beside it.
			endpoint.Error = strings.TrimPrefix(e.last.err.Error(), "get "+e.shown+": ")
		}
		made.Endpoints = append(made.Endpoints, endpoint)
	}
	return made
}

// shownLabels leaves out annotations that nothing uses, and the values of query parameters that look secret.
func (j *scrapeJob) shownLabels(from labels.Labels) map[string]string {
	shown := from.Map()
	for name := range shown {
		if j.isHidden(name) {
			delete(shown, name)
			continue
		}
		if parameter, found := strings.CutPrefix(name, "__param_"); found && redact.IsSecret(parameter) {
			shown[name] = redact.Placeholder
		}
	}
	return shown
}

// jobNumbers are the values of a job's gauges.
type jobNumbers struct {
	name            string
	requests        int64
	states, dropped map[string]int64
}

// numbers has an entry for each job, state and reason, 0 included, so that no gauge keeps an old value.
func (s *schedule) numbers() []jobNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	var numbers []jobNumbers
	place := map[string]int{}
	for name, known := range s.jobs {
		job := jobNumbers{name: name, requests: known.requests, states: map[string]int64{}, dropped: map[string]int64{}}
		for _, state := range allStates {
			job.states[state] = 0
		}
		for why := range targets.NumDropReasons {
			job.dropped[why.String()] = 0
		}
		place[name] = len(numbers)
		numbers = append(numbers, job)
	}
	for _, report := range s.report {
		if i, found := place[report.Job]; found {
			for why, n := range report.Dropped {
				numbers[i].dropped[targets.DropReason(why).String()] = int64(n)
			}
		}
	}
	for _, t := range s.latest {
		numbers[place[t.target.Job]].states[t.state()]++
	}
	return numbers
}
