// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// PrometheusTool returns the path of prometheus or promtool: in the folder PROMETHEUS, or built from its module, which
// takes minutes the first time. With E2E_PROMETHEUS=if-possible it is not built: the test uses the machine's own
// Prometheus, and is skipped without one.
func PrometheusTool(t testing.TB, name string) string {
	t.Helper()
	if folder := os.Getenv("PROMETHEUS"); folder != "" {
		return filepath.Join(folder, name)
	}
	if os.Getenv("E2E_PROMETHEUS") == "if-possible" {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("SKIPPED: %v; `make e2e-prometheus` builds it", err)
		}
		return path
	}
	goMod, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "-C", filepath.Join(filepath.Dir(string(goMod)), "internal/build/tools/prometheus"),
		"build", "-buildvcs=false", "-o", path, "github.com/prometheus/prometheus/cmd/"+name)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
