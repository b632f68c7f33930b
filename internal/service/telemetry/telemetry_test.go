// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

func TestChanges(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	c := Changes{Logger: zap.New(core), Failed: "cannot", Recovered: "can again"}
	down, late := errors.New("down"), errors.New("late")
	for _, step := range []struct {
		state   string
		err     error
		changed bool
		logged  string // "" for nothing
	}{
		{"", nil, false, ""},
		{"down", down, true, "cannot"},
		{"down", down, false, ""},
		{"busy", late, true, "cannot"},
		{"busy", down, false, ""}, // the state decides
		{"ignored", nil, true, "can again"},
		{"", nil, false, ""},
		{"down", down, true, "cannot"},
	} {
		assert.Equal(t, step.changed, c.Note(step.state, step.err, zap.Int("n", 1)))
		lines := logs.TakeAll()
		if step.logged == "" {
			assert.Empty(t, lines)
			continue
		}
		require.Len(t, lines, 1)
		assert.Equal(t, step.logged, lines[0].Message)
		if step.err != nil {
			want := map[string]any{"n": int64(1), "error": step.err.Error()}
			if step.state != step.err.Error() {
				want["reason"] = step.state
			}
			assert.Equal(t, want, lines[0].ContextMap())
		}
	}
	silent := Changes{Logger: zap.New(core), Failed: "cannot"}
	silent.Note("down", down)
	logs.TakeAll()
	assert.True(t, silent.Note("", nil))
	assert.Empty(t, logs.All())
}

func TestOnce(t *testing.T) {
	var o Once[string]
	assert.True(t, o.IsNew("a"))
	assert.False(t, o.IsNew("a"))
	for i := range maxSenders - 1 {
		assert.True(t, o.IsNew(fmt.Sprint(i)))
	}
	assert.False(t, o.IsNew("one too many"))
}

type color int

func (c color) String() string { return []string{"red", "green", "blue"}[c] }

func TestAddEach(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(t.Context())) }()
	counter, err := telemetry.NewTelemetrySettings().MeterProvider.Meter("test").Int64Counter("balls")
	require.NoError(t, err)
	AddEach[color](t.Context(), counter, "color", []int{2, 0, 3})
	AddEach[color](t.Context(), counter, "color", []int{1, 0, 0})
	assert.EqualValues(t, 3, collectortest.Sum(t, telemetry, "balls", "color", "red"))
	assert.EqualValues(t, 3, collectortest.Sum(t, telemetry, "balls", "color", "blue"))
	assert.EqualValues(t, 6, collectortest.Sum(t, telemetry, "balls"))
}

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
