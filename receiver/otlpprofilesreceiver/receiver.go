// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/otlpprofilesreceiver/internal/metadata"
)

// otlpReceiver passes on what its servers receive.
type otlpReceiver struct {
	cfg     *Config
	set     receiver.Settings
	metrics *metadata.TelemetryBuilder
	// profiles and logs are the next consumers: nil if the receiver is in no such pipeline.
	profiles xconsumer.Profiles
	logs     consumer.Logs

	// oldSenders are the senders of old layouts that were logged.
	oldSenders telemetry.Once[oldSender]

	servers    otlpserver.Servers
	stopBudget func() error
}

func newReceiver(set receiver.Settings, cfg *Config) (*otlpReceiver, error) {
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &otlpReceiver{cfg: cfg, set: set, metrics: metrics}, nil
}

// Start starts both servers, or none.
func (r *otlpReceiver) Start(ctx context.Context, host component.Host) error {
	env := httpserver.Env{Host: host, Telemetry: r.set.TelemetrySettings}
	var err error
	if r.stopBudget, err = budget.Watch(r.set.TelemetrySettings); err != nil {
		return err
	}
	err = r.servers.StartOTLP(ctx, env, otlpserver.Protocols{
		GRPC: r.cfg.Protocols.GRPC.Get(), HTTP: r.cfg.Protocols.HTTP.Get(), Signals: r.signals,
	})
	if err != nil {
		return errors.Join(err, r.Shutdown(ctx))
	}
	return nil
}

// signals are those that the receiver has pipelines for.
func (r *otlpReceiver) signals(protocol string) (signals []otlpserver.Signal, _ error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.set.ID, Transport: protocol, ReceiverCreateSettings: r.set,
	})
	if err != nil {
		return nil, err
	}
	if r.profiles != nil {
		signals = append(signals, r.profilesSignal(obsreport))
	}
	if r.logs != nil {
		signals = append(signals, r.logsSignal(obsreport))
	}
	return signals, nil
}

// Shutdown answers the requests under way, for at most the drain timeout, and stops both servers.
func (r *otlpReceiver) Shutdown(ctx context.Context) error {
	if r.stopBudget == nil {
		return nil
	}
	return errors.Join(r.servers.Shutdown(ctx), r.stopBudget())
}

// The services and paths that OTLP profiles were sent to. Each accepts every layout.
var (
	services = []string{
		"opentelemetry.proto.collector.profiles.v1development.ProfilesService",
		"opentelemetry.proto.collector.profiles.v1experimental.ProfilesService",
	}
	paths = []string{"/v1development/profiles", "/v1experimental/profiles"}
)

func (r *otlpReceiver) logsSignal(obsreport *receiverhelper.ObsReport) otlpserver.Signal {
	return otlpserver.Logs(func(ctx context.Context, m *otlpserver.Message, ld plog.Logs) (int, string, error) {
		records := ld.LogRecordCount()
		if records == 0 {
			return 0, "", nil
		}
		ctx = obsreport.StartLogsOp(ctx)
		err := r.logs.ConsumeLogs(ctx, ld)
		obsreport.EndLogsOp(ctx, m.Format(), records, err)
		return 0, "", err
	})
}

func (r *otlpReceiver) profilesSignal(obsreport *receiverhelper.ObsReport) otlpserver.Signal {
	return otlpserver.Signal{
		Name: "profiles", Services: services, Paths: paths,
		Export: func(ctx context.Context, m *otlpserver.Message) (otlpserver.Response, error) {
			response := pprofileotlp.NewExportResponse()
			stats, err := r.deliver(ctx, m, obsreport)
			if dropped := stats.DroppedSamples(); dropped > 0 {
				// A number of 0 would say that everything was accepted (OTLP specification, Partial success).
				response.PartialSuccess().SetRejectedProfiles(int64(stats.IncompleteProfiles))
				response.PartialSuccess().
					SetErrorMessage(fmt.Sprintf("%d samples of %d profiles were dropped, since they cannot be read: %s",
						dropped, stats.IncompleteProfiles, httpserver.Reasons[layouts.DropReason](stats.Dropped[:])))
			}
			return response, err
		},
	}
}

// versionHeader states the layout of a request, if the sender is new enough. Senders of any age may leave it out.
const versionHeader = pprofileotlp.DevelopmentVersionHeader

// checkVersion returns an error unless the header's value is pdata's version. isStated is false if there is no value.
func checkVersion(values []string) (isStated bool, err error) {
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) > 1:
		return true, fmt.Errorf("%s must have one value, found %d", versionHeader, len(values))
	case values[0] != pprofileotlp.DevelopmentVersion:
		return true,
			fmt.Errorf("%s: version %.20q is not supported here, only %s and older layouts without this header: upgrade this collector",
				versionHeader, values[0], pprofileotlp.DevelopmentVersion)
	}
	return true, nil
}

// expectedFactor is how many times its bytes a request usually takes as profiles, at most.
const expectedFactor = 10

// deliver reads a request and passes its profiles on.
func (r *otlpReceiver) deliver(ctx context.Context, m *otlpserver.Message,
	obsreport *receiverhelper.ObsReport) (stats layouts.Stats, _ error) {
	isCurrent, err := checkVersion(m.Header(versionHeader))
	if err != nil {
		return stats, otlpserver.BadRequest(err)
	}
	unmarshal := layouts.Unmarshal
	switch {
	case m.IsJSON:
		unmarshal = layouts.UnmarshalJSON
	case isCurrent:
		unmarshal = layouts.UnmarshalCurrent
	}
	var profiles pprofile.Profiles
	err = m.Reservation.Build(ctx, expectedFactor*int64(len(m.Data)), func(reserve size.Reserve) (err error) {
		meter := &size.Meter{Context: ctx, Reserve: reserve}
		if profiles, stats, err = unmarshal(m.Data, meter); err == nil {
			profiles, err = unpack(profiles, meter)
		}
		return err
	})
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, scan.ErrTooLarge):
		return stats, &httpserver.BodyError{Status: http.StatusRequestEntityTooLarge, Err: err}
	case errors.Is(err, budget.ErrBusy) || ctx.Err() != nil:
		return stats, err
	case err == nil:
		m.Reservation.DropBody()
		stats.DropUnreadable(profiles)
		m.Reservation.Built(int64(size.OfProfiles(profiles))) // the pipeline may hold them for a while
	}
	r.count(ctx, &stats)
	if stats.Layout != layouts.Current {
		r.logOldSender(ctx, stats.Layout)
	}
	if err != nil {
		const pprof = "a pprof goes to the receiver pprof, by default on port 4040"
		switch {
		case bytes.HasPrefix(m.Data, []byte("\x1f\x8b")):
			err = fmt.Errorf("%w: it is compressed by gzip, which needs a Content-Encoding; "+pprof, err)
		case formats.Sniff(m.Data) == formats.Pprof:
			err = fmt.Errorf("%w; "+pprof, err)
		case !m.IsJSON && formats.Sniff(m.Data) == formats.OTLPJSON:
			err = fmt.Errorf("%w: it is JSON, whose Content-Type is application/json", err)
		}
		return stats,
			otlpserver.BadRequest(fmt.Errorf("read OTLP profiles, by its fields of opentelemetry-proto %s: %w", stats.Layout,
				err))
	}
	if profiles.ResourceProfiles().Len() == 0 {
		return stats, nil
	}
	ctx = obsreport.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err = r.profiles.ConsumeProfiles(ctx, profiles)
	obsreport.EndProfilesOp(ctx, m.Format(), samples, err)
	return stats, err
}

// count counts the layout and faults of a request.
func (r *otlpReceiver) count(ctx context.Context, stats *layouts.Stats) {
	r.metrics.ReceiverOtlpProfilesRequests.Add(ctx, 1, telemetry.Attributes("layout", stats.Layout.String()))
	if stats.Ambiguous {
		r.metrics.ReceiverOtlpProfilesAmbiguousRequests.Add(ctx, 1)
	}
	telemetry.AddEach[layouts.DropReason](ctx, r.metrics.ReceiverOtlpProfilesDroppedSamples, "reason", stats.Dropped[:])
	telemetry.AddEach[layouts.Repair](ctx, r.metrics.ReceiverOtlpProfilesRepaired, "fault", stats.Repaired[:])
}

type oldSender struct {
	host   string
	layout layouts.Layout
}

// logOldSender logs a sender of an old layout, once.
func (r *otlpReceiver) logOldSender(ctx context.Context, layout layouts.Layout) {
	sender := oldSender{host: "unknown", layout: layout}
	if addr := client.FromContext(ctx).Addr; addr != nil {
		sender.host = addr.String()
		if host, _, err := net.SplitHostPort(sender.host); err == nil {
			sender.host = host
		}
	}
	if !r.oldSenders.IsNew(sender) {
		return
	}
	r.set.Logger.Warn("a sender uses an old layout of OTLP profiles; its profiles are accepted, but upgrade it",
		zap.String("sender", sender.host), zap.Stringer("opentelemetry_proto", layout))
}
