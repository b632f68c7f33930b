// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/hot"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/safestorage"
)

// openHistory restores what the storage has of functions. What cannot be read is logged, and its comparisons begin
// anew.
func (c *profileMetrics) openHistory(ctx context.Context, host component.Host) (err error) {
	if c.history, err = safestorage.Open(ctx, host, c.config.Storage, component.KindConnector, c.id,
		"functions"); err != nil {
		return err
	}
	if err := c.restore(ctx); err != nil {
		return errors.Join(fmt.Errorf("read the history of functions: %w", err), c.history.Close(ctx))
	}
	return nil
}

func (c *profileMetrics) restore(ctx context.Context) error {
	before, err := c.history.Get(ctx, hot.SettingsKey)
	if err != nil {
		return err
	}
	settings, obsolete, err := c.functions.Settings(before)
	c.warnUnreadable(err)
	for _, key := range obsolete {
		if err := c.history.Delete(ctx, key); err != nil {
			return err
		}
	}
	if err := c.history.Set(ctx, hot.SettingsKey, settings); err != nil {
		return err
	}
	for _, record := range c.functions.Wanted(c.now()) {
		if record.Value, err = c.history.Get(ctx, record.Key); err != nil {
			return err
		}
		if record.Value != nil {
			c.warnUnreadable(c.functions.Restore(record, c.now()))
		}
	}
	return nil
}

func (c *profileMetrics) warnUnreadable(err error) {
	if err != nil {
		c.logger.Warn("the storage has a record that cannot be read; comparisons with its window begin anew", zap.Error(err))
	}
}

// saveHistory writes the windows that have ended. What cannot be written is tried again by the next flush. The end of a
// flush whose time is up leaves them to closeHistory.
func (c *profileMetrics) saveHistory(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	records := c.functions.Records()
	c.mu.Unlock()
	var failed error
	for _, record := range records {
		if err := c.history.Set(ctx, record.Key, record.Value); err != nil {
			failed = err
			c.metrics.ConnectorProfileMetricsFailedSaves.Add(ctx, 1, c.metrics.own)
			c.mu.Lock()
			c.functions.Missing(record)
			c.mu.Unlock()
		}
	}
	if len(records) > 0 {
		c.failedSaves.Note("not stored", failed)
	}
}

// closeHistory stores the windows that are under way, too: after a restart they go on.
func (c *profileMetrics) closeHistory(ctx context.Context) error {
	if c.history == nil { // it was not started
		return nil
	}
	c.mu.Lock()
	c.functions.End()
	c.mu.Unlock()
	c.saveHistory(ctx)
	return c.history.Close(ctx)
}
