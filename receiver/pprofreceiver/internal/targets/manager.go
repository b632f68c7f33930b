// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// Manager runs the discovery of several jobs.
type Manager struct {
	cfgs       []*Config
	log        zapcore.Core
	logger     *slog.Logger // writes to log
	registerer prometheus.Registerer
	metrics    *discovery.SDMetrics
	made       discoverers
	memos      []*memo // one for each of cfgs
	// every bounds how often a set of targets that changes all the time is handed on.
	every time.Duration
	// firstLook is how long a job may find nothing before that is worth a line in the log. The discovery of Kubernetes
	// says nothing by itself of an API server that cannot be reached.
	firstLook time.Duration
}

// NewManager makes a Manager. Its error says which discovery cannot work, for example because its certificate is
// missing or the collector does not run in Kubernetes. Every manager needs a registerer of its own, or discovery's
// metrics collide.
func NewManager(cfgs []*Config, logger *zap.Logger, registerer prometheus.Registerer) (*Manager, error) {
	metrics, err := discovery.CreateAndRegisterSDMetrics(registerer)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfgs:       cfgs,
		log:        logger.Core(),
		logger:     newLogger(logger.Core()),
		registerer: registerer,
		metrics:    metrics,
		made:       discoverers{},
		every:      5 * time.Second,
		firstLook:  time.Minute,
	}
	var errs []error
	for _, cfg := range cfgs {
		m.memos = append(m.memos, newMemo())
		for _, d := range cfg.Discovery {
			if err := m.make(cfg.JobName, d); err != nil {
				errs = append(errs, inJob(cfg.JobName, fmt.Errorf("`%s_sd_configs`: %w", d.Name(), err)))
			}
		}
	}
	return m, errors.Join(errs...)
}

// make makes a discoverer ahead of time: Prometheus' manager only logs what fails.
func (m *Manager) make(job string, d discovery.Config) error {
	if _, isStatic := d.(discovery.StaticConfig); isStatic {
		return nil
	}
	made, err := d.NewDiscoverer(discovery.DiscovererOptions{
		Logger:  newLogger(onceIn(logEvery, m.log)).With("discovery", d.Name(), "job", job),
		Metrics: m.metrics.MechanismMetrics[d.Name()],
		SetName: job,
	})
	if err != nil {
		return err
	}
	m.made[d] = made
	return nil
}

// logEvery is how often one message of one discovery is logged: a discovery that fails writes it at every refresh.
const logEvery = 5 * time.Minute

func onceIn(interval time.Duration, log zapcore.Core) zapcore.Core {
	return zapcore.NewSamplerWithOptions(log, interval, 1, 0)
}

// newLogger returns a logger without the debug level, at which discovery logs all the time.
func newLogger(log zapcore.Core) *slog.Logger {
	if quieter, err := zapcore.NewIncreaseLevelCore(log, zapcore.InfoLevel); err == nil { // else log is above that level
		log = quieter
	}
	return slog.New(zapslog.NewHandler(log, zapslog.AddStacktraceAt(math.MaxInt)))
}

// Run discovers targets until ctx ends, and calls apply with every changed set, never twice at once. It returns when
// apply will not be called again. A manager runs once.
func (m *Manager) Run(ctx context.Context, apply func(Update)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	manager := discovery.NewManager(ctx, m.logger, m.registerer, m.metrics, discovery.Updatert(m.every))
	if manager == nil {
		return errors.New("the registerer has the metrics of another discovery already")
	}
	defer manager.UnregisterMetrics()

	jobs := map[string]discovery.Configs{}
	for _, cfg := range m.cfgs {
		for _, d := range cfg.Discovery {
			if _, isStatic := d.(discovery.StaticConfig); !isStatic {
				d = &premade{Config: d, made: m.made}
			}
			jobs[cfg.JobName] = append(jobs[cfg.JobName], d)
		}
	}
	if err := manager.ApplyConfig(jobs); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = manager.Run() })
	defer running.Wait()

	m.follow(ctx, manager.SyncCh(), apply)
	return nil
}

// follow hands on the updates until the channel is closed, which it is when ctx ends.
func (m *Manager) follow(ctx context.Context, found <-chan map[string][]*targetgroup.Group, apply func(Update)) {
	firstLook := time.NewTimer(m.firstLook)
	defer firstLook.Stop()
	var last Update
	for {
		select {
		case groups, open := <-found:
			if !open {
				return
			}
			next := m.update(groups)
			if !next.reuse(last) && ctx.Err() == nil {
				apply(next)
				last = next
			}
		case <-firstLook.C:
			m.warnOfNothing(last)
		}
	}
}

// warnOfNothing names the jobs that have found nothing.
func (m *Manager) warnOfNothing(last Update) {
	for i, cfg := range m.cfgs {
		if i >= len(last.Jobs) || last.Jobs[i].Discovered == 0 {
			m.logger.Warn("discovery found no targets", "job", cfg.JobName, "after", m.firstLook)
		}
	}
}

func (m *Manager) update(groups map[string][]*targetgroup.Group) Update {
	var u Update
	for i, cfg := range m.cfgs {
		targets, report := cfg.group(groups[cfg.JobName], m.memos[i])
		u.Targets = append(u.Targets, targets...)
		u.Jobs = append(u.Jobs, report)
	}
	return u
}

// reuse puts the unchanged targets of an earlier update in the place of their equals, so that unchanged targets stay
// the same by their pointers. It reports whether the updates are equal.
func (u *Update) reuse(last Update) bool {
	known := make(map[string]*Target, len(last.Targets))
	for _, t := range last.Targets {
		known[t.Key] = t
	}
	same := 0
	for i, t := range u.Targets {
		if old := known[t.Key]; old != nil && old.equal(t) {
			u.Targets[i] = old
			same++
		}
	}
	if same != len(u.Targets) || same != len(last.Targets) || len(u.Jobs) != len(last.Jobs) {
		return false
	}
	for i, report := range u.Jobs {
		if !report.equal(last.Jobs[i]) {
			return false
		}
	}
	return true
}

// discoverers are known by the pointers that their configurations are.
type discoverers map[discovery.Config]discovery.Discoverer

// premade is a discovery that has been made already. Two of equal configurations are deeply equal, so that Prometheus'
// manager runs one for both of two jobs.
type premade struct {
	discovery.Config

	made discoverers
}

// NewDiscoverer gives what NewManager made.
func (p *premade) NewDiscoverer(discovery.DiscovererOptions) (discovery.Discoverer, error) {
	return p.made[p.Config], nil
}
