// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package programtest builds and starts programs whose symbols and memory tests read from outside. Only tests import
// it.
package programtest

import (
	"bytes"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata
var testdata embed.FS

func source(t testing.TB, name string) []byte {
	content, err := testdata.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return content
}

// Compile builds a C, C++ or Rust program of testdata, and returns its path. The test is skipped if there is no
// compiler.
func Compile(t testing.TB, compiler, name string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, name, source(t, name))
	run(t, dir, nil, compiler, append(append([]string{"-o", "program"}, flags...), name)...)
	return filepath.Join(dir, "program")
}

// Go builds the Go program shop of testdata with more variables in its environment, such as GOARCH=arm64. It has
// debugging information, which the Makefile's GOFLAGS leave out.
func Go(t testing.TB, env []string, flags ...string) string {
	t.Helper()
	return BuildSource(t, source(t, "shop.go"), env, append([]string{"-gcflags=all="}, flags...)...)
}

// Build builds the Go program that Start starts, and returns its path.
func Build(t testing.TB, env []string, flags ...string) string {
	t.Helper()
	return BuildSource(t, source(t, "program/main.go"), env, flags...)
}

// BuildSource builds a Go program in a module of its own, since this one asks for a new version of Go.
func BuildSource(t testing.TB, source []byte, env []string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "main.go", source)
	write(t, dir, "go.mod", []byte("module program\n\ngo 1.18\n"))
	run(t, dir, env, "go", append(append([]string{"build", "-o", "program"}, flags...), "main.go")...)
	return filepath.Join(dir, "program")
}

// BuildLibrary builds the program of Build as a library, and a program in C that runs it, whose path it returns.
func BuildLibrary(t testing.TB, mode string) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	exported := bytes.Replace(source(t, "program/main.go"), []byte("package main\n"),
		[]byte("package main\n\nimport \"C\"\n"), 1)
	exported = append(exported, "\n//export Run\nfunc Run() { main() }\n"...)
	library := BuildSource(t, exported, []string{"CGO_ENABLED=1"}, "-buildmode="+mode)
	dir := filepath.Dir(library)
	write(t, dir, "host.c", []byte("void Run(); int main() { Run(); }"))
	run(t, dir, nil, "cc", "-o", "host", "host.c", library, "-lpthread")
	return filepath.Join(dir, "host")
}

// Changed returns a copy of a program on which a command was run, such as strip.
func Changed(t testing.TB, program string, command ...string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, dir, "program", content)
	run(t, dir, nil, command[0], append(command[1:], "program")...)
	return filepath.Join(dir, "program")
}

func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o755))
}

// run runs a command in a folder. The test is skipped if there is no such command.
func run(t testing.TB, dir string, env []string, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s here", name)
	}
	command := exec.Command(name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
}
