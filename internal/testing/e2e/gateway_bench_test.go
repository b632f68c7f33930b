// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// BenchmarkGateway sends captured profiles of a few services to a gateway, which sends them to a second collector, with
// and without dictionary_dedup. It reports samples per second, the gateway's processor time and bytes sent for each
// sample, and its largest resident set.
func BenchmarkGateway(b *testing.B) {
	for _, processors := range []string{"", "dictionary_dedup"} {
		for _, compression := range []string{"none", "gzip", "zstd"} {
			b.Run(fmt.Sprintf("processors=[%s]/%s", processors, compression), gatewayBench{processors, compression}.run)
		}
	}
}

type gatewayBench struct{ processors, compression string }

func (g gatewayBench) run(b *testing.B) {
	last := startPlain(b, "receivers: [otlp]\n      exporters: [nop]", "nop:")
	wire := startCounter(b, last.endpoint)
	gateway := startPlain(b, "receivers: [otlp]\n      processors: ["+g.processors+"]\n      exporters: [otlp_grpc]",
		"otlp_grpc:\n    endpoint: "+wire.address+"\n    compression: "+g.compression+"\n    tls: {insecure: true}\n"+
			"    sending_queue: {block_on_overflow: true}")
	client, messages := dial(b, gateway.endpoint), benchMessages(b)

	const senders = 4
	var samples atomic.Int64
	cpuBefore := gateway.cpuSeconds(b)
	start := time.Now()
	for b.Loop() {
		var running sync.WaitGroup
		for sender := range senders {
			running.Go(func() {
				for i := range messages {
					pd := messages[(i+sender*7)%len(messages)]
					if err := export(client, pd); err != nil {
						b.Error(err)
					}
					samples.Add(int64(pd.SampleCount()))
				}
			})
		}
		running.Wait()
	}
	peak := gateway.peakMiB(b)
	// At its end the gateway sends its batch and queue. That time counts.
	cpu := gateway.endAndMeasure(b) - cpuBefore
	seconds := time.Since(start).Seconds()
	b.ReportMetric(float64(samples.Load())/seconds, "samples/s")
	b.ReportMetric(cpu*1e9/float64(samples.Load()), "gateway-cpu-ns/sample")
	b.ReportMetric(float64(wire.bytes.Load())/float64(samples.Load()), "wire-B/sample")
	b.ReportMetric(peak, "peak-MiB")
}

// benchMessages returns the captured profiles except for the huge ones, for several services and times.
func benchMessages(b *testing.B) []pprofile.Profiles {
	files, err := filepath.Glob(filepath.Join(repository, "testdata", "pprof", "*.pb.gz"))
	require.NoError(b, err)
	var messages []pprofile.Profiles
	for round := range 10 {
		for _, file := range files {
			if strings.Contains(file, "go-compile-") {
				continue
			}
			payload, err := os.ReadFile(file)
			require.NoError(b, err)
			pd, _, err := decode.Decode(payload, decode.Options{})
			require.NoError(b, err)
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", round%3))
			for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
				p.SetTime(p.Time() + 1)
			}
			messages = append(messages, pd)
		}
	}
	return messages
}

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
