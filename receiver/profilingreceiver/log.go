// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The profiler logs an error with a stack trace for each process that one of its parts cannot read: hundreds a minute on a busy
// machine. limitedCore passes on logLines warnings and errors in each logPeriod, without traces, and always the reason for which
// the profiler ends the process. At the level debug it passes on all of them.
const (
	logLines  = 10
	logPeriod = time.Minute
)

// unsupportedGo is part of an error that the profiler logs for each program of a Go version that it does not know the labels of. Frames
// do not depend on that: docs/ebpf.md describes it, and it is no error of the machine.
const unsupportedGo = ": unsupported Go version "

// fatalFunction is the profiler's function that logs an error and ends the process. Errors come with their stack.
const fatalFunction = "ebpf-profiler/internal/log.Fatalf"

// limitLog returns a logger with the limit.
func limitLog(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		if core.Enabled(zapcore.DebugLevel) {
			return core
		}
		return limitedCore{core, &logWindow{}}
	}))
}

type limitedCore struct {
	zapcore.Core
	window *logWindow
}

// logWindow counts the lines of a period.
type logWindow struct {
	mu    sync.Mutex
	began time.Time
	lines int
}

// add counts a line, and returns how many lines its period has had.
func (w *logWindow) add(at time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.Sub(w.began) >= logPeriod {
		w.began, w.lines = at, 0
	}
	w.lines++
	return w.lines
}

// With returns a core with fields that shares the limit.
func (c limitedCore) With(fields []zapcore.Field) zapcore.Core {
	return limitedCore{c.Core.With(fields), c.window}
}

// Check adds this core to the entry, so that Write is called.
func (c limitedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write writes the entry if it is within the limit.
func (c limitedCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if entry.Level < zapcore.WarnLevel {
		return c.Core.Write(entry, fields)
	}
	if strings.Contains(entry.Message, unsupportedGo) {
		return nil
	}
	lines := c.window.add(entry.Time)
	if lines > logLines && !strings.Contains(entry.Stack, fatalFunction) {
		return nil
	}
	entry.Stack = ""
	if lines == logLines {
		fields = append(fields, zap.Duration("suppressing_more_for", logPeriod))
	}
	return c.Core.Write(entry, fields)
}
