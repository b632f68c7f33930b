// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// Manager runs the discovery of several jobs, each within its `target_limit`. It sleeps while nothing changes.
type Manager struct {
	log       *zap.Logger
	logger    *slog.Logger // writes to log
	jobs      []*job
	providers []*provider
	// every is the longest pause between two updates while targets keep changing.
	every time.Duration
	// firstLook is how long a job may find nothing before the manager logs it. Kubernetes' discovery does not log that the
	// API server is unreachable.
	firstLook time.Duration
}

// job is a configuration with its discoveries, and the memo of its relabel rules.
type job struct {
	*Config
	providers []*provider
	memo      *memo
	// isOverLimit reports that the last update had more targets than the limit.
	isOverLimit bool
}

// provider is a running discovery with the groups that it has found. Jobs with equal configurations share it.
type provider struct {
	cfg        discovery.Config
	limit      int
	discoverer discovery.Discoverer

	mu     sync.Mutex
	groups map[string]*targetgroup.Group // by source
}

// settle is how long the first change after a quiet time waits for others.
const settle = 100 * time.Millisecond

// NewManager returns a Manager that does not run yet. Its error names the discoveries that cannot work, for example
// because a certificate is missing or the collector does not run in Kubernetes.
func NewManager(cfgs []*Config, logger *zap.Logger) (*Manager, error) {
	// Discovery requires these metrics. They are not exported: the receiver has its own.
	metrics, err := discovery.CreateAndRegisterSDMetrics(prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	m := &Manager{
		log:       logger,
		logger:    newLogger(logger),
		every:     5 * time.Second,
		firstLook: time.Minute,
	}
	var errs []error
	for _, cfg := range cfgs {
		j := &job{Config: cfg, memo: newMemo()}
		for _, d := range cfg.Discovery {
			p, err := m.provider(cfg, d, metrics)
			if err != nil {
				errs = append(errs, inJob(cfg.JobName, fmt.Errorf("`%s_sd_configs`: %w", d.Name(), err)))
			} else if !slices.Contains(j.providers, p) {
				j.providers = append(j.providers, p)
			}
		}
		m.jobs = append(m.jobs, j)
	}
	return m, errors.Join(errs...)
}

// provider returns the provider with this configuration, which it makes for the first job that has it.
func (m *Manager) provider(cfg *Config, d discovery.Config, metrics *discovery.SDMetrics) (*provider, error) {
	for _, p := range m.providers {
		if p.limit == cfg.TargetLimit && reflect.DeepEqual(p.cfg, d) {
			return p, nil
		}
	}
	options := discovery.DiscovererOptions{
		Logger:  newLogger(onceIn(logEvery, m.log)).With("discovery", d.Name(), "job", cfg.JobName),
		Metrics: metrics.MechanismMetrics[d.Name()],
		SetName: cfg.JobName,
	}
	p := &provider{cfg: d, limit: cfg.TargetLimit, groups: map[string]*targetgroup.Group{}}
	var err error
	switch d := d.(type) {
	case *http.SDConfig:
		p.discoverer, err = newHTTPDiscovery(d, cfg.TargetLimit, options.Logger)
	case *file.SDConfig:
		p.discoverer = newFolders(d.Files, func(files []string) (discovery.Discoverer, error) {
			return (&file.SDConfig{Files: files, RefreshInterval: d.RefreshInterval}).NewDiscoverer(options)
		})
	default:
		p.discoverer, err = d.NewDiscoverer(options)
	}
	if err != nil {
		return nil, err
	}
	m.providers = append(m.providers, p)
	return p, nil
}

// logEvery is how often one message of one discovery is logged about one file, name or object: a discovery that fails
// writes it at every refresh.
const logEvery = 5 * time.Minute

// maxSubjects bounds the files, names and objects that are told apart. Messages about others are one.
const maxSubjects = 100

// onceIn returns a logger that writes a message about the same subject once in an interval.
func onceIn(interval time.Duration, logger *zap.Logger) *zap.Logger {
	var mu sync.Mutex
	logged := map[string]time.Time{}
	return telemetry.Rewrite(logger, func(entry *zapcore.Entry, fields []zapcore.Field) ([]zapcore.Field, bool) {
		// The message without the error, which may differ at every try: it can have the port of a connection.
		subject := zapcore.NewMapObjectEncoder()
		for _, f := range fields {
			if f.Key != "err" {
				f.AddTo(subject)
			}
		}
		key := entry.Message + fmt.Sprint(subject.Fields)
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(logged, func(_ string, last time.Time) bool { return entry.Time.Sub(last) >= interval })
		if _, isKnown := logged[key]; !isKnown && len(logged) >= maxSubjects {
			key = entry.Message
		}
		_, isKnown := logged[key]
		if !isKnown {
			logged[key] = entry.Time
		}
		return fields, !isKnown
	})
}

// newLogger returns a logger without the debug level, at which discovery logs all the time.
func newLogger(log *zap.Logger) *slog.Logger {
	core := log.Core()
	if quieter, err := zapcore.NewIncreaseLevelCore(core, zapcore.InfoLevel); err == nil { // else log is above that level
		core = quieter
	}
	return slog.New(zapslog.NewHandler(core, zapslog.AddStacktraceAt(math.MaxInt)))
}

// Run discovers targets until ctx ends, and calls apply with what each discovery has found, which is often what it
// found before, never twice at once. It returns when apply will not be called again. A manager runs once.
func (m *Manager) Run(ctx context.Context, apply func(Update)) {
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // Jobs that find nothing are reported too.
	for _, p := range m.providers {
		found := make(chan []*targetgroup.Group)
		// Run does not wait for discoverers: a DNS query does not end with ctx.
		go p.discoverer.Run(ctx, found)
		go p.collect(ctx, found, changed)
	}
	m.follow(ctx, changed, apply)
}

// collect keeps the groups that the discoverer finds, and sets changed, until ctx ends or the discoverer closes found.
func (p *provider) collect(ctx context.Context, found <-chan []*targetgroup.Group, changed chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case groups, open := <-found:
			if !open {
				return
			}
			p.merge(groups)
		}
		select {
		case changed <- struct{}{}:
		default: // It is set already.
		}
	}
}

// merge replaces the groups of the same sources. A group without targets means that its source is gone. Some
// discoveries send nil groups.
func (p *provider) merge(groups []*targetgroup.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range groups {
		switch {
		case g == nil:
		case len(g.Targets) == 0:
			delete(p.groups, g.Source)
		default:
			p.groups[g.Source] = g
		}
	}
}

// follow calls apply with changes until ctx ends: the first after a quiet time soon, and less and less often while more
// come.
func (m *Manager) follow(ctx context.Context, changed <-chan struct{}, apply func(Update)) {
	var (
		last      Update
		pause     time.Duration
		ended     time.Time        // when the last pause ended
		due       <-chan time.Time // nil while nothing has changed
		firstLook = time.After(m.firstLook)
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if due != nil {
				continue
			}
			if time.Since(ended) > m.every {
				pause = 0
			}
			pause = min(max(2*pause, settle), m.every)
			due = time.After(pause)
		case <-due:
			due, ended = nil, time.Now()
			if next := m.update(); ctx.Err() == nil {
				apply(next)
				last = next
			}
		case <-firstLook:
			m.warnOfNothing(last)
		}
	}
}

// warnOfNothing names the jobs that have found nothing. Where files list the targets, there may be none yet: that is no
// fault.
func (m *Manager) warnOfNothing(last Update) {
	for i, j := range m.jobs {
		if i < len(last.Jobs) && last.Jobs[i].Discovered > 0 {
			continue
		}
		if files := j.files(); files != nil {
			m.logger.Info("no targets yet; list them in a file with one of these names", "job", j.JobName, "files", files)
			continue
		}
		m.logger.Warn("discovery found no targets yet; check the job's names or API server", "job", j.JobName, "after",
			m.firstLook.String())
	}
}

// files returns the names of the files that list the job's targets. It returns nil if the job has another discovery.
func (j *job) files() []string {
	var files []string
	for _, cfg := range j.Discovery {
		list, ok := cfg.(*file.SDConfig)
		if !ok {
			return nil
		}
		files = append(files, list.Files...)
	}
	return files
}

func (m *Manager) update() Update {
	var u Update
	for _, j := range m.jobs {
		var groups []*targetgroup.Group
		beyond := 0
		for _, p := range j.providers {
			p.mu.Lock()
			groups = slices.AppendSeq(groups, maps.Values(p.groups))
			p.mu.Unlock()
			if d, ok := p.discoverer.(*httpDiscovery); ok {
				beyond += int(d.beyond.Load())
			}
		}
		targets, report := j.group(groups, j.memo)
		report.Discovered += beyond
		report.Dropped[DropLimit] += beyond
		if isOver := report.Dropped[DropLimit] > 0; isOver != j.isOverLimit {
			if j.isOverLimit = isOver; isOver {
				m.logger.Warn(
					"discovery found more targets than `target_limit`, or targets with too many labels; the others are not scraped",
					"job", j.JobName, "target_limit", j.TargetLimit, "found", report.Discovered, "not_scraped",
					report.Dropped[DropLimit])
			}
		}
		u.Targets = append(u.Targets, targets...)
		u.Jobs = append(u.Jobs, report)
	}
	return u
}
