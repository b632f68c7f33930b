// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const (
	kafkaAgentConfig   = "config/kafka-agent.yaml"
	kafkaGatewayConfig = "config/kafka-gateway.yaml"
	kafkaTopic         = "otlp_profiles"
	kafkaPartitions    = 8
)

// startKafka starts a broker at an address, with the topic as config/kafka-agent.yaml wants it.
func startKafka(t *testing.T, address string, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(number), kfake.SeedTopics(kafkaPartitions, kafkaTopic),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

// startKafkaAgent starts config/kafka-agent.yaml, or one made of it. Its endpoint is that of OTLP over gRPC.
func startKafkaAgent(t *testing.T, config, broker, storage string, env ...string) *everything {
	t.Helper()
	e := &everything{otlp: freeAddress(t), health: freeAddress(t)}
	pprof := freeAddress(t)
	e.collector = launchWith(t, pprof, "", config, []string{
		// The test's clients send little, and do not wait as long as one would in earnest.
		"--set=processors.dictionary_dedup.timeout=50ms",
		"--set=processors.dictionary_dedup.send_batch_size=100",
		"--set=exporters.kafka.retry_on_failure.initial_interval=50ms",
		"--set=exporters.kafka.retry_on_failure.max_interval=200ms",
		"--set=exporters.kafka.timeout=2s",
	}, append([]string{
		"KAFKA_BROKERS=" + broker, "AGENT_STORAGE=" + storage,
		"PPROF_ENDPOINT=" + pprof, "OTLP_GRPC_ENDPOINT=" + e.otlp, "OTLP_HTTP_ENDPOINT=" + freeAddress(t),
		"SPLUNK_HTTP_ENDPOINT=" + freeAddress(t), "SPLUNK_GRPC_ENDPOINT=" + freeAddress(t), "SPLUNK_HEC_ENDPOINT=" + freeAddress(t),
		"HEALTH_ENDPOINT=" + e.health,
	}, env...)...)
	e.requireHealthy(t)
	return e
}

// startKafkaGateway starts config/kafka-gateway.yaml, or one made of it.
func startKafkaGateway(t *testing.T, config, broker string, to *backend, env ...string) *collector {
	t.Helper()
	health := freeAddress(t)
	return launchWith(t, health, "", config, []string{
		// The shortest that brokers allow: what a dead gateway had is given to the next one after it.
		"--set=receivers.kafka.session_timeout=6s",
		"--set=receivers.kafka.heartbeat_interval=500ms",
		"--set=exporters.otlp_grpc.retry_on_failure.initial_interval=50ms",
		"--set=exporters.otlp_grpc.retry_on_failure.max_interval=200ms",
	}, append([]string{"KAFKA_BROKERS=" + broker, "BACKEND_ENDPOINT=" + to.address, "HEALTH_ENDPOINT=" + health}, env...)...)
}

// arrivals counts, for each name of a leaf function that agents sent, the samples that reached the backend.
type arrivals struct {
	at     *backend
	read   int
	counts map[string]int
}

func (a *arrivals) update(t *testing.T) {
	t.Helper()
	a.at.mu.Lock()
	received := a.at.received[a.read:]
	a.read = len(a.at.received)
	a.at.mu.Unlock()
	for function, times := range (&backend{received: received}).functions(t) {
		// The agent's own profiles are not the test's.
		if strings.HasPrefix(function, "leaf-") {
			a.counts[function] += times
		}
	}
}

// requireAll waits until every acknowledged sample is at the backend, and expects none more often than limit says. It
// gives the number of samples that arrived again.
func (a *arrivals) requireAll(t *testing.T, from *agents, limit func(function string) int) (again int) {
	t.Helper()
	require.Eventually(t, func() bool {
		a.update(t)
		return len(a.counts) >= len(from.acked)
	}, 2*startTimeout, 50*time.Millisecond, "every acknowledged sample arrives")
	for function := range from.acked {
		require.NotZero(t, a.counts[function], "%s arrives", function)
	}
	for function, times := range a.counts {
		require.NotZero(t, from.acked[function], "%s was sent", function)
		require.LessOrEqual(t, times, limit(function), function)
		again += times - 1
	}
	return again
}

// TestKafkaLosesNothing sends from several clients through config/kafka-agent.yaml, a broker and
// config/kafka-gateway.yaml. At first the broker is away and the agent is restarted; then the gateway is stopped while the
// backend does not answer, and the next one is killed in full flow.
func TestKafkaLosesNothing(t *testing.T) {
	t.Parallel()
	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	broker, storage := freeAddress(t), t.TempDir()
	from := &agents{t: t, acked: map[string]int{}}
	arrived := &arrivals{at: to, counts: map[string]int{}}

	agent := startKafkaAgent(t, kafkaAgentConfig, broker, storage)
	from.send(agent.collectorAt(agent.otlp), 20)
	agent.Terminate(t)
	startKafka(t, broker)
	agent = startKafkaAgent(t, kafkaAgentConfig, broker, storage)
	gateway := startKafkaGateway(t, kafkaGatewayConfig, broker, to)
	from.send(agent.collectorAt(agent.otlp), 50)
	arrived.requireAll(t, from, func(string) int { return 1 })
	settled := map[string]bool{}
	for function := range from.acked {
		settled[function] = true
	}

	// What the gateway has under way when it is stopped is new: the polls before have been committed.
	var sending sync.WaitGroup
	sending.Go(func() { from.send(agent.collectorAt(agent.otlp), 50) })
	to.kill(t)
	gateway.Terminate(t)
	sending.Wait()
	to.start(t)
	gateway = startKafkaGateway(t, kafkaGatewayConfig, broker, to)
	unlessSettled := func(function string) int {
		if settled[function] {
			return 1
		}
		return 2
	}
	arrived.requireAll(t, from, unlessSettled)

	before := to.requests()
	sending.Go(func() { from.send(agent.collectorAt(agent.otlp), 100) })
	require.Eventually(t, func() bool { return to.requests() > before+20 }, startTimeout, time.Millisecond)
	gateway.Kill()
	gateway = startKafkaGateway(t, kafkaGatewayConfig, broker, to)
	sending.Wait()
	again := arrived.requireAll(t, from, unlessSettled)
	gateway.Terminate(t)
	agent.Terminate(t)
	t.Logf("%d samples in %d messages arrived in %d, %d of them again", len(from.acked), from.sent, to.requests(), again)
}

// collectorAt is the collector seen at another of its endpoints.
func (c *collector) collectorAt(endpoint string) *collector { return &collector{endpoint: endpoint} }

// requests gives the number of requests that the backend has answered for.
func (b *backend) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.received)
}

// TestKafkaWithTLSAndPassword turns on what the configurations have commented out, and sends a profile that is larger
// than what a broker takes in one message.
func TestKafkaWithTLSAndPassword(t *testing.T) {
	brokerIdentity, backendIdentity := newIdentity(t), newIdentity(t)
	certificate, err := tls.LoadX509KeyPair(brokerIdentity.certFile, brokerIdentity.keyFile)
	require.NoError(t, err)
	broker := freeAddress(t)
	startKafka(t, broker, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "profiler", "its password"))
	to := &backend{address: freeAddress(t)}
	to.startSecured(t, backendIdentity, "token-of-gateways")
	login := []string{"KAFKA_CA_FILE=" + brokerIdentity.certFile, "KAFKA_USERNAME=profiler", "KAFKA_PASSWORD=its password"}

	agent := startKafkaAgent(t, withSettings(t, kafkaAgentConfig), broker, t.TempDir(), login...)
	gateway := startKafkaGateway(t, withSettings(t, kafkaGatewayConfig), broker, to, append(login,
		"BACKEND_INSECURE=false", "BACKEND_CA_FILE="+backendIdentity.certFile,
		"BACKEND_TOKEN_FILE="+newFile(t, "token", []byte("token-of-gateways")))...)
	payload := capturedPayloads(t)["go-compile-nethttp-heap-huge.pb.gz"]
	status, answer, err := agent.push("huge", payload)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, status, answer)
	agent.Terminate(t)

	parsed, err := profile.ParseData(payload)
	require.NoError(t, err)
	want := map[string]int64{}
	for i, sampleType := range parsed.SampleType {
		for _, sample := range parsed.Sample {
			want[sampleType.Type] += sample.Value[i]
		}
	}
	require.Eventually(t, func() bool { return maps.Equal(want, to.values("huge")) }, 2*startTimeout, 100*time.Millisecond)
	gateway.Terminate(t)

	// As many messages as the gateway passed on were in the topic, each whole in itself.
	consumer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(kafkaTopic),
		kgo.DialTLSConfig(&tls.Config{RootCAs: brokerIdentity.pool(t)}),
		kgo.SASL(scram.Auth{User: "profiler", Pass: "its password"}.AsSha512Mechanism()))
	require.NoError(t, err)
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var sizes []int
	for len(sizes) < to.requests() {
		fetches := consumer.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		for record := range fetches.RecordsAll() {
			require.Empty(t, record.Key)
			require.LessOrEqual(t, len(record.Value), 900_000)
			pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(record.Value)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			sizes = append(sizes, len(record.Value))
		}
	}
	require.Len(t, sizes, to.requests())
	require.Greater(t, len(sizes), 1, "the profile was split")
	t.Logf("%d bytes of pprof went in messages of %v", len(payload), sizes)
}

// values sums up by their types the values of a service that the backend has answered for.
func (b *backend) values(service string) map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sums := map[string]int64{}
	for _, pd := range b.received {
		text := pd.Dictionary().StringTable()
		for _, rp := range pd.ResourceProfiles().All() {
			if name, _ := rp.Resource().Attributes().Get("service.name"); name.Str() != service {
				continue // the agent's own
			}
			for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
				for _, sample := range p.Samples().All() {
					sums[text.At(int(p.SampleType().TypeStrindex()))] += sample.Values().At(0)
				}
			}
		}
	}
	return sums
}
