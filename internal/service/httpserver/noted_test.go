// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/senders"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

func TestReasonOf(t *testing.T) {
	for answer, want := range map[string]string{
		"not a profile\n": "not a profile\n", `{"error":"a \"b\" \u003c"}`: `a "b" <`,
		`{"code":3,"message":"cut he`: "cut he", `{"error":5}`: `{"error":5}`, "": "",
	} {
		assert.Equal(t, want, reasonOf([]byte(answer)))
	}
}

// Who sends is noted with the answer, and who reads is not.
func TestSendersAreNoted(t *testing.T) {
	listener := listen(t)
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	server := Start(&http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/noted-refused" {
				http.Error(w, "not a profile", http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte("welcome"))
		})}, listener, Options{Telemetry: tel.NewTelemetrySettings()})
	t.Cleanup(func() { assert.NoError(t, server.Shutdown(context.Background())) })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for _, request := range []struct{ method, path string }{
		{http.MethodPost, "/noted-refused"}, {http.MethodPost, "/noted"}, {http.MethodPost, "/noted"},
		{http.MethodGet, "/noted-refused"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, "http://"+listener.Addr().String()+request.path,
			strings.NewReader("x"))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	var own []senders.Outcome
	require.Eventually(t, func() bool { // it is noted after the answer
		own = nil
		sum := 0
		for _, o := range senders.Recent(time.Now()) {
			if strings.Contains(o.Endpoint, " :"+port+"/noted") {
				own, sum = append(own, o), sum+o.Count
			}
		}
		return sum == 3
	}, 30*time.Second, time.Millisecond)
	require.Len(t, own, 2)
	assert.Equal(t, senders.Request{Address: "127.0.0.1", Endpoint: "POST :" + port + "/noted-refused", Status: 400},
		own[0].Request)
	assert.Equal(t, "not a profile", own[0].Reason)
	assert.Equal(t, 200, own[1].Status)
	assert.Empty(t, own[1].Reason)
	assert.EqualValues(t, 1, collectortest.Sum(t, tel, failedRequests))
	assert.EqualValues(t, 1, collectortest.Sum(t, tel, failedRequests, "port", port, "status", "400"))
}

// denying is an authenticator that knows nobody.
type denying struct {
	component.StartFunc
	component.ShutdownFunc
}

func (denying) Authenticate(ctx context.Context, _ map[string][]string) (context.Context, error) {
	return ctx, errors.New("not the token")
}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// Calls over gRPC are noted and counted as requests over HTTP are: those of senders that may not send, and those of
// another service. A health check brings no data.
func TestRefusedCallsAreNoted(t *testing.T) {
	for method, want := range map[string]struct {
		isDenied bool
		code     codes.Code
		says     string
		status   int
	}{
		"/test/Export":                 {true, codes.Unauthenticated, "not the token", http.StatusUnauthorized},
		"/other/Export":                {false, codes.Unimplemented, "unknown service other: it is elsewhere", http.StatusNotFound},
		"/test/Other":                  {false, codes.Unimplemented, "unknown method Other for service test", http.StatusNotFound},
		"/grpc.health.v1.Health/Check": {false, codes.Unimplemented, "unknown service grpc.health.v1.Health", 0},
	} {
		t.Run(method, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			defer func() { assert.NoError(t, tel.Shutdown(context.Background())) }()
			address := startNoted(t, tel, want.isDenied)
			client, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.ForceCodecV2(RawCodec{})))
			require.NoError(t, err)
			defer func() { require.NoError(t, client.Close()) }()
			message, answer := []byte("x"), []byte(nil)
			err = client.Invoke(metadata.AppendToOutgoingContext(t.Context(), "authorization", "x"), method, &message, &answer)
			require.Equal(t, want.code, status.Code(err), err)
			assert.ErrorContains(t, err, want.says)
			_, port, err := net.SplitHostPort(address)
			require.NoError(t, err)
			isNoted := func() bool {
				return slices.ContainsFunc(senders.Recent(time.Now()), func(o senders.Outcome) bool {
					return o.Endpoint == "gRPC :"+port && (want.status == 0 || o.Status == want.status)
				})
			}
			if want.status == 0 {
				assert.Never(t, isNoted, 50*time.Millisecond, 10*time.Millisecond)
				return
			}
			require.Eventually(t, func() bool {
				return collectortest.Sum(t, tel, failedRequests, "status", strconv.Itoa(want.status)) == 1
			}, 10*time.Second, time.Millisecond)
			assert.True(t, isNoted())
		})
	}
}

// startNoted starts a server with a service "test", which allows all calls or denies them, and returns its address.
func startNoted(t *testing.T, tel *componenttest.Telemetry, isDenied bool) string {
	t.Helper()
	config := configgrpc.NewDefaultServerConfig()
	config.NetAddr.Endpoint, config.NetAddr.Transport = "127.0.0.1:0", "tcp"
	auth := component.MustNewID("denying")
	if isDenied {
		config.Auth = configoptional.Some(configauth.Config{AuthenticatorID: auth})
	}
	g := &GRPC{Config: &config, Services: map[string]Export{"test": nil}, Elsewhere: ": it is elsewhere"}
	require.NoError(t, g.Start(t.Context(),
		Env{Host: extensions{auth: denying{}}, Telemetry: tel.NewTelemetrySettings()}))
	t.Cleanup(func() { assert.NoError(t, g.Shutdown(context.Background())) })
	return g.Addr().String()
}
