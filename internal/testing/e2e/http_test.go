// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

const protobuf = "application/x-protobuf"

var client = &http.Client{Timeout: 60 * time.Second}

// get returns the body of a response whose status is 200.
func get(url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}

func requireGet(t testing.TB, url string) string {
	t.Helper()
	body, err := get(url)
	require.NoError(t, err)
	return body
}

// ownMetrics returns the collector's own metrics.
func (c *collector) ownMetrics(t testing.TB) string {
	t.Helper()
	return requireGet(t, "http://"+c.metrics+"/metrics")
}

// post sends a body, and returns the status and body of the response.
func post(url, contentType string, body []byte) (status int, answer string, err error) {
	response, err := client.Post(url, contentType, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// requirePost sends a body, and returns the body of the response, whose status must be 2xx.
func requirePost(t testing.TB, url, contentType string, body []byte) string {
	t.Helper()
	status, answer, err := post(url, contentType, body)
	require.NoError(t, err, url)
	require.Equal(t, 2, status/100, "%s: status %d: %s", url, status, answer)
	return answer
}

// push sends a payload to the pprof receiver for a service in the region eu.
func (c *collector) push(service string, payload []byte) (status int, answer string, err error) {
	query := url.Values{"service.name": {service}, "attr.region": {"eu"}}
	return post("http://"+c.endpoint+"/v1/pprof?"+query.Encode(), "application/octet-stream", payload)
}

// requirePush is push, and requires that the payload is accepted.
func (c *collector) requirePush(t *testing.T, service string, payload []byte) {
	t.Helper()
	status, answer, err := c.push(service, payload)
	require.NoError(t, err, service)
	require.Equal(t, http.StatusNoContent, status, "%s: %s", service, answer)
}

// requireLogs sends a log request over HTTP to an address, and requires that every record is accepted.
func requireLogs(t *testing.T, address string, body []byte) {
	t.Helper()
	answer := plogotlp.NewExportResponse()
	require.NoError(t, answer.UnmarshalProto([]byte(requirePost(t, "http://"+address+"/v1/logs", protobuf, body))))
	require.Zero(t, answer.PartialSuccess().RejectedLogRecords())
}
