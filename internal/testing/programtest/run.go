// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package programtest builds and starts a Go program that writes its own profiles to files, for tests that read them
// from outside. Only tests import it.
package programtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/program/main.go
var source []byte

// Build builds the program, and returns its path.
func Build(t testing.TB, env []string, flags ...string) string {
	return BuildSource(t, source, env, flags...)
}

// BuildSource builds a program in a module of its own, since this one asks for a new version of Go.
func BuildSource(t testing.TB, source []byte, env []string, flags ...string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module program\n\ngo 1.18\n"), 0o600))
	compile := exec.Command("go", append(append([]string{"build", "-o", "program"}, flags...), "main.go")...)
	compile.Dir, compile.Env = dir, append(os.Environ(), env...)
	out, err := compile.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "program")
}

// BuildLibrary builds the program as a library, and a program in C that runs it, whose path it returns.
func BuildLibrary(t testing.TB, mode string) string {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	exported := bytes.Replace(source, []byte("package main\n"), []byte("package main\n\nimport \"C\"\n"), 1)
	exported = append(exported, "\n//export Run\nfunc Run() { main() }\n"...)
	library := BuildSource(t, exported, []string{"CGO_ENABLED=1"}, "-buildmode="+mode)
	host := filepath.Join(filepath.Dir(library), "host")
	require.NoError(t, os.WriteFile(host+".c", []byte("void Run(); int main() { Run(); }"), 0o600))
	out, err := exec.Command("cc", "-o", host, host+".c", library, "-lpthread").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return host
}

// Program is the program as it runs.
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
