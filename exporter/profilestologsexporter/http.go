// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// These headers are read only. That of profiles states their layout, as pdata's client does over gRPC.
var (
	logsHeader     = http.Header{"Content-Type": {httpserver.ContentProtobuf}}
	profilesHeader = http.Header{
		"Content-Type": {httpserver.ContentProtobuf},
		http.CanonicalHeaderKey(pprofileotlp.DevelopmentVersionHeader): {pprofileotlp.DevelopmentVersion},
	}
)

type httpPeer struct {
	httpclient.Client
	profilesURL, logsURL string
}

func newHTTPPeer(config *HTTPConfig, client httpclient.Client) *httpPeer {
	client.Config = config.Client
	p := &httpPeer{Client: client}
	p.profilesURL, p.logsURL = config.urls()
	return p
}

func (p *httpPeer) start(ctx context.Context, host component.Host) error { return p.Start(ctx, host) }

func (p *httpPeer) shutdown() error {
	p.Shutdown()
	return nil
}

func (p *httpPeer) sendProfiles(ctx context.Context, pd pprofile.Profiles, limit int) answer {
	body, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	if err != nil {
		return failed(err)
	}
	return p.post(ctx, request{p.profilesURL, profilesHeader, body, otlpAnswer}, limit)
}

func (p *httpPeer) sendLogs(ctx context.Context, ld plog.Logs, limit int) answer {
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return failed(err)
	}
	return p.post(ctx, request{p.logsURL, logsHeader, body, otlpAnswer}, limit)
}

// partialSuccess returns how many items an answer rejects, and why. The answers to profiles and to logs have the same fields.
func partialSuccess(body []byte) (rejected int64, message string) {
	response := plogotlp.NewExportResponse()
	if response.UnmarshalProto(body) != nil {
		return 0, ""
	}
	return response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage()
}

// request is what post sends.
type request struct {
	url    string
	header http.Header
	body   []byte
	// interpret returns the outcome of the server's answer.
	interpret func(*httpclient.Answer) answer
}

func (p *httpPeer) post(ctx context.Context, r request, limit int) (sent answer) {
	if limit > 0 && len(r.body) > limit {
		return aboveLimit(len(r.body))
	}
	if a, err := p.Post(ctx, r.url, r.header, r.body); err != nil {
		sent = answer{outcome: later, err: err}
	} else {
		sent = r.interpret(a)
	}
	sent.size = len(r.body)
	return sent
}

func otlpAnswer(a *httpclient.Answer) (sent answer) {
	if !a.IsAccepted() {
		return httpAnswer(a)
	}
	if a.IsProtobuf { // else it is accepted as well
		sent.rejected, sent.message = partialSuccess(a.Body)
	}
	return sent
}

// hecPeer is an HTTP Event Collector of Splunk. It only accepts events.
type hecPeer struct {
	httpPeer
	token string
	url   string
}

func newHECPeer(config *HECConfig, client httpclient.Client) *hecPeer {
	address := config.Client.Endpoint
	if parsed, err := url.Parse(address); err == nil && strings.Trim(parsed.Path, "/") == "" {
		address = parsed.JoinPath("services", "collector").String()
	}
	client.Config = config.Client
	return &hecPeer{httpPeer: httpPeer{Client: client}, token: string(config.Token), url: address}
}

// sendProfiles is not called: with HEC the mode is always.
func (p *hecPeer) sendProfiles(context.Context, pprofile.Profiles, int) answer {
	return answer{outcome: noService, err: fmt.Errorf("%s accepts events only", redact.RawURL(p.url))}
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
	}, body, hecAnswer}, limit)
}

func hecAnswer(a *httpclient.Answer) answer {
	// If the answer counts rejected events, the others were accepted; splunk_profiling answers so.
	var counted hec.Answer
	switch {
	case a.IsAccepted():
		return answer{}
	case a.Status == http.StatusBadRequest && json.Unmarshal(a.Body, &counted) == nil && counted.Rejected > 0:
		return answer{rejected: int64(counted.Rejected), message: counted.Reason}
	case a.Status == http.StatusInternalServerError || a.Status == http.StatusRequestTimeout: // unlike with OTLP these are temporary
		return answer{outcome: later, err: exportreport.Retry(a, a.RetryAfter)}
	default:
		return httpAnswer(a)
	}
}
