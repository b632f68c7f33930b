// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	benchTargets  = 30 // of a node
	benchServices = 10 // to which they belong
	paced         = 15 * time.Second / benchTargets / 5
)

// BenchmarkFleet sends what 30 targets of 10 services of a node give in one interval, each a CPU, an allocation, a
// goroutine, a block and a mutex profile, through an agent and a gateway with the configurations of this repository. It
// reports the processor time of each for one profile, and the bytes that leave each.
func BenchmarkFleet(b *testing.B) {
	b.Run("agent+gateway/unpaced", func(b *testing.B) { benchAgentAndGateway(b, fleet{}) })
	// As fast as it happens in earnest: what an agent merges depends on how long it waits for more.
	for _, timeout := range []string{"1s", "2s", "5s", "15s"} {
		b.Run("agent+gateway/paced/timeout="+timeout, func(b *testing.B) {
			b.Setenv("BATCH_TIMEOUT", timeout)
			benchAgentAndGateway(b, fleet{pause: paced})
		})
	}
	b.Run("agent+kafka+gateway/unpaced", func(b *testing.B) { benchKafka(b, fleet{}) })
	b.Run("agent+kafka+gateway/paced/timeout=5s", func(b *testing.B) {
		b.Setenv("BATCH_TIMEOUT", "5s")
		benchKafka(b, fleet{pause: paced})
	})
}

func benchAgentAndGateway(b *testing.B, f fleet) {
	if f.pause == 0 {
		b.Setenv("ACKNOWLEDGE", "batched") // else senders would wait for batches that are not full
	}
	var samples atomic.Int64
	wire := startCounter(b, startSink(b, &samples))
	f.gateway = launch(b, gatewayConfig, "BACKEND_ENDPOINT="+wire.address)
	agentWire := startCounter(b, f.gateway.otlp)
	f.agent = launch(b, agentConfig, "BACKEND_ENDPOINT="+agentWire.address)
	f.samples = &samples
	f.agentBytes, f.gatewayBytes = agentWire.bytes.Load, wire.bytes.Load
	benchFleet(b, f)
}

func benchKafka(b *testing.B, f fleet) {
	if f.pause == 0 {
		b.Setenv("ACKNOWLEDGE", "batched")
	}
	var samples atomic.Int64
	wire := startCounter(b, startSink(b, &samples))
	address := freeAddress(b)
	startKafka(b, address)
	broker := "KAFKA_BROKERS=" + address
	f.agent = launch(b, kafkaAgentConfig, broker)
	f.gateway = launch(b, kafkaGatewayConfig, broker, "BACKEND_ENDPOINT="+wire.address)
	f.samples, f.gatewayBytes = &samples, wire.bytes.Load
	f.agentBytes = func() int64 { return f.agent.metric(b, "otelcol_kafka_exporter_bytes") }
	benchFleet(b, f)
}

// fleet is what benchFleet sends through.
type fleet struct {
	// pause is between two profiles; without it, so many are under way at any time that batches are full before their time
	// is up.
	pause time.Duration

	agent, gateway           *collector
	agentBytes, gatewayBytes func() int64
	// samples counts what has arrived at the end.
	samples *atomic.Int64
}

func benchFleet(b *testing.B, f fleet) {
	rounds := benchPayloads(b)
	agentBefore, gatewayBefore := f.agent.cpuSeconds(b), f.gateway.cpuSeconds(b)
	var sent, sentBytes, sentSamples int64
	for b.Loop() {
		payloads := rounds[int(sent)/len(rounds[0])%len(rounds)]
		f.send(b, payloads)
		for _, p := range payloads {
			sentBytes += int64(len(p.body))
			sentSamples += int64(p.samples)
		}
		sent += int64(len(payloads))
	}
	require.Eventually(b, func() bool { return f.samples.Load() >= sentSamples }, startTimeout, 50*time.Millisecond,
		"every sample arrives: %d", sentSamples)
	agentBytes, gatewayBytes := f.agentBytes(), f.gatewayBytes()
	queued := f.agent.metric(b, "otelcol_processor_dictionary_dedup_outgoing_bytes")
	agentPeak, gatewayPeak := f.agent.peakMiB(b), f.gateway.peakMiB(b)
	agentCPU := f.agent.endAndMeasure(b) - agentBefore
	gatewayCPU := f.gateway.endAndMeasure(b) - gatewayBefore
	require.Equal(b, sentSamples, f.samples.Load(), "each once")
	n := float64(sent)
	b.ReportMetric(float64(sentBytes)/n, "pprof-B/profile")
	b.ReportMetric(float64(f.samples.Load())/n, "samples/profile")
	b.ReportMetric(agentCPU*1e6/n, "agent-cpu-µs/profile")
	b.ReportMetric(float64(queued)/n, "agent-queued-B/profile")
	b.ReportMetric(float64(agentBytes)/n, "agent-out-B/profile")
	b.ReportMetric(agentPeak, "agent-peak-MiB")
	b.ReportMetric(gatewayCPU*1e6/n, "gateway-cpu-µs/profile")
	b.ReportMetric(float64(gatewayBytes)/n, "gateway-out-B/profile")
	b.ReportMetric(gatewayPeak, "gateway-peak-MiB")
}

func (f fleet) send(b *testing.B, payloads []benchPayload) {
	var running sync.WaitGroup
	defer running.Wait()
	if f.pause > 0 {
		for tick, i := time.NewTicker(f.pause), 0; i < len(payloads); i++ {
			<-tick.C
			running.Go(func() { pushBench(b, f.agent.endpoint, payloads[i]) })
		}
		return
	}
	const senders = 256
	for sender := range senders {
		running.Go(func() {
			for i := sender; i < len(payloads); i += senders {
				pushBench(b, f.agent.endpoint, payloads[i])
			}
		})
	}
}

// startSink is a backend that counts the samples of the targets and keeps nothing. It gives its address.
func startSink(b *testing.B, samples *atomic.Int64) string {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(b, err)
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, &sink{samples: samples})
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(server.Stop)
	return listener.Addr().String()
}

type sink struct {
	pprofileotlp.UnimplementedGRPCServer
	samples *atomic.Int64
}

func (s *sink) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	for _, rp := range request.Profiles().ResourceProfiles().All() {
		if name, _ := rp.Resource().Attributes().Get("service.name"); !strings.HasPrefix(name.Str(), "service-") {
			continue // the agent's own
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				s.samples.Add(int64(p.Samples().Len()))
			}
		}
	}
	return pprofileotlp.NewExportResponse(), nil
}

// metric sums up the series of one of the collector's own metrics.
func (c *collector) metric(b *testing.B, name string) (sum int64) {
	page := c.ownMetrics(b)
	for _, series := range regexp.MustCompile(`(?m)^`+name+`\{.*\} (\S+)$`).FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(series[1], 64)
		require.NoError(b, err)
		sum += int64(value)
	}
	require.Positive(b, sum, "%s\n%s", name, page)
	return sum
}

// peakMiB is the largest resident set that the process has had.
func (c *collector) peakMiB(b *testing.B) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	require.NoError(b, err)
	return kib / 1024
}

type benchPayload struct {
	query   string
	body    []byte
	samples int
}

// benchClient keeps its connections, as each target keeps its own.
var benchClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 5 * benchTargets}}

func pushBench(b *testing.B, address string, p benchPayload) {
	response, err := benchClient.Post("http://"+address+"/v1/pprof?"+p.query, "application/octet-stream",
		bytes.NewReader(p.body))
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		answer, _ := io.ReadAll(response.Body)
		b.Errorf("status %d: %s", response.StatusCode, answer)
	}
}

// benchPayloads makes the profiles of the targets in several intervals of captured ones. The functions of an
// application are named after its service, so that services have only the libraries in common; of the samples, each
// target and interval has another seven tenths, with other values.
func benchPayloads(b *testing.B) (rounds [][]benchPayload) {
	random := rand.New(rand.NewPCG(1, 2))
	captured := map[string]*profile.Profile{}
	kinds := []string{"go-cpu-labels", "go-allocs", "go-goroutine", "go-block", "go-mutex"}
	for _, kind := range kinds {
		body := profiletest.FileBytes(b, filepath.Join(repository, "testdata", "pprof", kind+".pb.gz"))
		captured[kind] = profiletest.ParsePprof(b, body)
	}
	for range 4 {
		var payloads []benchPayload
		for target := range benchTargets {
			service := fmt.Sprint("service-", target%benchServices)
			for _, kind := range kinds {
				body := benchVariant(b, captured[kind], service, random)
				pd, _, err := decode.Decode(body, decode.Options{})
				require.NoError(b, err)
				payloads = append(payloads, benchPayload{
					query: fmt.Sprintf("service.name=%s&service.instance.id=%d", service, target),
					body:  body, samples: pd.SampleCount(),
				})
			}
		}
		random.Shuffle(len(payloads), func(i, j int) { payloads[i], payloads[j] = payloads[j], payloads[i] })
		rounds = append(rounds, payloads)
	}
	return rounds
}

// ofLibraries matches names of functions that all services have.
var ofLibraries = regexp.MustCompile(`^(runtime|net|sync|io|bufio|bytes|crypto|encoding|compress|internal|reflect|syscall|os|fmt|sort|strconv|strings|time)\b`)

func benchVariant(b testing.TB, captured *profile.Profile, service string, random *rand.Rand) []byte {
	p := captured.Copy()
	for _, f := range p.Function {
		if !ofLibraries.MatchString(f.Name) {
			f.Name, f.SystemName = service+"/"+f.Name, service+"/"+f.SystemName
		}
	}
	kept := p.Sample[:0]
	for _, sample := range p.Sample {
		if random.IntN(10) < 7 {
			for i := range sample.Value {
				sample.Value[i] += random.Int64N(1 + sample.Value[i]/4)
			}
			kept = append(kept, sample)
		}
	}
	p.Sample = kept
	p.TimeNanos += random.Int64N(1e15)
	var body bytes.Buffer
	require.NoError(b, p.Compact().Write(&body))
	return body.Bytes()
}
