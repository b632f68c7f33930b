// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// cluster is a Kubernetes API server, with RBAC and the admission plugins that are on by default (Pod Security among
// them), and etcd behind it.
type cluster struct {
	host, port string
	// caFile has the certificate of the authority that signed the API server's.
	caFile string
	// admin may do everything.
	admin *kubernetes.Clientset

	kubectlPath, kubeconfig string
}

// adminToken is the administrator's token. The API server listens on loopback only.
const adminToken = "administrator"

// startCluster starts both, and stops them when the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	binaries := buildKubernetes(t)
	dir := t.TempDir()
	etcd, peers, server := freeAddress(t), freeAddress(t), freeAddress(t)
	collectortest.Start(t, exec.Command(binaries.etcd,
		"--log-level=error", "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers,
		"--initial-cluster=default=http://"+peers), "etcd")

	host, port, err := net.SplitHostPort(server)
	require.NoError(t, err)
	c := &cluster{
		host: host, port: port,
		caFile:      filepath.Join(dir, "certificates", "apiserver.crt"),
		kubectlPath: binaries.kubectl,
		kubeconfig:  filepath.Join(dir, "kubeconfig"),
	}
	tokens := newFile(t, "tokens.csv", []byte(adminToken+",administrator,administrator,system:masters\n"))
	key := serviceAccountKey(t)
	collectortest.Start(t, exec.Command(binaries.apiserver,
		"--etcd-servers=http://"+etcd,
		"--bind-address="+host, "--secure-port="+port,
		"--endpoint-reconciler-type=none", // others need an address that is not of loopback
		"--cert-dir="+filepath.Dir(c.caFile),
		"--authorization-mode=RBAC", "--token-auth-file="+tokens,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key), "kube-apiserver")
	c.connect(t)
	return c
}

// connect waits until the API server is ready.
func (c *cluster) connect(t *testing.T) {
	t.Helper()
	var reason error
	require.Eventually(t, func() bool {
		c.admin, reason = kubernetes.NewForConfig(c.as(adminToken))
		if reason == nil {
			_, reason = c.admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		}
		return reason == nil
	}, 3*time.Minute, 200*time.Millisecond, "the API server is not ready: %v", reason)
	require.NoError(t, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: administrator, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: administrator}}]
current-context: test
`, net.JoinHostPort(c.host, c.port), c.caFile, adminToken), 0o600))
}

// as returns the configuration of a client with a token.
func (c *cluster) as(token string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(c.host, c.port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.caFile},
	}
}

// kubectl runs kubectl as the administrator, in the root of the repository.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return requireRun(t, repository, nil, c.kubectlPath, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
}

// serviceAccountKey writes a key to sign the tokens of service accounts with, and returns its path.
func serviceAccountKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return newFile(t, "service-account.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}
