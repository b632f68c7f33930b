// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// startPlain starts a collector with an OTLP receiver over gRPC.
func startPlain(b *testing.B, pipeline, exporter string) *collector {
	b.Helper()
	path, err := collectortest.Binary()
	require.NoError(b, err)
	c := &collector{}
	c.endpoint = freeAddress(b)
	config := newFile(b, "config.yaml", fmt.Appendf(nil, `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %s, max_recv_msg_size_mib: 64}
processors:
  dictionary_dedup: {acknowledge: batched} # four senders that wait for a delivery would wait for the timeout
exporters:
  %s
service:
  telemetry:
    metrics: {level: none}
  pipelines:
    profiles:
      %s
`, c.endpoint, exporter, pipeline))
	c.command = exec.Command(path, "--config", config)
	c.start(b, config)
	return c
}

// counter is a TCP proxy that counts the bytes that clients send.
type counter struct {
	address string
	bytes   atomic.Int64
}

func startCounter(b *testing.B, to string) *counter {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(b, err)
	b.Cleanup(func() { _ = listener.Close() })
	c := &counter{address: listener.Addr().String()}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				return
			}
			go func() {
				defer onward.Close()
				_, _ = io.Copy(onward, io.TeeReader(from, c))
			}()
			go func() {
				defer from.Close()
				_, _ = io.Copy(from, onward)
			}()
		}
	}()
	return c
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// cpuSeconds returns the processor time that the process has used so far, from /proc.
func (c *collector) cpuSeconds(b testing.TB) float64 { return cpuSeconds(b, c.Pid) }

func cpuSeconds(b testing.TB, pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	ticks := 0.0
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.ParseFloat(field, 64)
		require.NoError(b, err)
		ticks += n
	}
	return ticks / 100 // USER_HZ
}

// endAndMeasure stops the process in order, and returns all the processor time that it has used.
func (c *collector) endAndMeasure(b *testing.B) float64 {
	require.NoError(b, c.Signal(syscall.SIGTERM))
	<-c.Exited
	require.NoError(b, c.ExitErr, "%s", c.Log)
	state := c.State
	return (state.UserTime() + state.SystemTime()).Seconds()
}
