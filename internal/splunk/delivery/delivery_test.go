// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/metric/noop"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// request makes a request of records with these bodies; those that begin with "log" are no profiles.
func request(bodies ...string) plog.Logs {
	ld := plog.NewLogs()
	sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for _, body := range bodies {
		record := sl.LogRecords().AppendEmpty()
		record.Body().SetStr(body)
		if !strings.HasPrefix(body, "log") {
			record.Attributes().PutStr("com.splunk.sourcetype", "otel.profiling")
		}
	}
	ld.MarkReadOnly()
	return ld
}

const stack = "\n\nat f(x:1)"

// order notes what was delivered.
type order []string

func (o *order) path(t *testing.T, profiles, logs error) *Path {
	t.Helper()
	none := noop.Int64Counter{}
	metrics := &Metrics{Records: none, Profiles: none, Samples: none, Rejected: none, Dropped: none, Repaired: none}
	return &Path{
		Metrics: metrics,
		Options: records.Options{Limits: scan.Limits{MaxProfileBytes: 1 << 20}},
		Budget:  budget.Process(),
		Profiles: func(context.Context, pprofile.Profiles) error {
			*o = append(*o, "profiles")
			return profiles
		},
		Logs: func(_ context.Context, ld plog.Logs) error {
			*o = append(*o, fmt.Sprintf("%d logs", ld.LogRecordCount()))
			return logs
		},
	}
}

func TestProfilesGoFirst(t *testing.T) {
	var o order
	report, err := o.path(t, nil, nil).Deliver(t.Context(), request("log 1", stack, "log 2"), budget.New(1<<30).Begin())
	require.NoError(t, err)
	assert.Equal(t, Report{}, report)
	assert.Equal(t, order{"profiles", "2 logs"}, o)
}

// While the pipeline has the profiles, the budget has their size.
func TestProfilesAreCharged(t *testing.T) {
	var bodies []string
	unpacked := 0
	for i := range 100 {
		bodies = append(bodies, fmt.Sprintf("\n\nat f%d(x:1)", i))
		unpacked += len(bodies[i])
	}
	budget := budget.New(1 << 30)
	reservation := budget.Begin()
	require.NoError(t, reservation.Reserve(t.Context(), 1000))
	path := new(order).path(t, nil, nil)
	path.Profiles = func(_ context.Context, pd pprofile.Profiles) error {
		size := pdatasize.OfProfiles(pd)
		assert.Greater(t, size, 10*unpacked)
		assert.EqualValues(t, 1000+size, budget.HeldBytes())
		return nil
	}
	_, err := path.Deliver(t.Context(), request(bodies...), reservation)
	require.NoError(t, err)
	reservation.Release()
	assert.Zero(t, budget.HeldBytes())
}

// The path refuses a small body that unpacks to more than the whole budget, with a permanent error.
func TestUnpackedBodiesAreCharged(t *testing.T) {
	delivered := new(order)
	path := delivered.path(t, nil, nil)
	path.Options.Limits.MaxProfileBytes, path.Budget = 32<<20, budget.New(4<<20)
	reservation := path.Budget.Begin()
	defer reservation.Release()
	bomb := base64.StdEncoding.EncodeToString(profiletest.Gzip(make([]byte, 16<<20)))
	_, err := path.Deliver(t.Context(), request(bomb, "log"), reservation)
	require.ErrorContains(t, err, "would take 16778240 bytes of memory")
	assert.True(t, consumererror.IsPermanent(err))
	assert.Empty(t, *delivered)
}

// If the profiles are refused temporarily, the logs are not passed on: the sender will send both again.
func TestRefusalForNowStops(t *testing.T) {
	var o order
	later := errors.New("later")
	_, err := o.path(t, later, nil).Deliver(t.Context(), request("log 1", stack), budget.New(1<<30).Begin())
	assert.ErrorIs(t, err, later)
	assert.False(t, otlpstatus.IsPermanent(err))
	assert.Equal(t, order{"profiles"}, o)
}

func TestRefusalForGood(t *testing.T) {
	never := consumererror.NewPermanent(errors.New("never"))
	for name, tc := range map[string]struct {
		profiles, logs error
		bodies         []string
		report         Report
		permanent      bool
	}{
		"of all there was": {never, nil, []string{stack}, Report{}, true},
		"of both":          {never, never, []string{stack, "log"}, Report{}, true},
		"of later profiles": {never, nil, []string{"log", "bad", "log", stack, stack}, Report{Rejected: 3, First: 1,
			Message: "record 1: no line of the text is a stack frame; the profiles were refused: never"}, false},
		"of the last": {never, nil, []string{"log", "log", stack},
			Report{Rejected: 1, First: 2, Message: "the profiles were refused: never"}, false},
		"of the profiles": {never, nil, []string{stack, "log", stack},
			Report{Rejected: 2, First: 0, Message: "the profiles were refused: never"}, false},
		"of the logs": {nil, never, []string{stack, "log"},
			Report{Rejected: 1, First: 1, Message: "the records without a profile were refused: never"}, false},
		"and one that is bad": {never, nil, []string{"log", stack, "bad"}, Report{Rejected: 2, First: 1,
			Message: "record 2: no line of the text is a stack frame; the profiles were refused: never"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var o order
			report, err := o.path(t, tc.profiles, tc.logs).Deliver(t.Context(), request(tc.bodies...), budget.New(1<<30).Begin())
			assert.Equal(t, tc.permanent, otlpstatus.IsPermanent(err), err)
			assert.Equal(t, tc.report, report)
		})
	}
}

// An error that is marked as not retryable is permanent.
func TestReportIsBounded(t *testing.T) {
	var o order
	report, err := o.path(t, nil, nil).Deliver(t.Context(),
		request(append([]string{stack}, strings.Split(strings.Repeat("bad,", 99)+"bad", ",")...)...),
		budget.New(1<<30).Begin())
	require.NoError(t, err)
	assert.Equal(t, 100, report.Rejected)
	assert.Equal(t, 1, report.First)
	assert.Equal(t, maxReasons, strings.Count(report.Message, "no line of the text"))
	assert.True(t, strings.HasSuffix(report.Message, "; and 95 more"), report.Message)
}

func TestWithoutALogsPipeline(t *testing.T) {
	var o order
	path := o.path(t, nil, nil)
	path.Logs = nil
	report, err := path.Deliver(t.Context(), request(stack, "log", "log"), budget.New(1<<30).Begin())
	require.NoError(t, err)
	assert.Equal(t, 2, report.Rejected)
	assert.Equal(t, 1, report.First)
	path.IgnoreOthers = true
	report, err = path.Deliver(t.Context(), request(stack, "log", "log"), budget.New(1<<30).Begin())
	require.NoError(t, err)
	assert.Equal(t, Report{}, report)
}
