// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

const (
	protobufType = "application/x-protobuf"
	// maxAnswerBytes bounds how much of an answer is read.
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
	interpret func(r *refusal, text []byte, maxDelay time.Duration) answer
}

func newHTTPPeer(config *HTTPConfig, settings component.TelemetrySettings, userAgent string, maxDelay time.Duration) *httpPeer {
	p := &httpPeer{config: config, settings: settings, userAgent: userAgent, maxDelay: maxDelay}
	p.interpret = func(r *refusal, _ []byte, maxDelay time.Duration) answer { return httpAnswer(r, maxDelay) }
	p.profilesURL, p.logsURL = config.urls()
	return p
}

func (p *httpPeer) start(ctx context.Context, host component.Host) (err error) {
	p.client, err = p.config.Client.ToClient(ctx, host.GetExtensions(), p.settings)
	if err == nil {
		p.client.CheckRedirect = httpserver.KeepMethod
	}
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
	return p.post(ctx, request{p.profilesURL, otlpHeader, body}, limit)
}

func (p *httpPeer) sendLogs(ctx context.Context, ld plog.Logs, limit int) answer {
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return failed(err)
	}
	return p.post(ctx, request{p.logsURL, otlpHeader, body}, limit)
}

// partialSuccess returns how many items an answer rejects, and why. The answers to profiles and to logs have the same fields.
func partialSuccess(text []byte) (rejected int64, message string) {
	response := plogotlp.NewExportResponse()
	if response.UnmarshalProto(text) != nil {
		return 0, ""
	}
	return response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage()
}

// request is what post sends.
type request struct {
	url    string
	header http.Header
	body   []byte
}

// post sends a request.
func (p *httpPeer) post(ctx context.Context, r request, limit int) answer {
	if limit > 0 && len(r.body) > limit {
		return aboveLimit(len(r.body))
	}
	sent := p.exchange(ctx, r)
	sent.size = len(r.body)
	return sent
}

func (p *httpPeer) exchange(ctx context.Context, r request) answer {
	to, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return answer{outcome: later, err: consumererror.NewPermanent(redact.Error(err))}
	}
	to.Header = r.header.Clone()
	to.Header.Set("User-Agent", p.userAgent)
	response, err := p.client.Do(to)
	if err != nil {
		return answer{outcome: later, err: redact.Error(err)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		text = nil // the status suffices
	}
	isProtobuf := strings.HasPrefix(response.Header.Get("Content-Type"), protobufType)
	if response.StatusCode/100 == 2 {
		sent := answer{} // accepted, whatever the body contains
		if isProtobuf {
			sent.rejected, sent.message = partialSuccess(text)
		}
		return sent
	}
	refused := &refusal{
		url: redact.Text(r.url), status: response.StatusCode, message: shorten(string(text)),
		retryAfter: httpserver.RetryAfter(response.Header, time.Now()),
	}
	var answered spb.Status
	if isProtobuf && proto.Unmarshal(text, &answered) == nil {
		refused.message = shorten(answered.GetMessage())
	}
	return p.interpret(refused, text, p.maxDelay)
}

// refusal is an answer with a status other than 2xx.
type refusal struct {
	// url is without credentials.
	url        string
	status     int
	message    string
	retryAfter time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answered %d %s: %q", r.url, r.status, http.StatusText(r.status), r.message)
}

// hecPeer is an HTTP Event Collector of Splunk. It only accepts events.
type hecPeer struct {
	httpPeer
	token string
	url   string
}

func newHECPeer(config *HECConfig, settings component.TelemetrySettings, userAgent string, maxDelay time.Duration) *hecPeer {
	address := config.Client.Endpoint
	if parsed, err := url.Parse(address); err == nil && strings.Trim(parsed.Path, "/") == "" {
		address = parsed.JoinPath("services", "collector").String()
	}
	return &hecPeer{
		httpPeer: httpPeer{
			config: &HTTPConfig{Client: config.Client}, settings: settings, userAgent: userAgent,
			maxDelay: maxDelay, interpret: hecAnswer,
		},
		token: string(config.Token),
		url:   address,
	}
}

// sendProfiles is not called: with HEC the mode is always.
func (p *hecPeer) sendProfiles(context.Context, pprofile.Profiles, int) answer {
	return answer{outcome: noService, err: fmt.Errorf("%s accepts events only", redact.Text(p.url))}
}

func (p *hecPeer) sendLogs(ctx context.Context, ld plog.Logs, limit int) answer {
	body, err := hec.Write(ld, limit) // a body that was cut is above the limit, so post does not send it
	if err != nil {
		return failed(err)
	}
	return p.post(ctx, request{p.url, http.Header{
		"Content-Type":  {"application/json"},
		"Authorization": {"Splunk " + p.token},
		// Splunk's ingest recognizes profiles by this header.
		hec.LibraryHeader: {records.ProfilingName},
	}, body}, limit)
}

// hecAnswer interprets a refusal by HEC. text is the body of the answer, of which the refusal has the beginning.
func hecAnswer(r *refusal, text []byte, maxDelay time.Duration) answer {
	// If the answer counts rejected events, the others were accepted; splunk_profiling answers so.
	var counted hec.Answer
	if r.status == http.StatusBadRequest && json.Unmarshal(text, &counted) == nil && counted.Rejected > 0 {
		return answer{rejected: int64(counted.Rejected), message: counted.Reason}
	}
	if r.status == http.StatusInternalServerError || r.status == http.StatusRequestTimeout {
		return answer{outcome: later, err: explain(later, r, r.retryAfter, maxDelay)} // unlike with OTLP these are temporary
	}
	return httpAnswer(r, maxDelay)
}
