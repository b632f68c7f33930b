// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
)

// pushPath is the method of Pyroscope's Connect service.
const pushPath = "/push.v1.PusherService/Push"

type series struct {
	labels []label
	id     string
	pprof  []byte // compressed by gzip
}

// labelBytes is about the size of the labels in a request.
func (s *series) labelBytes() (n int) {
	const overhead = 8
	for _, l := range s.labels {
		n += overhead + len(l.name) + len(l.value)
	}
	return n
}

// post sends a series. Its error is permanent or temporary; a temporary one has the delay that the server asks for.
func (e *pyroscopeExporter) post(ctx context.Context, s *series) error {
	header := http.Header{"Content-Type": {"application/proto"}}
	if e.cfg.Tenant != "" {
		header.Set("X-Scope-OrgID", string(e.cfg.Tenant))
	}
	one := &pushv1.RawProfileSeries{
		Labels: make([]*typesv1.LabelPair, len(s.labels)), Samples: []*pushv1.RawSample{{RawProfile: s.pprof, ID: s.id}},
	}
	for i, l := range s.labels {
		one.Labels[i] = &typesv1.LabelPair{Name: l.name, Value: l.value}
	}
	body, err := (&pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{one}}).MarshalVT()
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	answer, err := e.client.Post(ctx, strings.TrimRight(e.cfg.Client.Endpoint, "/")+pushPath, header, body)
	if err != nil || answer.IsAccepted() {
		return err
	}
	return refusal(answer)
}

// errOfSeries is in temporary errors that can be about one series alone.
var errOfSeries = errors.New("not accepted for now")

// refusal returns the error for an answer that is a refusal, with the server's message.
func refusal(answer *httpclient.Answer) error {
	var connect struct{ Code, Message string }
	if json.Unmarshal(answer.Body, &connect) == nil && connect.Message != "" {
		answer.Message = httpclient.Shorten(connect.Code + ": " + connect.Message)
	}
	switch code := answer.Status; {
	case code == http.StatusTooManyRequests, code == http.StatusInternalServerError:
		return exportreport.Retry(fmt.Errorf("%w: %w", errOfSeries, answer), answer.RetryAfter)
	case code == http.StatusRequestTimeout, code/100 == 5:
		return exportreport.Retry(answer, answer.RetryAfter)
	default:
		return consumererror.NewPermanent(answer)
	}
}
