// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// The profiler logs an error with a stack trace for each process that one of its parts cannot read: hundreds a minute
// on a busy machine. limitLog passes on logLines warnings and errors in each logPeriod, without traces. At the level
// debug it passes on all of them.
const (
	logLines  = 10
	logPeriod = time.Minute
)

// unsupportedGo is part of an error that the profiler logs for each program of a Go version that it does not know the
// labels of. Frames do not depend on that: docs/ebpf.md describes it, and it is no error of the machine.
const unsupportedGo = ": unsupported Go version "

func limitLog(logger *zap.Logger) *zap.Logger {
	if logger.Core().Enabled(zapcore.DebugLevel) {
		return logger
	}
	limits := telemetry.Limits{Lines: logLines, Period: logPeriod, Level: zapcore.WarnLevel,
		Admit: func(entry *zapcore.Entry) bool {
			entry.Stack = ""
			return !strings.Contains(entry.Message, unsupportedGo)
		}}
	return limits.Apply(logger)
}
