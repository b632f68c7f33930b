// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Program is a running program of StartProgram.
type Program struct {
	// Line is the first line that it wrote.
	Line string
	// Stop ends it, as the end of the test does.
	Stop   func()
	input  io.WriteCloser
	output *bufio.Reader
}

// StartProgram starts a program that writes a line when it is ready, and ends when its standard input does.
func StartProgram(t testing.TB, program *exec.Cmd) *Program {
	t.Helper()
	if program.Stderr == nil {
		program.Stderr = os.Stderr
	}
	stdin, err := program.StdinPipe()
	require.NoError(t, err)
	stdout, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	p := &Program{input: stdin, output: bufio.NewReader(stdout)}
	p.Stop = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = program.Wait()
	})
	t.Cleanup(p.Stop)
	p.Line = p.readLine(t)
	return p
}

// Next writes a line to the program, and returns the one that it answers with.
func (p *Program) Next(t testing.TB) string {
	t.Helper()
	_, err := p.input.Write([]byte{'\n'})
	require.NoError(t, err)
	return p.readLine(t)
}

func (p *Program) readLine(t testing.TB) string {
	t.Helper()
	line, err := p.output.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}
