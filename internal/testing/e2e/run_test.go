// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// freshMake keeps a make that may have started these tests from passing its flags and variables to another one.
var freshMake = []string{"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL="}

// run runs a command with further variables to its end, and returns what it printed.
func run(dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// requireRun is run for a command that must succeed.
func requireRun(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := run(dir, env, name, args...)
	require.NoError(t, err, "%s %v\n%s", name, args, out)
	return out
}

// runBinary runs a build of the collector to its end, in the root of the repository, and returns all that it printed.
func runBinary(t *testing.T, build func() (string, error), args ...string) (string, error) {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return run(repository, nil, path, args...)
}

// command runs the full build with args.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runBinary(t, collectortest.Binary, args...)
}

// requireValid lets the binary validate configurations, each of which overrides those before it.
func requireValid(t *testing.T, configs ...string) {
	t.Helper()
	args := []string{"validate"}
	for _, config := range configs {
		args = append(args, "--config", config)
	}
	out, err := command(t, args...)
	require.NoError(t, err, "%v\n%s", configs, out)
}

// newFile writes a file to a folder of its own, and returns its path.
func newFile(t testing.TB, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	return file
}
