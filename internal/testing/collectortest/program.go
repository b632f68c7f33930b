// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// StartProgram starts a program that writes a line when it is ready, and ends when its standard input does. It returns
// the line. stop ends the program, as the end of the test does.
func StartProgram(t testing.TB, program *exec.Cmd) (line string, stop func()) {
	t.Helper()
	if program.Stderr == nil {
		program.Stderr = os.Stderr
	}
	stdin, err := program.StdinPipe()
	require.NoError(t, err)
	stdout, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = stdin.Close()
			_ = program.Wait()
		}
	}
	t.Cleanup(stop)
	line, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line), stop
}
