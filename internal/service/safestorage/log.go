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
)

// What exporterhelper (v0.164) logs about a queue in a storage, and is not so.
const (
	// A queue that is started for the first time has no legacy format to load or migrate.
	loadsLegacy   = "New queue metadata key not found, attempting to load legacy format."
	hasMigrated   = "Successfully migrated to consolidated metadata format"
	dropsData     = "Exporting failed. Dropping data."
	isInterrupted = "interrupted due to shutdown: "
)

// Logger returns a logger for an exporter that corrects what exporterhelper logs about its queue: nothing is said of a legacy format,
// and a message that stays in the storage at the end is not reported as dropped.
func (s *Storages) Logger(id component.ID, logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(inner zapcore.Core) zapcore.Core { return correcting{inner, s, id} }))
}

type correcting struct {
	zapcore.Core
	storages *Storages
	id       component.ID
}

func (c correcting) With(fields []zapcore.Field) zapcore.Core {
	c.Core = c.Core.With(fields)
	return c
}

func (c correcting) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	switch {
	case entry.Message == loadsLegacy, entry.Message == hasMigrated:
		return checked
	case strings.HasPrefix(entry.Message, dropsData):
		return checked.AddCore(entry, c) // its fields decide
	default:
		return c.Core.Check(entry, checked)
	}
}

// Write writes an entry of a message that exporterhelper drops, or leaves in the storage because the collector stops.
func (c correcting) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if c.storages.has(c.id) && slices.ContainsFunc(fields, endsByShutdown) {
		entry.Level, entry.Stack = zapcore.InfoLevel, ""
		entry.Message = "Stopping. A message stays in the queue's storage and is sent after the next start."
		fields = slices.Clone(fields)
		for i := range fields {
			if fields[i].Key == "dropped_items" {
				fields[i].Key = "items"
			}
		}
	}
	if checked := c.Core.Check(entry, nil); checked != nil {
		checked.Write(fields...)
	}
	return nil
}

// endsByShutdown reports whether a field has the error after which the queue keeps an item. Its type is internal to exporterhelper.
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
