// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlplayouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/otlpprofilesreceiver/internal/metadata"
)

// otlpReceiver passes on what its two servers receive.
type otlpReceiver struct {
	cfg     *Config
	set     receiver.Settings
	next    xconsumer.Profiles
	metrics *metadata.TelemetryBuilder

	// logged are the senders of old layouts that were logged.
	mu     sync.Mutex
	logged map[oldSender]struct{}

	grpc *httpserver.GRPC
	http *httpserver.Server
	// addresses are those of the started servers, by protocol.
	addresses map[string]net.Addr
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (*otlpReceiver, error) {
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &otlpReceiver{
		cfg: cfg, set: set, next: next, metrics: metrics,
		logged: map[oldSender]struct{}{}, addresses: map[string]net.Addr{},
	}, nil
}

// Start starts both servers, or none.
func (r *otlpReceiver) Start(ctx context.Context, host component.Host) error {
	options := httpserver.Options{
		DrainTimeout: r.cfg.DrainTimeout,
		OnFailure: func(err error) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		},
	}
	var err error
	if cfg := r.cfg.Protocols.GRPC.Get(); cfg != nil {
		if err = r.startGRPC(ctx, host, cfg, options); err != nil {
			err = fmt.Errorf("start `grpc`: %w", err)
		}
	}
	if cfg := r.cfg.Protocols.HTTP.Get(); cfg != nil && err == nil {
		if err = r.startHTTP(ctx, host, cfg, options); err != nil {
			err = fmt.Errorf("start `http`: %w", err)
		}
	}
	if err != nil {
		return errors.Join(err, r.Shutdown(ctx))
	}
	return nil
}

// Shutdown answers the requests under way, for at most the drain timeout, and stops both servers.
func (r *otlpReceiver) Shutdown(ctx context.Context) error {
	var stopping sync.WaitGroup
	var errGRPC, errHTTP error
	if r.grpc != nil {
		stopping.Go(func() { errGRPC = r.grpc.Shutdown(ctx) })
	}
	if r.http != nil {
		stopping.Go(func() { errHTTP = r.http.Shutdown(ctx) })
	}
	stopping.Wait()
	return errors.Join(errGRPC, errHTTP)
}

// The formats of requests, as the Collector's traces name them.
const (
	formatProtobuf = "protobuf"
	formatJSON     = "json"
)

type unmarshaler = func([]byte, *pdatasize.Meter) (pprofile.Profiles, otlplayouts.Stats, error)

// reading configures how one request is read.
type reading struct {
	obsreport *receiverhelper.ObsReport
	unmarshal unmarshaler
	format    string
}

func (r *otlpReceiver) newReading(transport string, unmarshal unmarshaler, format string) (reading, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.set.ID, Transport: transport, ReceiverCreateSettings: r.set,
	})
	return reading{obsreport: obsreport, unmarshal: unmarshal, format: format}, err
}

// versionHeader states the layout of a request, if the sender is new enough (opentelemetry-proto, docs/specification.md,
// Profiles development version). Version 1 is today's. Senders of any age may leave it out.
const versionHeader = "otlp-profiles-development-version"

// checkVersion returns an error unless the header's value is a known version. isStated is false if there is no value.
func checkVersion(values []string) (isStated bool, err error) {
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) > 1:
		return true, fmt.Errorf("%s must have one value, found %d", versionHeader, len(values))
	case values[0] != "1":
		return true, fmt.Errorf("%s: version %.20q is not supported here, only 1 and older layouts without this header: upgrade this collector",
			versionHeader, values[0])
	}
	return true, nil
}

// expectedFactor is how many times its bytes a request usually takes as profiles, at most.
const expectedFactor = 10

// deliver reads a request and passes its profiles on. It changes data. versions are the values of the version header, and claim
// holds the size of data. The error is permanent if the request itself is at fault. If samples were dropped, partial describes
// them to the sender.
func (r *otlpReceiver) deliver(ctx context.Context, how reading, claim *budget.Claim, versions []string, data []byte) (partial pprofileotlp.ExportResponse, err error) {
	partial = pprofileotlp.NewExportResponse()
	isCurrent, err := checkVersion(versions)
	if err != nil {
		return partial, consumererror.NewPermanent(err)
	}
	unmarshal := how.unmarshal
	if isCurrent && how.format == formatProtobuf {
		unmarshal = otlplayouts.UnmarshalCurrent
	}
	var profiles pprofile.Profiles
	var stats otlplayouts.Stats
	err = claim.Build(ctx, expectedFactor*int64(len(data)), func(reserve pdatasize.Reserve) (err error) {
		profiles, stats, err = unmarshal(data, &pdatasize.Meter{Context: ctx, Reserve: reserve})
		return err
	})
	if errors.Is(err, budget.ErrBusy) || ctx.Err() != nil {
		return partial, err
	}
	if err == nil {
		claim.DropBody()
		claim.Built(int64(pdatasize.OfProfiles(profiles))) // the pipeline may hold them for a while
	}
	r.count(ctx, &stats)
	if stats.Layout != otlplayouts.Current {
		r.logOldSender(ctx, stats.Layout)
	}
	if err != nil {
		return partial, consumererror.NewPermanent(fmt.Errorf("read OTLP profiles, by its fields of opentelemetry-proto %s: %w", stats.Layout, err))
	}
	if rejected := stats.Rejected(); rejected != "" {
		partial.PartialSuccess().SetRejectedProfiles(int64(stats.RejectedProfiles))
		partial.PartialSuccess().SetErrorMessage(rejected)
	}
	if profiles.ResourceProfiles().Len() == 0 {
		return partial, nil
	}
	ctx = how.obsreport.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err = r.next.ConsumeProfiles(ctx, profiles)
	how.obsreport.EndProfilesOp(ctx, how.format, samples, err)
	return partial, err
}

// count counts what was read of a request.
func (r *otlpReceiver) count(ctx context.Context, stats *otlplayouts.Stats) {
	with := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
	}
	r.metrics.ReceiverOtlpProfilesRequests.Add(ctx, 1, with("layout", stats.Layout.String()))
	if stats.Ambiguous {
		r.metrics.ReceiverOtlpProfilesAmbiguousRequests.Add(ctx, 1)
	}
	for reason, n := range stats.Dropped {
		if n > 0 {
			r.metrics.ReceiverOtlpProfilesDroppedSamples.Add(ctx, int64(n), with("reason", otlplayouts.DropReason(reason).String()))
		}
	}
	for fault, n := range stats.Repaired {
		if n > 0 {
			r.metrics.ReceiverOtlpProfilesRepaired.Add(ctx, int64(n), with("fault", otlplayouts.Repair(fault).String()))
		}
	}
}

// oldSender is a sender of an old layout.
type oldSender struct {
	host   string
	layout otlplayouts.Layout
}

// maxOldSenders bounds the senders that are remembered. Further ones are not logged.
const maxOldSenders = 1000

// logOldSender logs a sender of an old layout, once.
func (r *otlpReceiver) logOldSender(ctx context.Context, layout otlplayouts.Layout) {
	sender := oldSender{host: "unknown", layout: layout}
	if addr := client.FromContext(ctx).Addr; addr != nil {
		sender.host = addr.String()
		if host, _, err := net.SplitHostPort(sender.host); err == nil {
			sender.host = host
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.logged[sender]; known || len(r.logged) >= maxOldSenders {
		return
	}
	r.logged[sender] = struct{}{}
	r.set.Logger.Warn("a sender uses an old layout of OTLP profiles; its profiles are accepted, but upgrade it",
		zap.String("sender", sender.host), zap.Stringer("opentelemetry_proto", layout))
}
