// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// uncommented writes a copy of a configuration without the marks that comment lines out, and returns its path.
func uncommented(t *testing.T, config string, marks ...string) string {
	t.Helper()
	return newFile(t, filepath.Base(config), []byte(collectortest.Uncommented(t, config, marks...)))
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
	certificate := profiletest.FileBytes(t, i.certFile)
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

// TestTLSAndTokens uncomments lines of config/agent.yaml and config/gateway.yaml: agent, gateway and backend
// use TLS, and gateway and backend accept only requests with a token. TestEveryDoorIsClosed has who lacks them.
func TestTLSAndTokens(t *testing.T) {
	t.Parallel()
	gatewayIdentity, backendIdentity := newIdentity(t), newIdentity(t)
	agentsToken := newFile(t, "agents", []byte("token-of-another-agent\ntoken-of-agents\n"))
	agentToken := newFile(t, "agent", []byte("token-of-agents\n"))
	gatewayToken := newFile(t, "gateway", []byte("token-of-gateways\n"))

	to := startSecuredBackend(t, backendIdentity, "token-of-gateways")
	gateway := launch(t, uncommented(t, gatewayConfig, collectortest.Doors, collectortest.Backend),
		"TLS_CERT_FILE="+gatewayIdentity.certFile, "TLS_KEY_FILE="+gatewayIdentity.keyFile, "AGENTS_TOKEN_FILE="+agentsToken,
		"BACKEND_ENDPOINT="+to.address, "BACKEND_INSECURE=false", "BACKEND_CA_FILE="+backendIdentity.certFile,
		"BACKEND_TOKEN_FILE="+gatewayToken)
	agent := startBatching(t, uncommented(t, agentConfig, collectortest.Backend),
		"BACKEND_ENDPOINT="+gateway.otlp, "BACKEND_INSECURE=false", "BACKEND_CA_FILE="+gatewayIdentity.certFile,
		"BACKEND_TOKEN_FILE="+agentToken)
	to.requireSamples(t, agent.sendAll(t, ""))
	agent.Terminate(t)
	gateway.Terminate(t)
}
