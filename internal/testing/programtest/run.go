// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package programtest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// Program is a program of Build as it runs: it writes its own profiles to files.
type Program struct {
	PID int
	// Dir is its first argument, where it writes its profiles.
	Dir string
	// Stop ends it.
	Stop   func()
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// Start starts the program, and returns when it has written its profiles. The end of the test ends it.
func Start(t testing.TB, path string, args ...string) *Program {
	p := &Program{Dir: t.TempDir()}
	command := exec.Command(path, append([]string{p.Dir}, args...)...)
	command.Stderr = os.Stderr
	var err error
	p.stdin, err = command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(t, command.Start())
	p.Stop = sync.OnceFunc(func() {
		_ = p.stdin.Close()
		_ = command.Wait()
	})
	t.Cleanup(p.Stop)
	p.PID = command.Process.Pid
	p.wait(t)
	return p
}

func (p *Program) wait(t testing.TB) {
	_, err := p.stdout.ReadString('\n')
	require.NoError(t, err)
}

// Next has the program allocate and wait some more, and write its profiles again.
func (p *Program) Next(t testing.TB) {
	_, err := p.stdin.Write([]byte{'\n'})
	require.NoError(t, err)
	p.wait(t)
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
