// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
)

const (
	protobufType = "application/x-protobuf"
	// maxAnswerBytes bounds what is read of an answer.
	maxAnswerBytes = 64 << 10
)

// otlpHeader is read only.
var otlpHeader = http.Header{"Content-Type": {protobufType}}

// httpPeer speaks OTLP/HTTP.
type httpPeer struct {
	config               *HTTPConfig
	settings             component.TelemetrySettings
	userAgent            string
	profilesURL, logsURL string
	client               *http.Client
	// maxDelay bounds the delay that the peer may ask for.
	maxDelay  time.Duration
	interpret func(r *refusal, maxDelay time.Duration, now time.Time) answer
}

func newHTTPPeer(config *HTTPConfig, settings component.TelemetrySettings, userAgent string, maxDelay time.Duration) *httpPeer {
	p := &httpPeer{config: config, settings: settings, userAgent: userAgent, maxDelay: maxDelay, interpret: httpAnswer}
	p.profilesURL, p.logsURL = config.urls()
	return p
}

func (p *httpPeer) start(ctx context.Context, host component.Host) (err error) {
	p.client, err = p.config.Client.ToClient(ctx, host.GetExtensions(), p.settings)
	return err
}

func (p *httpPeer) shutdown() error {
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
	return nil
}

func (p *httpPeer) sendProfiles(ctx context.Context, pd pprofile.Profiles, limit int) answer {
	body, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	if err != nil {
		return failed(err)
	}
	accepting, sent := p.post(ctx, p.profilesURL, body, otlpHeader, limit)
	response := pprofileotlp.NewExportResponse()
	// A 2xx means that the request was accepted, whatever else the answer says.
	if sent.outcome == accepted && response.UnmarshalProto(accepting) == nil {
		sent.rejected, sent.message = response.PartialSuccess().RejectedProfiles(), response.PartialSuccess().ErrorMessage()
	}
	return sent
}

func (p *httpPeer) sendLogs(ctx context.Context, ld plog.Logs, limit int) answer {
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return failed(err)
	}
	accepting, sent := p.post(ctx, p.logsURL, body, otlpHeader, limit)
	response := plogotlp.NewExportResponse()
	if sent.outcome == accepted && response.UnmarshalProto(accepting) == nil {
		sent.rejected, sent.message = response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage()
	}
	return sent
}

// post sends a request, and returns the body of an answer that accepts it, if that is protobuf.
func (p *httpPeer) post(ctx context.Context, url string, body []byte, header http.Header, limit int) ([]byte, answer) {
	if limit > 0 && len(body) > limit {
		return nil, aboveLimit(len(body))
	}
	accepting, refusal, err := p.exchange(ctx, url, body, header)
	switch {
	case err != nil:
		return nil, answer{outcome: later, err: err, size: len(body)}
	case refusal != nil:
		sent := p.interpret(refusal, p.maxDelay, time.Now())
		sent.size = len(body)
		return nil, sent
	default:
		return accepting, answer{size: len(body)}
	}
}

// exchange sends a request, and returns the body of an answer with a status 2xx, or else the refusal.
func (p *httpPeer) exchange(ctx context.Context, url string, body []byte, header http.Header) ([]byte, *refusal, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, consumererror.NewPermanent(redact.Error(err))
	}
	request.Header = header.Clone()
	request.Header.Set("User-Agent", p.userAgent)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, nil, redact.Error(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		text = nil // the status counts
	}
	isProtobuf := strings.HasPrefix(response.Header.Get("Content-Type"), protobufType)
	if response.StatusCode/100 == 2 {
		if !isProtobuf {
			text = nil
		}
		return text, nil, nil
	}
	r := &refusal{url: redact.Text(url), status: response.StatusCode, retryAfter: response.Header.Get("Retry-After")}
	var answered spb.Status
	if isProtobuf && proto.Unmarshal(text, &answered) == nil {
		r.message = shorten(answered.GetMessage())
	} else {
		r.message = shorten(string(text))
	}
	return nil, r, nil
}

// refusal is an answer other than that a request was accepted.
type refusal struct {
	// url is without credentials.
	url        string
	status     int
	message    string
	retryAfter string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answered %d %s: %q", r.url, r.status, http.StatusText(r.status), r.message)
}
