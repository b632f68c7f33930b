// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// setting matches a line of configuration that is commented out: a # with no space after it.
var setting = regexp.MustCompile(`(?m)^( *)#(\S)`)

// withSettings writes a copy of a configuration without the # of settings that are commented out, and returns its path.
func withSettings(t *testing.T, config string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, config))
	require.NoError(t, err)
	require.Regexp(t, setting, string(content))
	return newFile(t, filepath.Base(config), setting.ReplaceAll(content, []byte("$1$2")))
}

// identity is a self-signed certificate for loopback addresses, and its key.
type identity struct{ certFile, keyFile string }

func newIdentity(t *testing.T) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return identity{
		certFile: newFile(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		keyFile:  newFile(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// pool returns a pool of this certificate alone.
func (i identity) pool(t *testing.T) *x509.CertPool {
	t.Helper()
	certificate, err := os.ReadFile(i.certFile)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	return pool
}

// startSecuredBackend starts a backend with TLS that refuses requests without the token.
func startSecuredBackend(t *testing.T, as identity, token string) *backend {
	t.Helper()
	transport, err := credentials.NewServerTLSFromFile(as.certFile, as.keyFile)
	require.NoError(t, err)
	b := newBackend(t)
	b.start(t, grpc.Creds(transport), grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if got := metadata.ValueFromIncomingContext(ctx, "authorization"); len(got) != 1 || got[0] != "Bearer "+token {
				return nil, status.Error(codes.Unauthenticated, "no token")
			}
			return handle(ctx, request)
		}))
	return b
}

// TestTLSAndTokens turns on what config/agent.yaml and config/gateway.yaml have commented out: agent, gateway and backend
// use TLS, and gateway and backend accept only requests with a token.
func TestTLSAndTokens(t *testing.T) {
	gatewayIdentity, backendIdentity := newIdentity(t), newIdentity(t)
	agentsToken := newFile(t, "agents", []byte("token-of-another-agent\ntoken-of-agents\n"))
	agentToken := newFile(t, "agent", []byte("token-of-agents\n"))
	gatewayToken := newFile(t, "gateway", []byte("token-of-gateways\n"))

	to := startSecuredBackend(t, backendIdentity, "token-of-gateways")
	gateway := launch(t, withSettings(t, gatewayConfig),
		"TLS_CERT_FILE="+gatewayIdentity.certFile, "TLS_KEY_FILE="+gatewayIdentity.keyFile, "AGENTS_TOKEN_FILE="+agentsToken,
		"BACKEND_ENDPOINT="+to.address, "BACKEND_INSECURE=false", "BACKEND_CA_FILE="+backendIdentity.certFile,
		"BACKEND_TOKEN_FILE="+gatewayToken)
	agent := startBatching(t, withSettings(t, agentConfig),
		"BACKEND_ENDPOINT="+gateway.otlp, "BACKEND_INSECURE=false", "BACKEND_CA_FILE="+gatewayIdentity.certFile,
		"BACKEND_TOKEN_FILE="+agentToken)
	to.requireSamples(t, agent.sendAll(t, ""))

	// The same gateway refuses senders without the token, and without TLS.
	pd := profiletest.New().Resource("service.name", "stranger").Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "f")).Build()
	trusted, err := credentials.NewClientTLSFromFile(gatewayIdentity.certFile, "")
	require.NoError(t, err)
	require.Equal(t, codes.Unauthenticated, status.Code(export(dial(t, gateway.otlp, grpc.WithTransportCredentials(trusted)), pd)))
	require.Equal(t, codes.Unavailable, status.Code(export(dial(t, gateway.otlp), pd)))
	agent.Terminate(t)
	gateway.Terminate(t)
	require.NotContains(t, to.services(), "stranger")
}

// TestStandaloneWithTLSAndTokens turns on what config/standalone.yaml has commented out.
func TestStandaloneWithTLSAndTokens(t *testing.T) {
	as := newIdentity(t)
	tokens := newFile(t, "tokens", []byte("token-of-clients\n"))
	standalone := startBatching(t, withSettings(t, standaloneConfig),
		"TLS_CERT_FILE="+as.certFile, "TLS_KEY_FILE="+as.keyFile, "CLIENTS_TOKEN_FILE="+tokens,
		"BACKEND_CA_FILE="+as.certFile, "BACKEND_TOKEN_FILE="+tokens)
	secure := &http.Client{Timeout: startTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: as.pool(t)}}}
	defer secure.CloseIdleConnections()

	for authorization, want := range map[string]int{
		"":                        http.StatusUnauthorized,
		"Bearer token-of-agents":  http.StatusUnauthorized,
		"Bearer token-of-clients": http.StatusNoContent,
	} {
		body, err := os.Open(filepath.Join(repository, "testdata", "pprof", "go-cpu-labels.pb.gz"))
		require.NoError(t, err)
		defer body.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+standalone.endpoint+"/v1/pprof?service.name=shop", body)
		require.NoError(t, err)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		response, err := secure.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, authorization)
	}
	standalone.Terminate(t)
}
