// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
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
			payload := profiletest.FileBytes(b, file)
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
