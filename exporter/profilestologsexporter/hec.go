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
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

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
	body, err := hec.Write(ld)
	if err != nil {
		return failed(err)
	}
	return p.post(ctx, request{p.url, http.Header{
		"Content-Type":  {"application/json"},
		"Authorization": {"Splunk " + p.token},
		// Splunk's ingest recognizes profiles by it.
		hec.LibraryHeader: {splunklog.ProfilingName},
	}, body, func([]byte) (int64, string) { return 0, "" }}, limit)
}

// hecAnswer interprets a refusal by HEC.
func hecAnswer(r *refusal, maxDelay time.Duration, now time.Time) answer {
	// If the answer counts rejected events, the others were accepted; splunk_profiling answers so.
	var counted hec.Answer
	if r.status == http.StatusBadRequest && json.Unmarshal([]byte(r.message), &counted) == nil && counted.Rejected > 0 {
		return answer{rejected: int64(counted.Rejected), message: counted.Reason}
	}
	if r.status == http.StatusInternalServerError || r.status == http.StatusRequestTimeout {
		return answer{outcome: later, err: r} // what HEC answers so may pass, unlike in OTLP
	}
	return httpAnswer(r, maxDelay, now)
}
