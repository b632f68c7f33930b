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

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/protobuf/encoding/protowire"

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

// The fields of the messages in push/v1/push.proto and types/v1/types.proto.
const (
	requestSeries, seriesLabels, seriesSamples protowire.Number = 1, 1, 2
	pairName, pairValue                        protowire.Number = 1, 2
	sampleProfile, sampleID                    protowire.Number = 1, 2
)

func (s *series) request() []byte {
	labelsBytes := s.labelBytes()
	sampleBytes := sizeOfField(len(s.pprof)) + sizeOfField(len(s.id))
	seriesBytes := labelsBytes + sizeOfField(sampleBytes)
	b := make([]byte, 0, sizeOfField(seriesBytes))
	b = appendHeader(b, requestSeries, seriesBytes)
	for _, l := range s.labels {
		b = appendHeader(b, seriesLabels, l.bytes())
		b = append(appendHeader(b, pairName, len(l.name)), l.name...)
		b = append(appendHeader(b, pairValue, len(l.value)), l.value...)
	}
	b = appendHeader(b, seriesSamples, sampleBytes)
	b = append(appendHeader(b, sampleProfile, len(s.pprof)), s.pprof...)
	return append(appendHeader(b, sampleID, len(s.id)), s.id...)
}

func (s *series) labelBytes() (n int) {
	for _, l := range s.labels {
		n += sizeOfField(l.bytes())
	}
	return n
}

func (l *label) bytes() int { return sizeOfField(len(l.name)) + sizeOfField(len(l.value)) }

// sizeOfField returns the size of a field of n bytes. The numbers of all fields take one byte.
func sizeOfField(n int) int { return 1 + protowire.SizeBytes(n) }

func appendHeader(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

// post sends a series. Its error is permanent or temporary; a temporary one has the delay that the server asks for.
func (e *pyroscopeExporter) post(ctx context.Context, s *series) error {
	header := http.Header{"Content-Type": {"application/proto"}}
	if e.cfg.Tenant != "" {
		header.Set("X-Scope-OrgID", string(e.cfg.Tenant))
	}
	answer, err := e.client.Post(ctx, strings.TrimRight(e.cfg.Client.Endpoint, "/")+pushPath, header, s.request())
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
