// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// maxRequestBytes bounds the records of one request: a gRPC server takes 4 MiB where nothing else is configured, and
// the resources and scopes around the records need some of that.
const maxRequestBytes = 4<<20 - 256<<10

// peer is where the data goes. Its errors are as exporterhelper understands them, or a noProfilesError.
type peer interface {
	start(ctx context.Context, host component.Host) error
	shutdown() error
	sendProfiles(ctx context.Context, pd pprofile.Profiles) (partial, error)
	sendLogs(ctx context.Context, ld plog.Logs) (partial, error)
}

// partial is what a peer did not take of a request that it took.
type partial struct {
	rejected int64
	message  string
}

// noProfilesError says that a peer has no profiles service, or not in this version.
type noProfilesError struct{ err error }

func (e *noProfilesError) Error() string { return e.err.Error() }

func (e *noProfilesError) Unwrap() error { return e.err }

// profilesToLogs sends profiles as they are, or as log records.
type profilesToLogs struct {
	config  *Config
	options splunklog.EncodeOptions
	logger  *zap.Logger
	metrics *metrics
	peer    peer

	// mu guards asLogs, which says that the peer has no profiles, and nextCheck, when it is to be asked again.
	mu        sync.Mutex
	asLogs    bool
	nextCheck time.Time
}

func (e *profilesToLogs) start(ctx context.Context, host component.Host) error {
	mode := signalProfiles
	if e.config.alwaysLogs() {
		mode = signalLogs
	}
	e.metrics.inMode(ctx, mode)
	return e.peer.start(ctx, host)
}

func (e *profilesToLogs) shutdown(context.Context) error { return e.peer.shutdown() }

// push delivers one batch. An error that may pass carries what is to be sent again.
func (e *profilesToLogs) push(ctx context.Context, pd pprofile.Profiles) error {
	try, recheck := e.tryProfiles()
	if try {
		err := e.pushProfiles(ctx, pd)
		var none *noProfilesError
		switch {
		case err == nil:
			e.setMode(ctx, false, nil)
			return nil
		case errors.As(err, &none):
			e.setMode(ctx, true, err)
		case recheck && consumererror.IsPermanent(err):
			// Not what a peer without profiles says, yet what it took until now it takes again.
			e.logger.Debug("profiles are still not taken", zap.Error(err))
		default:
			return err
		}
	}
	return e.pushLogs(ctx, pd)
}

// tryProfiles decides what a batch goes out as. While it is log records, one batch in every recheck interval tries
// profiles again.
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

// setMode notes what the peer takes. Several batches may learn it at once; only the first of them switches.
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
	if asLogs {
		e.metrics.switched(ctx, signalLogs)
		e.logger.Warn("the peer takes no profiles: they go out as log records from now on",
			zap.Duration("recheck_interval", e.config.RecheckInterval), zap.Error(reason))
		return
	}
	e.metrics.switched(ctx, signalProfiles)
	e.logger.Info("the peer takes profiles: they go out as they are from now on")
}

func (e *profilesToLogs) pushProfiles(ctx context.Context, pd pprofile.Profiles) error {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	taken, err := e.peer.sendProfiles(ctx, pd)
	if err == nil {
		e.report(ctx, signalProfiles, taken)
	}
	return err
}

// pushLogs sends a batch as log records, request by request. What one request is refused for good does not keep the
// others back; where one is refused for now, it and those behind it are to be sent again.
func (e *profilesToLogs) pushLogs(ctx context.Context, pd pprofile.Profiles) error {
	encoder := splunklog.NewEncoder(pd, e.options)
	e.metrics.encoding.Dropped(ctx, encoder.Dropped)
	var refused []error
	for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
		if part.Records > 0 {
			taken, err := e.sendLogs(ctx, part.Logs)
			if err != nil && !consumererror.IsPermanent(err) {
				e.logRefused(refused)
				return xconsumererror.NewProfiles(err, encoder.Rest(part))
			}
			if err != nil {
				refused = append(refused, err)
				continue
			}
			e.report(ctx, signalLogs, taken)
		}
		e.metrics.encoding.Taken(ctx, &part)
	}
	// It is permanent as each of them is.
	return errors.Join(refused...)
}

// logRefused says what is lost of a batch whose rest is sent again, and whose errors would be taken for the rest's.
func (e *profilesToLogs) logRefused(refused []error) {
	if len(refused) > 0 {
		e.logger.Error("log records were refused for good", zap.Error(errors.Join(refused...)))
	}
}

func (e *profilesToLogs) sendLogs(ctx context.Context, ld plog.Logs) (partial, error) {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	return e.peer.sendLogs(ctx, ld)
}

func (e *profilesToLogs) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.config.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, e.config.Timeout)
}

// report counts and says what a peer did not take of a request that it took.
func (e *profilesToLogs) report(ctx context.Context, of string, taken partial) {
	if taken.rejected == 0 && taken.message == "" {
		return
	}
	if taken.rejected > 0 {
		e.metrics.rejected.Add(ctx, taken.rejected, signal("signal", of))
	}
	e.logger.Warn("the peer took a request in part", zap.String("signal", of),
		zap.Int64("rejected", taken.rejected), zap.String("message", taken.message))
}
