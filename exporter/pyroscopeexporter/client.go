// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
)

// pushPath is the method of Pyroscope's Connect service.
const pushPath = "/push.v1.PusherService/Push"

// maxAnswerBytes bounds what is read of an answer, maxMessageBytes what is kept of it in an error.
const (
	maxAnswerBytes  = 64 << 10
	maxMessageBytes = 1 << 10
)

// series is one pprof with its labels.
type series struct {
	labels []label
	id     string
	pprof  []byte // compressed by gzip
}

// request returns a PushRequest of one series (push/v1/push.proto).
func (s *series) request() []byte {
	var body []byte
	for _, l := range s.labels {
		pair := appendString(appendString(nil, 1, l.name), 2, l.value)
		body = protowire.AppendBytes(protowire.AppendTag(body, 1, protowire.BytesType), pair)
	}
	sample := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), s.pprof)
	sample = appendString(sample, 2, s.id)
	body = protowire.AppendBytes(protowire.AppendTag(body, 2, protowire.BytesType), sample)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), body)
}

func appendString(b []byte, number protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

// post sends a series. Its error is permanent, or says when to retry, or may pass.
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

// refused returns the error for an answer other than 2xx, with what the server says.
func (e *pyroscopeExporter) refused(response *http.Response, answer []byte) error {
	said := string(answer[:min(len(answer), maxMessageBytes)])
	var connect struct{ Code, Message string }
	if json.Unmarshal(answer, &connect) == nil && connect.Message != "" {
		said = connect.Code + ": " + connect.Message
		said = said[:min(len(said), maxMessageBytes)]
	}
	err := fmt.Errorf("%s answered %s: %q", e.shownURL, response.Status, strings.ToValidUTF8(said, "\uFFFD"))
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code/100 == 5:
		if delay := min(retryAfter(response.Header.Get("Retry-After"), time.Now()), e.cfg.MaxRetryAfter); delay > 0 {
			return exporterhelper.NewThrottleRetry(err, delay)
		}
		return err
	default:
		return consumererror.NewPermanent(err)
	}
}

// retryAfter reads a Retry-After header: seconds, or a date. 0 means none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return date.Sub(now)
	}
	return 0
}
