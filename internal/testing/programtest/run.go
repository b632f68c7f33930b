// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// Program is a program of Build as it runs: it writes its own profiles to files. Next has it allocate and wait some
// more, and write them again.
type Program struct {
	*collectortest.Program
	PID int
	// Dir is its first argument, where it writes its profiles.
	Dir string
}

// Start starts the program, and returns when it has written its profiles. The end of the test ends it.
func Start(t testing.TB, path string, args ...string) *Program {
	t.Helper()
	dir := t.TempDir()
	command := exec.Command(path, append([]string{dir}, args...)...)
	started := collectortest.StartProgram(t, command)
	return &Program{Program: started, PID: command.Process.Pid, Dir: dir}
}

// Profile returns the profile heap, block or mutex that the program wrote last.
func (p *Program) Profile(t testing.TB, name string) *profile.Profile {
	file, err := os.Open(filepath.Join(p.Dir, name))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	own, err := profile.Parse(file)
	require.NoError(t, err)
	return own
}
