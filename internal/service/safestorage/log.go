// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package safestorage

import (
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// What exporterhelper (v0.165) logs about a queue in a storage, and is not so.
const (
	// A queue that is started for the first time has no legacy format to load or migrate.
	loadsLegacy   = "New queue metadata key not found, attempting to load legacy format."
	hasMigrated   = "Successfully migrated to consolidated metadata format"
	dropsData     = "Exporting failed. Dropping data."
	isInterrupted = "interrupted due to shutdown: "
)

// Logger returns a logger for an exporter that corrects exporterhelper's log of its queue: the line about a legacy
// format is dropped, and a message that stays in the storage at the end is not reported as dropped.
func (s *Storages) Logger(id component.ID, logger *zap.Logger) *zap.Logger {
	return telemetry.Rewrite(logger, func(entry *zapcore.Entry, fields []zapcore.Field) ([]zapcore.Field, bool) {
		if strings.HasPrefix(entry.Message, dropsData) && s.has(id) && slices.ContainsFunc(fields, endsByShutdown) {
			entry.Level, entry.Stack = zapcore.InfoLevel, ""
			entry.Message = "Stopping. A message stays in the queue's storage and is sent after the next start."
			fields = slices.Clone(fields)
			for i := range fields {
				if fields[i].Key == "dropped_items" {
					fields[i].Key = "items"
				}
			}
		}
		return fields, entry.Message != loadsLegacy && entry.Message != hasMigrated
	})
}

// endsByShutdown reports whether a field has the error after which the queue keeps an item. Its type is internal to
// exporterhelper.
func endsByShutdown(field zapcore.Field) bool {
	for err, _ := field.Interface.(error); err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), isInterrupted) {
			return true
		}
	}
	return false
}

// has reports whether an exporter has a queue in a storage.
func (s *Storages) has(id component.ID) (found bool) {
	s.clients.Range(func(key, _ any) bool {
		found = key.(user).id == id
		return !found
	})
	return found
}
