// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processesreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/metadata"
)

// sink decodes the profiles of processes, and passes them on.
type sink struct {
	next      xconsumer.Profiles
	obsreport *receiverhelper.ObsReport
	budget    *budget.Budget
	version   string
	timeout   time.Duration
}

func newSink(set receiver.Settings, next xconsumer.Profiles, timeout time.Duration) (*sink, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "memory", ReceiverCreateSettings: set,
	})
	return &sink{next: next, obsreport: obsreport, budget: budget.Process(), version: set.BuildInfo.Version,
		timeout: timeout}, err
}

// profiles are the data of a process: bytes, and the function that decodes them.
type profiles struct {
	// format and name are those of the profiles; an empty name means that scopes have their own.
	format, name string
	bytes        int
	decode       func(*size.Meter) (pprofile.Profiles, error)
	// resource describes the process.
	resource pcommon.Map
}

// expectedFactor is how much memory most profiles take while they are decoded, for each byte.
const expectedFactor = 10

// deliver decodes profiles and passes them on.
func (s *sink) deliver(ctx context.Context, p *profiles) error {
	reservation := s.budget.Begin()
	defer reservation.Release()
	var pd pprofile.Profiles
	err := reservation.Build(ctx, int64(expectedFactor*p.bytes), func(reserve size.Reserve) (err error) {
		pd, err = p.decode(&size.Meter{Context: ctx, Reserve: reserve})
		return err
	})
	if err != nil || pd.SampleCount() == 0 {
		return err
	}
	for _, rp := range pd.ResourceProfiles().All() {
		p.resource.CopyTo(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			sp.Scope().SetName(metadata.ScopeName)
			sp.Scope().SetVersion(s.version)
			if p.name != "" {
				sp.Scope().Attributes().PutStr(kind.NameAttribute, p.name)
			}
		}
	}
	reservation.Built(int64(size.OfProfiles(pd)))
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ctx = s.obsreport.StartProfilesOp(ctx)
	samples := pd.SampleCount()
	err = s.next.ConsumeProfiles(ctx, pd)
	s.obsreport.EndProfilesOp(ctx, p.format, samples, err)
	if err != nil {
		return refusal{err}
	}
	return nil
}

// deliverTotals delivers what has happened since the last profile that the pipeline accepted. The first only begins the
// Baseline, apart from states.
func (s *sink) deliverTotals(ctx context.Context, data []byte, name string, baseline *decode.Baseline,
	resource pcommon.Map) error {
	at := time.Now()
	err := s.deliver(ctx, &profiles{
		format: "pprof", name: name, bytes: len(data), resource: resource,
		decode: func(meter *size.Meter) (pprofile.Profiles, error) {
			pd, _, err := decode.Decode(data, decode.Options{Baseline: baseline, At: at, Meter: meter})
			return pd, err
		},
	})
	if err != nil && !otlpstatus.IsPermanent(err) {
		baseline.Discard()
		return err
	}
	baseline.Commit()
	return err
}
