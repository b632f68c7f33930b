// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// A queue in a storage says nothing of a legacy format when it starts, and does not report as dropped what it keeps
// when it stops. What is dropped is still reported: by a queue in memory, and if the backend refused it.
func TestWhatAQueueLogs(t *testing.T) {
	const kept = "Stopping. A message stays in the queue's storage and is sent after the next start."
	away, refused := errors.New("away"), consumererror.NewPermanent(errors.New("refused"))
	for name, tt := range map[string]struct {
		inMemory bool
		err      error
		wantInfo string
		wantErr  string
	}{
		"kept":              {false, away, kept, ""},
		"refused":           {false, refused, "", dropsData},
		"lost in memory":    {true, away, "", dropsData},
		"refused in memory": {true, refused, "", dropsData},
	} {
		t.Run(name, func(t *testing.T) {
			var storages Storages
			core, logs := observer.New(zap.DebugLevel)
			set := settings
			set.Logger = storages.Logger(set.ID, zap.New(core)).With(zap.String("with", "field"))
			disk := component.MustNewID("disk")
			queue := exporterhelper.NewDefaultQueueConfig()
			if !tt.inMemory {
				queue.StorageID = &disk
			}
			tried := make(chan struct{}, 100)
			retry := configretry.NewDefaultBackOffConfig()
			retry.InitialInterval, retry.MaxElapsedTime = time.Hour, 0
			exporter, err := xexporterhelper.NewProfiles(t.Context(), set, &struct{}{},
				func(context.Context, pprofile.Profiles) error { tried <- struct{}{}; return tt.err },
				exporterhelper.WithRetry(retry),
				xexporterhelper.WithQueueBatch(configoptional.Some(queue), xexporterhelper.NewProfilesQueueBatchSettings()))
			require.NoError(t, err)
			require.NoError(t,
				exporter.Start(t.Context(),
					host{disk: safeExtension{collectortest.NewDisk(nil), &storages, zap.NewNop()}}))
			require.NoError(t, exporter.ConsumeProfiles(t.Context(), message()))
			<-tried
			require.NoError(t, exporter.Shutdown(t.Context()))

			require.Zero(t, logs.FilterMessageSnippet("legacy").Len())
			require.Zero(t, logs.FilterMessage(hasMigrated).Len())
			if tt.wantInfo != "" {
				lines := logs.FilterLevelExact(zap.InfoLevel).FilterMessage(tt.wantInfo).All()
				require.Len(t, lines, 1)
				require.Contains(t, lines[0].ContextMap(), "items")
				require.Equal(t, "field", lines[0].ContextMap()["with"])
			}
			lines := logs.FilterLevelExact(zap.ErrorLevel).All()
			if tt.wantErr == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Equal(t, tt.wantErr, lines[0].Message)
			require.Contains(t, lines[0].ContextMap(), "dropped_items")
		})
	}
}
