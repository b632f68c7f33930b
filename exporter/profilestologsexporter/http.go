// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
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

func (p *httpPeer) profilesRequest(pd pprofile.Profiles) (request, error) {
	body, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	return p.request(p.profilesURL, profilesHeader, body, otlpAnswer), err
}

func (p *httpPeer) logsRequest(ld plog.Logs, _ int) (request, error) {
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	return p.request(p.logsURL, logsHeader, body, otlpAnswer), err
}

// request returns a request to which interpret returns the outcome of the server's answer.
func (p *httpPeer) request(url string, header http.Header, body []byte,
	interpret func(*httpclient.Answer) answer) request {
	return request{size: len(body), send: func(ctx context.Context) answer {
		a, err := p.Post(ctx, url, header, body)
		if err != nil {
			return answer{outcome: later, err: err}
		}
		return interpret(a)
	}}
}

func otlpAnswer(a *httpclient.Answer) (sent answer) {
	if !a.IsAccepted() {
		return httpAnswer(a)
	}
	response := plogotlp.NewExportResponse() // that to profiles has the same fields
	if a.IsProtobuf && response.UnmarshalProto(a.Body) == nil {
		sent.rejected, sent.message = response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage()
	}
	return sent
}

// hecPeer is an HTTP Event Collector of Splunk. It only accepts events: the mode is always.
type hecPeer struct {
	httpPeer
	header http.Header
}

func newHECPeer(config *HECConfig, client httpclient.Client) *hecPeer {
	address := config.Client.Endpoint
	if parsed, err := url.Parse(address); err == nil && strings.Trim(parsed.Path, "/") == "" {
		address = parsed.JoinPath("services", "collector").String()
	}
	client.Config = config.Client
	return &hecPeer{httpPeer{Client: client, logsURL: address}, http.Header{
		"Content-Type":  {httpserver.ContentJSON},
		"Authorization": {"Splunk " + string(config.Token)},
		// Splunk's ingest recognizes profiles by this header.
		hec.LibraryHeader: {records.ProfilingName},
	}}
}

func (p *hecPeer) logsRequest(ld plog.Logs, limit int) (request, error) {
	body, leftOut, err := hec.Write(ld, limit) // a body that was cut is above the limit, so it is not sent
	r := p.request(p.logsURL, p.header, body, hecAnswer)
	r.leftOut = leftOut
	return r, err
}

func hecAnswer(a *httpclient.Answer) answer {
	// If the answer counts rejected events, the others were accepted; splunk_profiling answers so.
	var counted hec.Answer
	switch {
	case a.IsAccepted():
		return answer{}
	case a.Status == http.StatusBadRequest && json.Unmarshal(a.Body, &counted) == nil && counted.Rejected > 0:
		return answer{rejected: int64(counted.Rejected), message: counted.Reason}
	case a.Status == http.StatusInternalServerError ||
		a.Status == http.StatusRequestTimeout: // unlike with OTLP these are temporary
		return answer{outcome: later, err: exportreport.Retry(a, a.RetryAfter)}
	default:
		return httpAnswer(a)
	}
}
