// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestologsexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/encode"
	splunklog "github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// peer is the server that receives the data.
type peer interface {
	Start(ctx context.Context, host component.Host) error
	Shutdown()
	profilesRequest(pd pprofile.Profiles) (request, error)
	// logsRequest may stop when the request is larger than limit bytes: then it is not sent.
	logsRequest(ld plog.Logs, limit int) (request, error)
}

// request is ready to be sent. size is in bytes, before compression.
type request struct {
	size int
	// leftOut is the number of attributes that it has no room for.
	leftOut int
	send    func(context.Context) answer
}

// profilesToLogs sends profiles as they are, or as log records.
type profilesToLogs struct {
	// Profiles is exporterhelper's exporter, with the queue.
	xexporter.Profiles

	config  *Config
	logger  *zap.Logger
	metrics *metadata.TelemetryBuilder
	// encoding counts the log records and their losses.
	encoding *encode.Metrics
	peer     peer
	// tooLargeLogged is true after the one log line about requests that are too large.
	tooLargeLogged atomic.Bool

	// stopped ends when the time for a shutdown has passed: senders stop waiting for room in the queue, and requests end.
	stopped context.Context
	stop    context.CancelFunc

	// mu guards asLogs, which reports that the peer has no service for profiles, and nextCheck, the time to try it
	// again.
	mu        sync.Mutex
	asLogs    bool
	nextCheck time.Time
}

// ConsumeProfiles waits for room in the queue at most until the exporter has stopped.
func (e *profilesToLogs) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	ctx, cancel := until(e.stopped, ctx)
	defer cancel()
	return e.Profiles.ConsumeProfiles(ctx, pd)
}

// Shutdown sends each batch of the queue in memory once. When the time for it has passed, requests end. A
// queue on disk keeps their data; otherwise it is lost, and the queue counts and logs it.
func (e *profilesToLogs) Shutdown(ctx context.Context) error {
	ctx, cancel := shutdown.Deadline(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, e.stop)
	defer stop()
	defer e.stop()
	// The queue closes its storage after requests have ended, for which it may need a context that has not.
	return e.Profiles.Shutdown(context.WithoutCancel(ctx))
}

// until returns a context that ends as soon as ctx or end does.
func until(end, ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(end, cancel)
	return ctx, func() { stop(); cancel() }
}

func (e *profilesToLogs) start(ctx context.Context, host component.Host) error {
	e.recordMode(ctx, e.config.alwaysLogs())
	return e.peer.Start(ctx, host)
}

func (e *profilesToLogs) shutdown(context.Context) error {
	e.metrics.Shutdown()
	e.peer.Shutdown()
	return nil
}

// push delivers one batch, request by request: as profiles, or as log records from the part on for which the peer
// answers that it has no service for profiles. If a part is refused permanently, the others are sent. If one is refused
// temporarily, the error carries that part and those after it, which must be sent again. Each sample is reported as
// sent or lost.
func (e *profilesToLogs) push(ctx context.Context, pd pprofile.Profiles) error {
	ctx, cancel := until(e.stopped, ctx)
	defer cancel()
	asProfiles, recheck := e.tryProfiles()
	report := exportreport.Report{Unit: "requests"}
	split := func(pd pprofile.Profiles, maxBytes int) parts {
		parts := e.split(pd, asProfiles, maxBytes)
		e.encoding.Dropped(ctx, parts.dropped)
		report.Lost(parts.dropped)
		return parts
	}
	parts := split(pd, e.maxPartBytes(asProfiles))
	tooLargeBytes := math.MaxInt // the size of the last part that was split
	var noProfiles error         // the reason for sending records, until the peer has accepted some
	for part, ok := parts.next(); ok; part, ok = parts.next() {
		samples := part.profiles.SampleCount()
		sent := e.send(ctx, part)
		if sent.outcome == tooLarge {
			// If samples share an entry that is too large, splitting does not help.
			gains := !part.single && part.bytes() < tooLargeBytes
			if gains && (errors.Is(sent.err, errAboveLimit) || sent.size >= 2*minRequestBytes) {
				tooLargeBytes = part.bytes()
				parts = split(parts.rest(part), tooLargeBytes/2)
				continue
			}
			part, sent = e.sendWhole(ctx, part, sent)
		}
		if sent.outcome == unreadable && asProfiles {
			sent = e.probe(ctx, sent)
		}
		if sent.outcome == accepted {
			lost := min(samples, part.rejectedSamples(sent.rejected)+part.records.Dropped)
			report.Sent(samples - lost)
			report.Lost(lost)
		}
		switch {
		case sent.outcome == accepted && asProfiles:
			e.setMode(ctx, false, nil)
			recheck = false
		case sent.outcome == accepted:
			part.records.LeftOutAttributes += sent.leftOut
			e.encoding.Sent(ctx, &part.records)
			if noProfiles != nil && part.records.Records > 0 {
				e.setMode(ctx, true, noProfiles)
				noProfiles = nil
			}
		case sent.outcome == later:
			return report.Finish(ctx, e.logger, sent.err, parts.rest(part))
		case asProfiles && (sent.outcome == noService || recheck):
			// A recheck that is refused for another reason changes nothing: the peer accepts log records.
			if !recheck {
				noProfiles = sent.err
			}
			asProfiles, tooLargeBytes = false, math.MaxInt
			parts = split(parts.rest(part), e.maxPartBytes(asProfiles))
		default:
			if noProfiles != nil {
				sent.err = errors.Join(noProfiles, sent.err)
			}
			report.Refused(samples, "", sent.err)
		}
	}
	return report.Finish(ctx, e.logger, nil, pprofile.Profiles{})
}

// minRequestBytes is a size that every peer accepts. If a peer refuses smaller requests as too large, splitting does
// not help.
const minRequestBytes = 16 << 10

// maxPartBytes returns the largest size of the profiles or records of a request. Requests of records also have
// resources and scopes; events repeat them, and quote their text.
func (e *profilesToLogs) maxPartBytes(asProfiles bool) int {
	limit := e.config.requestBytes()
	switch {
	case asProfiles:
		return limit
	case e.config.HEC.HasValue():
		return limit - limit/4
	default:
		return limit - limit/32
	}
}

// split cuts a batch into parts with up to maxBytes of profiles or records.
func (e *profilesToLogs) split(pd pprofile.Profiles, asProfiles bool, maxBytes int) parts {
	if asProfiles {
		return splitProfiles(pd, maxBytes)
	}
	options := e.config.Encoding.Options(maxBytes)
	options.MaxRecordBytes = min(options.MaxRecordBytes, maxBytes)
	options.RepeatsResources = e.config.HEC.HasValue()
	return splitRecords(splunklog.NewEncoder(pd, options))
}

// send sends one part. If it cannot be split, send ignores the limit.
func (e *profilesToLogs) send(ctx context.Context, p part) (sent answer) {
	if p.asRecords && p.records.Records == 0 { // all of it is left out
		return answer{}
	}
	if e.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.config.Timeout)
		defer cancel()
	}
	limit := e.config.requestBytes()
	if p.single {
		limit = math.MaxInt
	}
	var r request
	var err error
	if p.asRecords {
		r, err = e.peer.logsRequest(p.records.Logs, limit)
	} else {
		r, err = e.peer.profilesRequest(p.profiles)
	}
	switch {
	case err != nil:
		return answer{outcome: refused, err: consumererror.NewPermanent(err)}
	case r.size > limit:
		return answer{outcome: tooLarge, err: errAboveLimit, size: r.size}
	}
	sent = r.send(ctx)
	sent.size, sent.leftOut = r.size, r.leftOut
	signal := signalOf(p.asRecords)
	if sent.outcome == tooLarge {
		e.metrics.ExporterProfilesToLogsTooLargeRequests.Add(ctx, 1, telemetry.Attributes("signal", signal))
		if !p.single && sent.size >= 2*minRequestBytes && !e.tooLargeLogged.Swap(true) {
			e.logger.Warn(
				"the peer refuses requests as too large; they are halved and sent again, which costs a request each time: lower max_request_bytes",
				zap.Int("request_bytes", sent.size), zap.Error(sent.err))
		}
	}
	if sent.outcome == accepted && (sent.rejected > 0 || sent.message != "") {
		e.metrics.ExporterProfilesToLogsRejectedItems.Add(ctx, sent.rejected, telemetry.Attributes("signal", signal))
		e.logger.Warn("the peer accepted a request in part", zap.String("signal", signal),
			zap.Int64("rejected", sent.rejected), zap.String("message", httpclient.Shorten(sent.message)))
	}
	return sent
}

// sendWhole sends a part that cannot be split. If the peer finds it too large, it is sent again without its original
// payload: losing the payload is better than losing both.
func (e *profilesToLogs) sendWhole(ctx context.Context, p part, sent answer) (part, answer) {
	p.single = true
	if errors.Is(sent.err, errAboveLimit) {
		if sent = e.send(ctx, p); sent.outcome != tooLarge {
			return p, sent
		}
	}
	without, payloads := withoutPayloads(p.profiles)
	if payloads == 0 {
		return p, sent
	}
	reason := sent.err
	smaller := part{profiles: without, asRecords: p.asRecords, single: true}
	if p.asRecords {
		smaller.records.Logs = plog.NewLogs()
		encoder := splunklog.NewEncoder(without, e.config.Encoding.Options(0))
		for records, ok := encoder.Next(); ok; records, ok = encoder.Next() {
			smaller.records.Add(records)
		}
	}
	sent = e.send(ctx, smaller)
	if sent.outcome == accepted || sent.outcome == later {
		e.metrics.ExporterProfilesToLogsDroppedPayloads.Add(ctx, int64(payloads))
		e.logger.Warn("an original payload was left out: it is larger than the peer accepts", zap.Error(reason))
	}
	return smaller, sent
}

// probe finds out whether a peer that cannot read a message can read any: it sends a small profile. If that fails in
// the same way, the peer has another layout of profiles, and thus no service for these; otherwise only this message is
// refused.
func (e *profilesToLogs) probe(ctx context.Context, sent answer) answer {
	sent.outcome = refused
	switch probed := e.send(ctx, part{profiles: newProbe(), single: true}); probed.outcome {
	case unreadable, noService:
		sent.outcome = noService
	case later:
		return probed
	}
	return sent
}

// tryProfiles decides whether to send a batch as profiles. In the mode for log records, one batch in every recheck
// interval tries profiles again.
func (e *profilesToLogs) tryProfiles() (try, recheck bool) {
	if e.config.alwaysLogs() {
		return false, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.asLogs {
		return true, false
	}
	now := time.Now()
	if now.Before(e.nextCheck) {
		return false, false
	}
	e.nextCheck = now.Add(e.config.RecheckInterval)
	return true, true
}

// setMode notes whether the peer accepts profiles. If several batches find out at once, only the first of them logs it.
func (e *profilesToLogs) setMode(ctx context.Context, asLogs bool, reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if asLogs {
		e.nextCheck = time.Now().Add(e.config.RecheckInterval)
	}
	if e.asLogs == asLogs {
		return
	}
	e.asLogs = asLogs
	e.metrics.ExporterProfilesToLogsSwitches.Add(ctx, 1, telemetry.Attributes("to", signalOf(asLogs)))
	e.recordMode(ctx, asLogs)
	if asLogs {
		e.logger.Warn("the peer does not accept OTLP profiles; sending log records from now on",
			zap.Duration("recheck_interval", e.config.RecheckInterval), zap.Error(reason))
		return
	}
	e.logger.Info("the peer accepts OTLP profiles; sending them from now on")
}

func (e *profilesToLogs) recordMode(ctx context.Context, asLogs bool) {
	mode := int64(0)
	if asLogs {
		mode = 1
	}
	e.metrics.ExporterProfilesToLogsMode.Record(ctx, mode)
}

// signalOf returns the signal that is sent, for attributes of metrics.
func signalOf(asLogs bool) string {
	if asLogs {
		return "logs"
	}
	return "profiles"
}
