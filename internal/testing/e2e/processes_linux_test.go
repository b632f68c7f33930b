// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestProcesses has config/host.yaml show memory and locks of a Go program and of a JVM that nobody has prepared, under
// one name each. The collector is killed meanwhile, and another one goes on; at last nothing of it is left in the JVM.
// It reads all processes of the machine, hence only `make e2e-processes` runs it.
func TestProcesses(t *testing.T) {
	collectortest.WantedBy(t, "E2E_PROCESSES")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "inside-go")
	for _, command := range [][]string{
		{"go", "build", "-ldflags=-s -w", "-o", program, repository + "/internal/testing/programtest/testdata/program/main.go"},
		{"javac", "-d", dir, repository + "/receiver/processesreceiver/internal/hotspot/testdata/Burn.java"},
	} {
		requireRun(t, ".", nil, command[0], command[1:]...)
	}
	collectortest.StartProgram(t, exec.Command(program, t.TempDir(), "collect"))
	java := exec.Command("java", "-Xmx128m", "-Dotel.service.name=inside-java", "-cp", dir, "Burn")
	java.Dir = "/"
	if os.Getuid() == 0 {
		java.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	collectortest.StartProgram(t, java)

	binary, err := collectortest.Binary()
	require.NoError(t, err)
	command := []string{binary, "--config", hostConfig, "--config", fmt.Sprintf(
		"yaml:{receivers: {processes: {include: [{command_line: '^%s '}, {command_line: ' -Dotel.service.name=inside-java '}]}}}", program)}
	for _, end := range []func(*collector){
		func(c *collector) { c.Kill() },
		func(c *collector) { c.Terminate(t) },
	} {
		c := newCollector(t, command, "PROCESSES_INTERVAL=2s", "EBPF_BATCH_TIMEOUT=1s", "EBPF_ON_UNAVAILABLE=retry")
		c.start(t, "the collector with "+hostConfig)
		requireFunction(t, c, "inside-go", "memory", "main.retain")
		requireFunction(t, c, "inside-java", "memory", "Burn.allocate")
		requireFunction(t, c, "inside-java", "process_cpu", "Burn.hot")
		requireFunction(t, c, "inside-java", "mutex", "Burn.hold")
		end(c)
	}
	out, err := exec.Command("jcmd", fmt.Sprint(java.Process.Pid), "JFR.check").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "otelcol-profiles")
	left, err := filepath.Glob("/tmp/otelcol-profiles-*.j*")
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.NoError(t, java.Process.Signal(syscall.Signal(0)))
}

// requireFunction waits until the page has a function in a profile of a service.
func requireFunction(t *testing.T, c *collector, service, name, function string) {
	t.Helper()
	require.Eventually(t, func() bool {
		body, err := get("http://" + c.graphs + "/profiles/" + service + "/" + name + "?seconds=600")
		if err != nil {
			return false
		}
		p, err := profile.ParseData([]byte(body))
		return err == nil &&
			slices.ContainsFunc(p.Function, func(f *profile.Function) bool { return f.Name == function })
	}, 90*time.Second, 500*time.Millisecond, "%s of %s has %s", name, service, function)
}
