// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/podtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// doorsOf are the files whose ports have marks for TLS and tokens: all that run as they are and open a port for data.
func doorsOf(t *testing.T) []string {
	t.Helper()
	files := configs(t)
	backends, err := filepath.Glob(filepath.Join(repository, "config", "backends", "*.yaml"))
	require.NoError(t, err)
	for _, file := range backends {
		file, err = filepath.Rel(repository, file)
		require.NoError(t, err)
		files = append(files, file)
	}
	// it reads from Kafka alone
	return slices.DeleteFunc(files, func(file string) bool { return file == kafkaGatewayConfig })
}

// endpointOfDoor matches an address that a file listens on, and the two lines that belong to it.
var endpointOfDoor = regexp.MustCompile(`(?m)^( +)endpoint: \$\{env:(PPROF|STATUS|OTLP_\w+|SPLUNK_\w+|PAGE)_ENDPOINT:.*\n(.*)\n(.*)\n`)

// Each address of each file has its lines for TLS and for the token.
func TestEveryDoorHasAMark(t *testing.T) {
	for _, file := range doorsOf(t) {
		content := profiletest.FileBytes(t, filepath.Join(repository, file))
		doors := endpointOfDoor.FindAllStringSubmatch(string(content), -1)
		assert.NotEmpty(t, doors, file)
		for _, door := range doors {
			scheme := "clients"
			switch {
			case door[2] == "SPLUNK_HEC":
				scheme = "hec"
			case file == gatewayConfig:
				scheme = "agents"
			}
			assert.True(t, strings.HasPrefix(door[3], door[1]+"#tls: {"), "%s: %s", file, door[0])
			assert.Equal(t, door[1]+"#auth: {authenticator: bearertokenauth/"+scheme+"}", door[4], "%s: %s", file, door[0])
		}
	}
}

// Each file that sends has lines for the authority or the token of what it sends to, and is valid with them.
func TestEveryBackendHasAMark(t *testing.T) {
	binary, err := collectortest.Binary()
	require.NoError(t, err)
	files := profiletest.Glob(t, filepath.Join(repository, "config", "backends", "*.yaml"))
	require.Greater(t, len(files), 6)
	token := newFile(t, "token", []byte("token"))
	for _, file := range files {
		file, err = filepath.Rel(repository, file)
		require.NoError(t, err)
		command := exec.Command(binary, "validate", "--config", uncommented(t, file, collectortest.Backend))
		command.Env = append(os.Environ(), "BACKEND_INSECURE=false", "BACKEND_TOKEN_FILE="+token, "PYROSCOPE_USER=user", "PYROSCOPE_PASSWORD=password")
		output, err := command.CombinedOutput()
		assert.NoError(t, err, "%s: %s", file, output)
	}
}

// The commands of docs/tls.md do what the tests do.
func TestCommandsThatRemoveMarks(t *testing.T) {
	text := profiletest.FileBytes(t, filepath.Join(repository, "docs", "tls.md"))
	for _, command := range []string{
		"sed -E '/^ *#[^ ]/ s/#//' config/standalone.yaml > secured.yaml",
		"sed 's/# @backend //' config/agent.yaml > agent-tls.yaml",
	} {
		require.Contains(t, string(text), "\n"+command+"\n")
	}
	for _, file := range doorsOf(t) {
		require.Equal(t, collectortest.Uncommented(t, file, collectortest.Doors), sed(t, "/^ *#[^ ]/ s/#//", file), file)
	}
	require.Equal(t, collectortest.Uncommented(t, agentConfig, collectortest.Backend), sed(t, "s/# @backend //", agentConfig))
}

func sed(t *testing.T, script, file string) string {
	t.Helper()
	command := exec.Command("sed", "-E", script, file)
	command.Dir = repository
	output, err := command.Output()
	require.NoError(t, err)
	return string(output)
}

// Without the marks of ports, every port of every file that runs without another service refuses whoever has no TLS,
// and no token or a wrong one, and serves who has both. No other variable is needed, and no other port is open but the
// health check and the collector's own metrics.
func TestEveryDoorIsClosed(t *testing.T) {
	t.Parallel()
	as := newIdentity(t)
	tokens := newFile(t, "tokens", []byte("another-token\ntoken-of-clients\n"))
	for _, file := range doorsOf(t) {
		if file == kafkaAgentConfig {
			continue // it needs Kafka
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			c := launch(t, uncommented(t, file, collectortest.Doors), "TLS_CERT_FILE="+as.certFile, "TLS_KEY_FILE="+as.keyFile,
				"CLIENTS_TOKEN_FILE="+tokens, "AGENTS_TOKEN_FILE="+tokens, "BATCH_TIMEOUT=50ms",
				"CLICKHOUSE_HTTP=http://"+freeAddress(t), "CLICKHOUSE_ENDPOINT=tcp://"+freeAddress(t))
			as.knockAtAll(t, c, "health", "metrics")
		})
	}
}

// TestEveryDoorOfPodsIsClosed does the same with the pods of each overlay, in which the # before
// components/secure-ports is removed. Their pages listen on loopback addresses. What an agent takes arrives at the
// gateway or page behind it, which has the same doors.
func TestEveryDoorOfPodsIsClosed(t *testing.T) {
	t.Parallel()
	as := newIdentity(t)
	secret := map[string]string{"tokens": "another-token\ntoken-of-clients\n", "agents-token": "token-of-clients"}
	for name, file := range map[string]string{"tls.crt": as.certFile, "tls.key": as.keyFile, "ca.crt": as.certFile} {
		content := profiletest.FileBytes(t, file)
		secret[name] = string(content)
	}
	manifests := t.TempDir()
	require.NoError(t, os.CopyFS(manifests, os.DirFS(filepath.Join(repository, podtest.Manifests))))
	edit := func(t *testing.T, overlay, component string) {
		file := filepath.Join(manifests, "overlays", overlay, "kustomization.yaml")
		content := profiletest.FileBytes(t, file)
		edited := strings.Replace(string(content), "# - ../../components/"+component+"\n", "- ../../components/"+component+"\n", 1)
		require.NotEqual(t, string(content), edited)
		require.NoError(t, os.WriteFile(file, []byte(edited), 0o600))
	}
	start := func(t *testing.T, overlay, workload string, env ...string) *collector {
		pod := podtest.New(t, filepath.Join(manifests, "overlays", overlay), "otelcol-profiles-"+workload, secret)
		require.Contains(t, pod.Args[0], "config.yaml")
		env = append(append(pod.Env, "METRICS_HOST=localhost", "QUEUE_DIRECTORY="+t.TempDir(), "STORE_DIRECTORY="+t.TempDir()), env...)
		return launchWith(t, strings.TrimPrefix(pod.Args[0], "--config="), pod.Args[1:], env...)
	}
	for _, overlay := range []string{"agent", "gateway", "page", "gateway with volumes"} {
		t.Run(overlay, func(t *testing.T) {
			overlay, volumes := strings.CutSuffix(overlay, " with volumes")
			if volumes {
				edit(t, overlay, "gateway-volumes")
			} else {
				edit(t, overlay, "secure-ports")
			}
			to := startBackend(t)
			behind := []string{"BACKEND_ENDPOINT=" + to.address, "BACKEND_INSECURE=true"}
			arrived := func() bool { return len(to.messages()) > 0 }
			if overlay != "agent" {
				c := start(t, overlay, overlay, behind...)
				defer as.knockAtAll(t, c, "health", "metrics", "page")
				behind = []string{"BACKEND_ENDPOINT=" + c.otlp}
				if overlay == "page" {
					arrived = func() bool { return strings.Contains(requireGet(t, "http://"+c.graphs+"/api/services"), "shop") }
				}
			}
			as.knockAtAll(t, start(t, overlay, "agent", behind...), "health", "metrics", "status")
			require.Eventually(t, arrived, startTimeout, 50*time.Millisecond)
		})
	}
}

// knockAtAll tries every port that a collector listens on, but those that are open for all. It ends the collector.
func (i identity) knockAtAll(t *testing.T, c *collector, forAll ...string) {
	t.Helper()
	k := &knocker{trust: &tls.Config{RootCAs: i.pool(t)}}
	open := c.Listening(t)
	known := map[string]string{
		c.health: "health", c.metrics: "metrics", c.endpoint: "pprof", c.otlp: "grpc", c.otlpHTTP: "http", c.splunk: "splunk grpc",
		c.splunkHTTP: "splunk http", c.hec: "hec", c.status: "status", c.graphs: "page",
	}
	require.Greater(t, len(open), 1)
	for _, address := range open {
		kind := known[address]
		require.NotEmpty(t, kind, "%s is open, and is none of the addresses of the file", address)
		if !slices.Contains(forAll, kind) {
			k.knock(t, kind, address)
		}
	}
	c.Terminate(t)
}

const splunkEvent = `{"event": "\n\nat total(cart.js:12:3)", "sourcetype": "otel.profiling", "fields": {"service.name": "hec"}}`

// knocker tries the ports of a collector.
type knocker struct{ trust *tls.Config }

// knock requires that a port refuses a request without TLS, without a token and with a wrong one, and accepts another.
func (k *knocker) knock(t *testing.T, kind, address string) {
	t.Helper()
	const token = "token-of-clients"
	ask := k.http
	if strings.HasSuffix(kind, "grpc") {
		ask = k.grpc
	}
	scheme := "Bearer "
	if kind == "hec" {
		scheme = "Splunk "
	}
	assert.False(t, ask(t, kind, address, false, ""), "%s (%s) without TLS", address, kind)
	assert.False(t, ask(t, kind, address, false, scheme+token), "%s (%s) without TLS", address, kind)
	assert.False(t, ask(t, kind, address, true, ""), "%s (%s) without a token", address, kind)
	assert.False(t, ask(t, kind, address, true, scheme+"wrong"), "%s (%s) with a wrong token", address, kind)
	assert.True(t, ask(t, kind, address, true, scheme+token), "%s (%s) with TLS and the token", address, kind)
}

// http reports whether the answer is 2xx.
func (k *knocker) http(t *testing.T, kind, address string, encrypted bool, authorization string) bool {
	t.Helper()
	ask := map[string]struct{ method, path, contentType, body string }{
		"pprof":       {http.MethodPost, "/v1/pprof?service.name=shop", "", string(capturedPayloads(t)["go-cpu-labels.pb.gz"])},
		"http":        {http.MethodPost, "/v1development/profiles", protobuf, ""},
		"splunk http": {http.MethodPost, "/v1/logs", protobuf, ""},
		"hec":         {http.MethodPost, "/services/collector/event", "application/json", splunkEvent},
		"status":      {http.MethodGet, "/targets", "", ""},
		"page":        {http.MethodGet, "/", "", ""},
	}[kind]
	url := "http://" + address + ask.path
	if encrypted {
		url = "https://" + address + ask.path
	}
	request, err := http.NewRequestWithContext(t.Context(), ask.method, url, bytes.NewBufferString(ask.body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", ask.contentType)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	transport := &http.Transport{TLSClientConfig: k.trust, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: startTimeout}).Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode/100 == 2
}

// grpc reports whether the call is answered.
func (k *knocker) grpc(t *testing.T, kind, address string, encrypted bool, authorization string) bool {
	t.Helper()
	transport := insecure.NewCredentials()
	if encrypted {
		transport = credentials.NewTLS(k.trust)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	require.NoError(t, err)
	defer connection.Close()
	ctx := t.Context()
	if authorization != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", authorization)
	}
	if kind == "splunk grpc" {
		_, err = plogotlp.NewGRPCClient(connection).Export(ctx, plogotlp.NewExportRequest())
	} else {
		_, err = pprofileotlp.NewGRPCClient(connection).Export(ctx, pprofileotlp.NewExportRequest())
	}
	if err != nil {
		want := codes.Unavailable // without TLS
		if encrypted {
			want = codes.Unauthenticated
		}
		assert.Equal(t, want, status.Code(err), "%s (%s): %v", address, kind, err)
	}
	return err == nil
}
