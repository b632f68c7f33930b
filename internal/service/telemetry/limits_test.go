// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// at is a clock.
type at struct{ time.Time }

func (a *at) Now() time.Time                         { return a.Time }
func (a *at) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

func TestLimits(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	now := &at{time.Unix(1e9, 0)}
	limits := Limits{Lines: 3, Period: time.Minute, Level: zap.WarnLevel, Admit: func(e *zapcore.Entry) bool {
		return e.Message != "never"
	}}
	logger := limits.Apply(zap.New(core, zap.WithClock(now)))
	for i := range 10 {
		logger.With(zap.Int("target", i)).Warn("failed")
		logger.Warn("never")
		logger.Info("usual")
	}
	require.Equal(t, 3, lines.FilterMessage("failed").Len())
	assert.Equal(t, 10, lines.FilterMessage("usual").Len())
	assert.Zero(t, lines.FilterMessage("never").Len())
	assert.Equal(t, map[string]any{"target": int64(2), "suppressing_more_for": time.Minute},
		lines.FilterMessage("failed").All()[2].ContextMap())

	now.Time = now.Add(time.Minute - 1)
	logger.Warn("failed")
	require.Equal(t, 3, lines.FilterMessage("failed").Len())
	now.Time = now.Add(1)
	logger.Warn("failed")
	logger.Warn("failed")
	all := lines.FilterMessage("failed").All()
	require.Len(t, all, 5)
	assert.Equal(t, map[string]any{"suppressed_before": int64(8)}, all[3].ContextMap())
	assert.Empty(t, all[4].ContextMap())
}
