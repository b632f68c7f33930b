// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/regroup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/servicename"
)

type processResource struct {
	config  *Config
	rules   []servicename.Rule
	logger  *zap.Logger
	next    xconsumer.Profiles
	metrics *metrics

	processes *procfs.Cache[*facts]
	resources *knownResources
	// isFull reports that the last message had processes without a resource of their own, which has been logged.
	isFull atomic.Bool
	// spare holds regroupers for their memory.
	spare sync.Pool
}

func newProcessor(set processor.Settings, config *Config, next xconsumer.Profiles) (*processResource, error) {
	rules, err := compile(config.Rules)
	if err != nil {
		return nil, err
	}
	p := &processResource{
		config: config, rules: rules, logger: set.Logger, next: next,
		resources: newKnownResources(config.MaxResources, config.ResourceTTL),
	}
	options := optionsOf(config)
	p.spare.New = func() any { return regroup.New(options) }
	proc := &config.Proc
	reader := &procfs.Reader{Root: proc.Root, MaxFileBytes: proc.MaxFileBytes, ReadEnvironment: proc.ReadEnvironment,
		ContextKeys: contextKeys(config)}
	read := func(pid int64) (procfs.Process, error) {
		process, err := reader.Read(pid)
		p.metrics.countContext(process.Context.Outcome)
		return process, err
	}
	convert := func(key procfs.Key, process *procfs.Process) *facts { return p.factsOf(key, process).clone() }
	p.processes = procfs.NewCache(
		procfs.Options{MaxProcesses: proc.MaxProcesses, RefreshInterval: proc.RefreshInterval, MaxWait: proc.MaxWait},
		read, convert, func(outcome procfs.Outcome) { p.metrics.countRead(outcome) })
	if p.metrics, err = newMetrics(set.TelemetrySettings, set.ID, p); err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	return p, nil
}

// optionsOf lists the attributes that belong to resources, and those that belong to samples.
func optionsOf(config *Config) (o regroup.Options) {
	o.Move = []string{"container.id"}
	keys := []string{"process.executable.name", "process.executable.path", "process.pid"}
	resources := map[By]int{ByContainer: 0, ByExecutable: 2, ByProcess: 3}[config.By]
	o.Move = append(append(o.Move, keys[:resources]...), config.Attributes...)
	for _, key := range keys[resources:] {
		if !slices.Contains(config.Attributes, key) {
			o.Lower = append(o.Lower, key)
		}
	}
	return o
}

// Capabilities reports that messages change.
func (p *processResource) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Start logs if processes cannot be looked at: their names then come from the samples alone.
func (p *processResource) Start(context.Context, component.Host) error {
	if !p.config.Proc.Enabled {
		return nil
	}
	if err := procfs.Check(p.config.Proc.Root); err != nil {
		p.logger.Warn("cannot read processes; services are named by the attributes of samples alone. "+
			"Set `proc.root` to where the machine's /proc is mounted, or `proc.enabled: false`",
			zap.String("root", p.config.Proc.Root), zap.Error(err))
	}
	return nil
}

// Shutdown waits for processes that are being read.
func (p *processResource) Shutdown(ctx context.Context) error {
	p.metrics.Shutdown()
	return p.processes.Shutdown(ctx)
}

// ConsumeProfiles moves the samples of a message to their resources and passes it on. It returns the next component's
// error.
func (p *processResource) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	var bySource map[Source]int
	regrouper := p.spare.Get().(*regroup.Regrouper)
	stats := regrouper.Regroup(pd, regroup.Group{
		Identify: func(resources []regroup.Resource) { bySource = p.identify(ctx, resources) },
		Admit:    p.resources.admit,
	})
	p.spare.Put(regrouper)
	p.metrics.countSamples(ctx, bySource, stats)
	p.logOthers(stats)
	return p.next.ConsumeProfiles(ctx, pd)
}

// logOthers logs when processes begin to share the resource `other`.
func (p *processResource) logOthers(stats regroup.Stats) {
	isFull := stats.OverResources > 0
	if p.isFull.Swap(isFull) != isFull && isFull {
		p.logger.Warn("there are more resources than `max_resources`; processes of further ones share the service `"+
			regroup.Other+"`", zap.Int("max_resources", p.config.MaxResources))
	}
}
