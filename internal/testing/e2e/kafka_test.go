// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	kafkaTopic      = "otlp_profiles"
	kafkaPartitions = 8
)

// startKafka starts a broker at an address, with the topic that config/kafka-agent.yaml needs.
func startKafka(t testing.TB, address string, options ...kfake.Opt) *kfake.Cluster {
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

// These flags make an agent and a gateway give up soon on what is not there. On a busy machine they give up on what is
// there, too, and send it again.
var (
	impatientAgent = []string{"--set=exporters.kafka.timeout=2s"}
	// The shortest time that brokers allow, after which the next gateway gets the partitions of a dead one.
	impatientGateway = []string{"--set=receivers.kafka.session_timeout=6s",
		"--set=receivers.kafka.heartbeat_interval=500ms"}
)

// startKafkaAgent starts config/kafka-agent.yaml, or a copy of it.
func startKafkaAgent(t *testing.T, config, broker, storage string, flags []string, env ...string) *collector {
	t.Helper()
	c := launchWith(t, config, append([]string{
		// The clients of a test send little, and retries must not take as long as in production.
		"--set=processors.dictionary_dedup.timeout=50ms",
		"--set=processors.dictionary_dedup.send_batch_size=100",
		"--set=exporters.kafka.retry_on_failure.initial_interval=50ms",
		"--set=exporters.kafka.retry_on_failure.max_interval=200ms",
	}, flags...), append([]string{"KAFKA_BROKERS=" + broker, "QUEUE_DIRECTORY=" + storage}, env...)...)
	c.requireHealthy(t)
	return c
}

// startKafkaGateway starts config/kafka-gateway.yaml, or a copy of it.
func startKafkaGateway(t *testing.T, config, broker string, to *backend, flags []string, env ...string) *collector {
	t.Helper()
	return launchWith(t, config, append([]string{
		"--set=exporters.otlp_grpc.retry_on_failure.initial_interval=50ms",
		"--set=exporters.otlp_grpc.retry_on_failure.max_interval=200ms",
	}, flags...), append([]string{"KAFKA_BROKERS=" + broker, "BACKEND_ENDPOINT=" + to.address}, env...)...)
}

// arrivals counts the samples of agents that have reached the backend, by their leaf function.
type arrivals struct {
	at     *backend
	read   int
	counts map[string]int
}

func (a *arrivals) update(t *testing.T) {
	t.Helper()
	received := a.at.messages()
	unread := received[a.read:]
	a.read = len(received)
	for function, times := range leaves(t, unread) {
		if strings.HasPrefix(function, "leaf-") { // not one of the agent's own profiles
			a.counts[function] += times
		}
	}
}

// requireAll waits until every acknowledged sample is at the backend, each at most as often as limit allows. It returns
// the number of samples that arrived again.
func (a *arrivals) requireAll(t *testing.T, from *agents, limit func(function string) int) (again int) {
	t.Helper()
	waitForAll(t, from.acked, func() map[string]int { a.update(t); return a.counts })
	for function, times := range a.counts {
		require.NotZero(t, from.acked[function], "%s was sent", function)
		require.LessOrEqual(t, times, limit(function), function)
		again += times - 1
	}
	return again
}

// TestKafkaLosesNothing sends from several clients through config/kafka-agent.yaml, a broker and
// config/kafka-gateway.yaml. At first the broker is away, and the agent is restarted. Then the gateway is stopped while
// the backend does not answer, and the next gateway is killed under load.
func TestKafkaLosesNothing(t *testing.T) {
	t.Parallel()
	to, from := startBackend(t), newAgents(t)
	broker, storage := freeAddress(t), t.TempDir()
	arrived := &arrivals{at: to, counts: map[string]int{}}

	agent := startKafkaAgent(t, kafkaAgentConfig, broker, storage, impatientAgent)
	from.send(agent, 20)
	agent.Terminate(t)
	startKafka(t, broker)
	agent = startKafkaAgent(t, kafkaAgentConfig, broker, storage, impatientAgent)
	gateway := startKafkaGateway(t, kafkaGatewayConfig, broker, to, impatientGateway)
	from.send(agent, 50)
	arrived.requireAll(t, from, func(string) int { return 1 })
	settled := map[string]bool{}
	for function := range from.acked {
		settled[function] = true
	}

	// The offsets of settled samples are committed, so only newer ones can arrive again.
	var sending sync.WaitGroup
	sending.Go(func() { from.send(agent, 50) })
	to.kill(t)
	gateway.Terminate(t)
	sending.Wait()
	to.start(t)
	gateway = startKafkaGateway(t, kafkaGatewayConfig, broker, to, impatientGateway)
	unlessSettled := func(function string) int {
		if settled[function] {
			return 1
		}
		return 2
	}
	arrived.requireAll(t, from, unlessSettled)

	before := len(to.messages())
	sending.Go(func() { from.send(agent, 100) })
	require.Eventually(t, func() bool { return len(to.messages()) > before+20 }, startTimeout, time.Millisecond)
	gateway.Kill()
	gateway = startKafkaGateway(t, kafkaGatewayConfig, broker, to, impatientGateway)
	sending.Wait()
	again := arrived.requireAll(t, from, unlessSettled)
	gateway.Terminate(t)
	agent.Terminate(t)
	t.Logf("%d samples in %d messages arrived in %d, %d of them again", len(from.acked), from.sent, len(to.messages()),
		again)
}

// TestKafkaWithTLSAndPassword turns on what the configurations have commented out, and sends a profile that is larger
// than a broker allows a message to be.
func TestKafkaWithTLSAndPassword(t *testing.T) {
	t.Parallel()
	brokerIdentity, backendIdentity := newIdentity(t), newIdentity(t)
	certificate, err := tls.LoadX509KeyPair(brokerIdentity.certFile, brokerIdentity.keyFile)
	require.NoError(t, err)
	broker := freeAddress(t)
	startKafka(t, broker, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "profiler", "its password"))
	to := startSecuredBackend(t, backendIdentity, "token-of-gateways")
	login := []string{"KAFKA_CA_FILE=" + brokerIdentity.certFile, "KAFKA_USERNAME=profiler", "KAFKA_PASSWORD=its password"}

	// On a busy machine the large profile is not on disk within the usual five seconds.
	patient := []string{"--set=processors.dictionary_dedup.max_wait=" + startTimeout.String()}
	agent := startKafkaAgent(t, uncommented(t, kafkaAgentConfig, collectortest.Kafka), broker, t.TempDir(), patient,
		login...)
	gateway := startKafkaGateway(t, uncommented(t, kafkaGatewayConfig, collectortest.Kafka, collectortest.Backend), broker,
		to, nil, append(login, "BACKEND_INSECURE=false", "BACKEND_CA_FILE="+backendIdentity.certFile,
			"BACKEND_TOKEN_FILE="+newFile(t, "token", []byte("token-of-gateways")))...)
	payload := capturedPayloads(t)[hugePayload]
	agent.requirePush(t, "huge", payload)
	agent.Terminate(t)

	want := sumsOfPprof(t, payload)
	areWhole := func(messages []pprofile.Profiles) bool { // each once: Kafka and the gateway may deliver again
		return maps.Equal(want, sumsOfOTLP(profilesOf("huge", distinct(t, messages)...)))
	}
	require.Eventually(t, func() bool { return areWhole(to.messages()) }, 2*startTimeout, 100*time.Millisecond)
	gateway.Terminate(t)

	// The topic has the profile, too, and each message contains all that it refers to.
	consumer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(kafkaTopic),
		kgo.DialTLSConfig(&tls.Config{RootCAs: brokerIdentity.pool(t)}),
		kgo.SASL(scram.Auth{User: "profiler", Pass: "its password"}.AsSha512Mechanism()))
	require.NoError(t, err)
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var records []pprofile.Profiles
	var sizes []int
	for !areWhole(records) {
		fetches := consumer.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		for record := range fetches.RecordsAll() {
			require.Empty(t, record.Key)
			require.LessOrEqual(t, len(record.Value), 900_000)
			pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(record.Value)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(pd))
			records, sizes = append(records, pd), append(sizes, len(record.Value))
		}
	}
	require.Greater(t, len(distinct(t, records)), 1, "the profile was split")
	t.Logf("%d bytes of pprof went in messages of %v", len(payload), sizes)
}

// distinct returns the messages without those that are equal to an earlier one.
func distinct(t *testing.T, messages []pprofile.Profiles) []pprofile.Profiles {
	t.Helper()
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(messages), func(pd pprofile.Profiles) bool {
		interned := pprofile.NewProfiles() // marshalling moves attributes to the dictionary
		pd.CopyTo(interned)
		b, err := new(pprofile.ProtoMarshaler).MarshalProfiles(interned)
		require.NoError(t, err)
		isKnown := seen[string(b)]
		seen[string(b)] = true
		return isKnown
	})
}
