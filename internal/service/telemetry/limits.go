// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limits bound the lines of a logger, where one cause can have a line for each of thousands of targets or processes.
type Limits struct {
	// Lines is how many entries of Level or above are written in each Period. The last of them says that more are
	// suppressed, and the first of the next period how many were.
	Lines  int
	Period time.Duration
	Level  zapcore.Level
	// Admit, if set, reports whether an entry of Level or above may be written at all. It may change the entry.
	Admit func(*zapcore.Entry) bool
}

// Apply returns a logger with the limits.
func (l Limits) Apply(logger *zap.Logger) *zap.Logger {
	var mu sync.Mutex
	var began time.Time // of the period
	lines := 0          // of the period
	return Rewrite(logger, func(entry *zapcore.Entry, fields []zapcore.Field) ([]zapcore.Field, bool) {
		if entry.Level < l.Level {
			return fields, true
		}
		if l.Admit != nil && !l.Admit(entry) {
			return nil, false
		}
		mu.Lock()
		defer mu.Unlock()
		if entry.Time.Sub(began) >= l.Period {
			if lines > l.Lines {
				fields = append(fields, zap.Int("suppressed_before", lines-l.Lines))
			}
			began, lines = entry.Time, 0
		}
		lines++
		if lines == l.Lines {
			fields = append(fields, zap.Duration("suppressing_more_for", l.Period))
		}
		return fields, lines <= l.Lines
	})
}

// Rewrite returns a logger whose entries pass through change, which may change an entry and its fields, and reports
// whether it is written.
func Rewrite(logger *zap.Logger, change func(*zapcore.Entry, []zapcore.Field) ([]zapcore.Field, bool)) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return rewriting{core, change} }))
}

type rewriting struct {
	zapcore.Core
	change func(*zapcore.Entry, []zapcore.Field) ([]zapcore.Field, bool)
}

// With returns a core with fields.
func (c rewriting) With(fields []zapcore.Field) zapcore.Core {
	c.Core = c.Core.With(fields)
	return c
}

// Check adds this core to the entry, so that Write is called.
func (c rewriting) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write writes the entry as it was changed, if its level is still enabled.
func (c rewriting) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	fields, ok := c.change(&entry, fields)
	if !ok {
		return nil
	}
	if checked := c.Core.Check(entry, nil); checked != nil {
		checked.Write(fields...)
	}
	return nil
}
