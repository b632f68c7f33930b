// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/hot"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// pointsPerMessage bounds a message of metrics, so that it stays below the 4 MiB that gRPC servers accept by default.
const pointsPerMessage = 2000

type profileMetrics struct {
	id      component.ID
	config  *Config
	logger  *zap.Logger
	next    consumer.Metrics
	metrics *metrics
	now     func() time.Time
	// reducers are not shared: messages are read side by side.
	reducers sync.Pool

	mu    sync.Mutex
	table *series.Table
	// functions are those with the largest shares, history has what is kept of them across restarts.
	functions *hot.Functions
	history   storage.Client
	writer    string
	// flushing keeps a flush from sending what another one is sending.
	flushing sync.Mutex
	// refusals and failedSaves log when the pipeline begins to refuse metrics, and the storage the history.
	refusals, failedSaves telemetry.Changes

	// stop ends the ticker and the flush that it has begun; done is closed when both have ended.
	stop context.CancelFunc
	done chan struct{}
}

func newConnector(
	set connector.Settings, config *Config, next consumer.Metrics, now func() time.Time,
) (*profileMetrics, error) {
	selected, err := config.set()
	if err != nil {
		return nil, err
	}
	writer := config.WriterID
	if v, ok := set.Resource.Attributes().Get("service.instance.id"); ok && writer == "" {
		writer = v.AsString()
	}
	c := &profileMetrics{
		config: config, id: set.ID, logger: set.Logger, next: next, now: now, stop: func() {},
		refusals: telemetry.Changes{Logger: set.Logger,
			Failed: "the metrics pipeline refused points; suppressing repeats until it accepts " +
				"all of them. Points that it refused permanently are lost if `temporality` is delta; the others are sent again"},
		failedSaves: telemetry.Changes{Logger: set.Logger,
			Failed: "the history of functions cannot be stored; trying again, and suppressing " +
				"repeats until it can. A restart loses what is not stored"},
	}
	sums, functions := config.topFunctions()
	c.functions, c.writer = hot.New(functions), writer
	options := reduce.Options{Set: selected, Hot: sums, ResourceKeys: config.ResourceAttributes,
		MaxAdditions: config.MaxSeries}
	c.reducers.New = func() any { return reduce.New(options) }
	alternating := telemetry.Limits{Lines: 1, Period: time.Minute, Level: zap.WarnLevel}.Apply(set.Logger)
	c.table = series.New(series.Options{
		Alternates: func(keys, values []string) {
			attributes := pcommon.NewMap()
			series.PutAttributes(attributes, keys, values)
			alternating.Warn(kind.Alternates, zap.Any("resource", attributes.AsRaw()))
		},
		Set: selected, MaxSeries: config.MaxSeries, MaxBytes: config.seriesBytes(), Expiry: config.SeriesExpiry,
		Cumulative: config.Temporality == temporalityCumulative, Writer: writer,
	}, now())
	if c.metrics, err = newMetrics(set.TelemetrySettings, set.ID, c); err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	return c, nil
}

// Capabilities reports that profiles are only read, so that pipelines can share them.
func (*profileMetrics) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start restores the history of functions, and begins to send metrics.
func (c *profileMetrics) Start(ctx context.Context, host component.Host) error {
	if err := c.openHistory(ctx, host); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	c.stop, c.done = stop, make(chan struct{})
	go func() {
		defer close(c.done)
		worker.Every(running, c.config.Interval, c.config.Interval, func() { c.flush(running) })
	}()
	return nil
}

// Shutdown sends what has arrived since the last interval, and ends the gauges. It stores the history even if the
// metrics pipeline does not answer in time.
func (c *profileMetrics) Shutdown(ctx context.Context) error {
	sending, whole, cancel := shutdown.Drain(ctx)
	defer cancel()
	c.stop()
	if c.done != nil { // it was started
		select {
		case <-c.done:
		case <-whole.Done():
			return errors.New("the metrics pipeline did not end a message when it was asked to")
		}
	}
	c.flush(sending)
	c.endGauges(sending)
	err := c.closeHistory(whole)
	c.metrics.Shutdown()
	return err
}

// ConsumeProfiles adds a message to the series. It never refuses one: what cannot be counted would not be counted the
// next time.
func (c *profileMetrics) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	reducer := c.reducers.Get().(*reduce.Reducer)
	result := reducer.Reduce(pd)
	c.mu.Lock()
	now := c.now()
	c.table.Add(result, now)
	c.functions.Add(result, now)
	c.mu.Unlock()
	c.metrics.count(ctx, result)
	reducer.Forget()
	c.reducers.Put(reducer)
	return nil
}

// leastSendTime is how long the metrics pipeline has at least for the points of an interval.
const leastSendTime = time.Minute

// flush sends the points of an interval. Points that the pipeline refuses for now, or does not accept in time, are sent
// again, with what arrives until then, by the next flush.
func (c *profileMetrics) flush(ctx context.Context) {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	c.sendAll(ctx)
	c.saveHistory(ctx)
}

func (c *profileMetrics) sendAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(c.config.Interval, leastSendTime))
	defer cancel()
	now := c.now()
	c.mu.Lock()
	points := c.table.Points(now)
	c.mu.Unlock()
	var refused error
	for part := range slices.Chunk(points, pointsPerMessage) {
		c.mu.Lock()
		md := c.table.Write(part, metadata.ScopeName, now)
		c.mu.Unlock()
		err := c.send(ctx, md)
		refused = cmp.Or(err, refused)
		if err == nil || otlpstatus.IsPermanent(err) {
			c.mu.Lock()
			c.table.Sent(part, now)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.table.Expire(now)
	c.functions.Advance(now)
	gauges := c.functions.Write(metadata.ScopeName, c.writer, pointsPerMessage, now)
	c.mu.Unlock()
	for _, md := range gauges { // the next ones have the same shares, or newer ones
		refused = cmp.Or(c.send(ctx, md), refused)
	}
	c.refusals.Note("refused", refused)
}

// endGauges sends that gauges have no values any more. Otherwise Prometheus adds them for five minutes to those of the
// next process, which are series of another writer.
func (c *profileMetrics) endGauges(ctx context.Context) {
	now := c.now().Add(time.Millisecond) // after the last values
	c.mu.Lock()
	messages := c.functions.Write(metadata.ScopeName, c.writer, pointsPerMessage, now)
	for points := range slices.Chunk(c.table.Points(now), pointsPerMessage) {
		messages = append(messages, c.table.Write(points, metadata.ScopeName, now))
	}
	c.mu.Unlock()
	for _, md := range messages {
		if keepEnds(md); md.DataPointCount() > 0 {
			_ = c.send(ctx, md) // the last flush has logged what is refused
		}
	}
}

// keepEnds leaves the gauges of a message, without their values.
func keepEnds(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Type() != pmetric.MetricTypeGauge })
			for _, m := range sm.Metrics().All() {
				for _, dp := range m.Gauge().DataPoints().All() {
					dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
					dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
				}
			}
		}
	}
}

// send sends a message, and counts its points by what becomes of them.
func (c *profileMetrics) send(ctx context.Context, md pmetric.Metrics) error {
	n, outcome := md.DataPointCount(), "accepted"
	err := c.next.ConsumeMetrics(ctx, md)
	if otlpstatus.IsPermanent(err) {
		outcome = "refused"
	} else if err != nil {
		outcome = "retried"
	}
	c.metrics.ConnectorProfileMetricsPoints.Add(ctx, int64(n),
		telemetry.Attributes("connector", c.id.String(), "outcome", outcome))
	return err
}
