// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// requirePushes sends from a pod to every port of an agent. What arrives has the pod's attributes.
func requirePushes(t *testing.T, agent *collector, to *backend, pod, ip string) {
	t.Helper()
	logs := capturedLogs(t)["v4.11.0-002-cpu-continuous.otlp-logs.pb"]
	logs.Logs().ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", "by-splunk")
	profile := profiletest.New().Resource("service.name", "by-otlp").Scope("test", "1").
		Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "main.main")).Build()
	profiles, err := pprofileotlp.NewExportRequestFromProfiles(profile).MarshalProto()
	require.NoError(t, err)

	postFromPod(t, agent, ip, ":4318/v1/logs", protobuf, marshalLogs(t, logs))
	postFromPod(t, agent, ip, ":4318/v1development/profiles", protobuf, profiles)
	postFromPod(t, agent, ip, ":8088/services/collector/event", "application/json", []byte(
		`{"event": "\n\nat total(cart.js:12:3)", "sourcetype": "otel.profiling", "time": 1700000000, "fields": {"service.name": "by-hec"}}`))
	pushFromPod(t, agent, ip, func() bool { return to.service(pod) != nil })
	for _, service := range []string{"by-splunk", "by-otlp", "by-hec", pod} {
		require.Eventually(t, func() bool { return to.service(service) != nil }, startTimeout, 100*time.Millisecond, service)
		got := to.service(service)
		require.Equal(t, pod, got["k8s.pod.name"], service)
		require.Equal(t, demo, got["k8s.namespace.name"], service)
		require.Equal(t, "node-a", got["k8s.node.name"], service)
		require.Equal(t, "test", got["k8s.cluster.name"], service)
	}
}

// pushFromPod posts a profile without a name from a pod's address, again until it has arrived with the pod's name: an
// agent starts before it knows the pods of its node.
func pushFromPod(t *testing.T, agent *collector, ip string, hasArrived func() bool) {
	t.Helper()
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	for deadline := time.Now().Add(startTimeout); !hasArrived(); time.Sleep(time.Second) {
		require.True(t, time.Now().Before(deadline), "the push does not arrive with the name of its pod")
		postFromPod(t, agent, ip, ":4040/v1/pprof", "application/octet-stream", payload)
	}
}

// postFromPod posts to an agent's port, from a pod's address.
func postFromPod(t *testing.T, agent *collector, ip, portAndPath, contentType string, payload []byte) {
	t.Helper()
	host, _, err := net.SplitHostPort(agent.otlp)
	require.NoError(t, err)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext}, Timeout: startTimeout}
	defer client.CloseIdleConnections()
	response, err := client.Post("http://"+host+portAndPath, contentType, bytes.NewReader(payload))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 2, response.StatusCode/100, "%s: %s", portAndPath, response.Status)
}
