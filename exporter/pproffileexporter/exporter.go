// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// expireInterval is how often old files are deleted, whether or not anything arrives.
const expireInterval = 10 * time.Second

// fileExporter writes profiles to files. What it embeds is the Collector's queue, with its retries.
type fileExporter struct {
	xexporter.Profiles
	config  *Config
	logger  *zap.Logger
	metrics *metadata.TelemetryBuilder

	files    *writer
	stopping context.CancelFunc
	running  sync.WaitGroup
}

// arrival is the context key for the time when a message arrived.
type arrival struct{}

// ConsumeProfiles passes pd to the queue. All attempts name a profile without a time by the arrival of its message.
func (e *fileExporter) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	return e.Profiles.ConsumeProfiles(context.WithValue(ctx, arrival{}, time.Now()), pd)
}

// write writes the files of pd. A queue on disk does not keep the time of arrival; each attempt uses its own then.
func (e *fileExporter) write(ctx context.Context, pd pprofile.Profiles) error {
	arrived, ok := ctx.Value(arrival{}).(time.Time)
	if !ok {
		arrived = time.Now()
	}
	return e.files.writeAll(ctx, pd, arrived)
}

func (e *fileExporter) start(context.Context, component.Host) (err error) {
	if e.files, err = openWriter(e.config, e.logger, e.metrics); err != nil {
		return err
	}
	stopping, cancel := context.WithCancel(context.Background())
	e.stopping = cancel
	e.running.Go(func() {
		worker.Every(stopping, 0, expireInterval, func() { e.files.expireAt(stopping, time.Now()) })
	})
	return nil
}

// shutdown is called when the queue is empty or given up.
func (e *fileExporter) shutdown(context.Context) error {
	e.metrics.Shutdown()
	if e.files == nil {
		return nil
	}
	e.stopping()
	e.running.Wait()
	return e.files.close()
}
