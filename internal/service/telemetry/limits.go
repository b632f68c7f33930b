// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limits bound what a logger writes, where one cause can have a line for each of thousands of targets or processes.
type Limits struct {
	// Lines is how many entries of Level or above are written in each Period. The last of them tells that more are suppressed, and the
	// first of the next period how many were.
	Lines  int
	Period time.Duration
	Level  zapcore.Level
	// Judge, if set, decides about an entry of Level or above, which it may change.
	Judge func(*zapcore.Entry) Verdict
}

// Verdict is what becomes of an entry.
type Verdict int

// The verdicts.
const (
	Limited Verdict = iota // written within the limits
	Omitted                // not written
	Always                 // written in any case
)

// Apply returns a logger with the limits.
func (l Limits) Apply(logger *zap.Logger) *zap.Logger {
	window := &logWindow{}
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return limitedCore{core, &l, window} }))
}

type limitedCore struct {
	zapcore.Core
	limits *Limits
	window *logWindow
}

// With returns a core with fields that shares the limits.
func (c limitedCore) With(fields []zapcore.Field) zapcore.Core {
	c.Core = c.Core.With(fields)
	return c
}

// Check adds this core to the entry, so that Write is called.
func (c limitedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write writes the entry if it is within the limits.
func (c limitedCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if entry.Level < c.limits.Level {
		return c.Core.Write(entry, fields)
	}
	verdict := Limited
	if c.limits.Judge != nil {
		verdict = c.limits.Judge(&entry)
	}
	if verdict == Omitted {
		return nil
	}
	line, suppressed := c.window.add(entry.Time, c.limits)
	if line > c.limits.Lines && verdict != Always {
		return nil
	}
	if suppressed > 0 {
		fields = append(fields, zap.Int("suppressed_before", suppressed))
	}
	if line == c.limits.Lines {
		fields = append(fields, zap.Duration("suppressing_more_for", c.limits.Period))
	}
	return c.Core.Write(entry, fields)
}

// logWindow counts the lines of a period.
type logWindow struct {
	mu    sync.Mutex
	began time.Time
	lines int
}

// add counts a line. It returns how many lines its period has had and, with the first of them, how many were suppressed before.
func (w *logWindow) add(at time.Time, limits *Limits) (line, suppressed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.Sub(w.began) >= limits.Period {
		suppressed = max(0, w.lines-limits.Lines)
		w.began, w.lines = at, 0
	}
	w.lines++
	return w.lines, suppressed
}
