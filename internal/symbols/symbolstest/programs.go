// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbolstest builds the programs whose symbols tests look for. Only tests import it.
package symbolstest

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed testdata
var programs embed.FS

// Compile builds a C or C++ program of testdata, and returns its path. The test is skipped if there is no compiler.
func Compile(tb testing.TB, compiler, source string, flags ...string) string {
	tb.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		tb.Skipf("no %s here", compiler)
	}
	program := filepath.Join(tb.TempDir(), "program")
	run(tb, nil, compiler, append(append([]string{"-o", program}, flags...), write(tb, source))...)
	return program
}

// Go builds the Go program of testdata with more variables in its environment, such as GOARCH=arm64. It has debugging
// information, which the Makefile's GOFLAGS leave out.
func Go(tb testing.TB, env []string, flags ...string) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "program")
	run(tb, env, "go",
		append(append([]string{"build", "-gcflags=all=", "-o", program}, flags...), write(tb, "shop.go"))...)
	return program
}

// Changed returns a copy of a file on which a command was run, such as strip.
func Changed(tb testing.TB, program string, command ...string) string {
	tb.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		tb.Skipf("no %s here", command[0])
	}
	b, err := os.ReadFile(program)
	if err != nil {
		tb.Fatal(err)
	}
	to := filepath.Join(tb.TempDir(), "program")
	if err := os.WriteFile(to, b, 0o755); err != nil {
		tb.Fatal(err)
	}
	run(tb, nil, command[0], append(command[1:], to)...)
	return to
}

func write(tb testing.TB, source string) string {
	b, err := programs.ReadFile("testdata/" + source)
	if err != nil {
		tb.Fatal(err)
	}
	name := filepath.Join(tb.TempDir(), source)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func run(tb testing.TB, env []string, name string, args ...string) {
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}
