// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
)

// pushPath is the method of Pyroscope's Connect service.
const pushPath = "/push.v1.PusherService/Push"

// maxAnswerBytes bounds how much of an answer is read, maxMessageBytes how much of it an error contains.
const (
	maxAnswerBytes  = 64 << 10
	maxMessageBytes = 1 << 10
)

// series is one pprof with its labels.
type series struct {
	labels []label
	id     string
	// pprof is compressed by gzip. It is borrowed until request returns.
	pprof []byte
}

// The fields of the messages in push/v1/push.proto and types/v1/types.proto.
const (
	requestSeries, seriesLabels, seriesSamples protowire.Number = 1, 1, 2
	pairName, pairValue                        protowire.Number = 1, 2
	sampleProfile, sampleID                    protowire.Number = 1, 2
)

// request returns a PushRequest of one series.
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

// labelBytes returns the size of all labels as fields.
func (s *series) labelBytes() (n int) {
	for _, l := range s.labels {
		n += sizeOfField(l.bytes())
	}
	return n
}

// bytes returns the size of a label as a message.
func (l *label) bytes() int { return sizeOfField(len(l.name)) + sizeOfField(len(l.value)) }

// sizeOfField returns the size of a field of n bytes. The numbers of all fields take one byte.
func sizeOfField(n int) int { return 1 + protowire.SizeBytes(n) }

func appendHeader(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

// post sends a series. Its error is permanent or temporary; a temporary one has the delay that the server asks for.
func (e *pyroscopeExporter) post(ctx context.Context, s *series) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(s.request()))
	if err != nil {
		return consumererror.NewPermanent(redact.Error(err))
	}
	request.Header.Set("Content-Type", "application/proto")
	request.Header.Set("User-Agent", e.userAgent)
	if e.cfg.Tenant != "" {
		request.Header.Set("X-Scope-OrgID", string(e.cfg.Tenant))
	}
	response, err := e.client.Do(request)
	if err != nil {
		return redact.Error(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if response.StatusCode/100 == 2 {
		return nil
	}
	return e.refused(response, answer)
}

// errOfSeries is in temporary errors that can be about one series alone.
var errOfSeries = errors.New("not accepted for now")

// refused returns the error for an answer other than 2xx, with the server's message.
func (e *pyroscopeExporter) refused(response *http.Response, answer []byte) error {
	message := string(answer)
	var connect struct{ Code, Message string }
	if json.Unmarshal(answer, &connect) == nil && connect.Message != "" {
		message = connect.Code + ": " + connect.Message
	}
	message = strings.ToValidUTF8(message[:min(len(message), maxMessageBytes)], "\uFFFD")
	err := fmt.Errorf("%s answered %s: %q", e.shownURL, response.Status, message)
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code/100 == 5:
		if code == http.StatusTooManyRequests || code == http.StatusInternalServerError {
			err = fmt.Errorf("%w: %w", errOfSeries, err)
		}
		if delay := min(httpserver.RetryAfter(response.Header, time.Now()), e.cfg.MaxRetryAfter); delay > 0 {
			return exporterhelper.NewThrottleRetry(err, delay)
		}
		return err
	default:
		return consumererror.NewPermanent(err)
	}
}
