// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kubernetesVersion is the version of the API server and of kubectl that the tests run.
const kubernetesVersion = "v1.36.3"

// kubernetesBinaries are the programs that the tests need of a cluster. There is no kubelet and no controller: the
// tests do their work.
type kubernetesBinaries struct{ etcd, apiserver, kubectl string }

// buildKubernetes builds them from their Go modules, with nothing but the Go toolchain, into the user's cache folder.
// The first time takes several minutes; later runs find them there.
func buildKubernetes(t *testing.T) kubernetesBinaries {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	module := filepath.Join(cache, "otelcol-profiles", "kubernetes-"+kubernetesVersion)
	bin := filepath.Join(module, "bin")
	binaries := kubernetesBinaries{
		etcd:      filepath.Join(bin, "server"), // named after the last part of its module's path
		apiserver: filepath.Join(bin, "kube-apiserver"),
		kubectl:   filepath.Join(bin, "kubectl"),
	}
	if _, err := os.Stat(bin); err == nil {
		return binaries
	}
	t.Logf("building the API server, etcd and kubectl in %s: several minutes, once", module)
	require.NoError(t, os.RemoveAll(module))
	require.NoError(t, os.MkdirAll(module, 0o755))
	writeKubernetesModule(t, module)

	stamp := "k8s.io/component-base/version"
	minor := strings.Split(kubernetesVersion, ".")[1]
	goCommand(t, module, "build", "-o", "built/", "-trimpath", "-ldflags",
		"-s -w -X "+stamp+".gitVersion="+kubernetesVersion+" -X "+stamp+".gitMajor=1 -X "+stamp+".gitMinor="+minor, "tool")
	// The next run looks for this name, so only a complete build gets it.
	require.NoError(t, os.Rename(filepath.Join(module, "built"), bin))
	return binaries
}

// writeKubernetesModule makes a module whose tools are the programs. Kubernetes' own go.mod requires its libraries at
// v0.0.0 and replaces them by folders of its repository, which the module does not contain. They are also published as
// modules, v0.x.y for v1.x.y.
func writeKubernetesModule(t *testing.T, module string) {
	t.Helper()
	goCommand(t, module, "mod", "init", "kubernetes.local")
	var downloaded struct{ GoMod string }
	require.NoError(t,
		json.Unmarshal(goCommand(t, module, "mod", "download", "-json", "k8s.io/kubernetes@"+kubernetesVersion), &downloaded))
	var kubernetes struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(t, json.Unmarshal(goCommand(t, module, "mod", "edit", "-json", downloaded.GoMod), &kubernetes))

	edit := []string{"mod", "edit"}
	etcd := ""
	for _, r := range kubernetes.Require {
		if r.Version == "v0.0.0" {
			edit = append(edit, "-replace="+r.Path+"="+r.Path+"@"+strings.Replace(kubernetesVersion, "v1.", "v0.", 1))
		}
		if r.Path == "go.etcd.io/etcd/client/v3" {
			etcd = r.Version // the server's version is that of the client that Kubernetes uses
		}
	}
	require.NotEmpty(t, etcd)
	goCommand(t, module, edit...)
	goCommand(t, module, "get", "-tool", "k8s.io/kubernetes/cmd/kube-apiserver@"+kubernetesVersion,
		"k8s.io/kubernetes/cmd/kubectl@"+kubernetesVersion, "go.etcd.io/etcd/server/v3@"+etcd)
}

// goCommand runs the Go command, and returns its standard output.
func goCommand(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var problem strings.Builder
	command.Stderr = &problem
	out, err := command.Output()
	require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), &problem)
	return out
}
