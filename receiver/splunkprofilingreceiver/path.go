// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
)

// newPath makes the way from one server to the pipelines, with the Collector's standard metrics of receivers on it.
func (r *splunkReceiver) newPath(transport string) (*splunkdelivery.Path, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.set.ID, Transport: transport, ReceiverCreateSettings: r.set,
	})
	if err != nil {
		return nil, err
	}
	const format = "splunk"
	path := &splunkdelivery.Path{Options: r.cfg.Translation.Options(), Metrics: r.metrics, Budget: admission.Process()}
	path.Profiles = func(ctx context.Context, pd pprofile.Profiles) error {
		ctx = obsreport.StartProfilesOp(ctx)
		samples := pd.SampleCount()
		err := r.profiles.ConsumeProfiles(ctx, pd)
		obsreport.EndProfilesOp(ctx, format, samples, err)
		return err
	}
	if r.logs != nil {
		path.Logs = func(ctx context.Context, ld plog.Logs) error {
			ctx = obsreport.StartLogsOp(ctx)
			records := ld.LogRecordCount()
			err := r.logs.ConsumeLogs(ctx, ld)
			obsreport.EndLogsOp(ctx, format, records, err)
			return err
		}
	}
	return path, nil
}
