// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WantedBy skips the test unless a variable, which a target of the Makefile sets, is there. It reports whether the test
// can be skipped if something that it needs is missing.
func WantedBy(t testing.TB, variable string) (ifPossible bool) {
	t.Helper()
	switch os.Getenv(variable) {
	case "":
		t.Skipf("`make %s` runs this", strings.ReplaceAll(strings.ToLower(variable), "_", "-"))
	case "if-possible":
		return true
	}
	return false
}

// InstallNPM copies a folder with a package.json, and installs what it names. The test is skipped as WantedBy has it.
func InstallNPM(t testing.TB, variable string, folder fs.FS) (copied string) {
	t.Helper()
	ifPossible := WantedBy(t, variable)
	copied = t.TempDir()
	require.NoError(t, os.CopyFS(copied, folder))
	command := "ci"
	if _, err := os.Stat(filepath.Join(copied, "package-lock.json")); err != nil {
		command = "install" // of exact versions, where registries lack the packages of other platforms that a lock would name
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", command, "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	npm.Dir = copied
	out, err := npm.CombinedOutput()
	if err != nil && ifPossible {
		t.Skipf("SKIPPED: what package.json names cannot be installed, which takes npm, node and a registry: %v\n%s", err,
			out)
	}
	require.NoError(t, err, "%s", out)
	return copied
}
