// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const mib = 1 << 20

// doors are the ways by which bytes reach a configuration.
type doors struct {
	// push is the largest payload of the pprof receiver's server, unpacked; 0 is none.
	push int
	// otlp is the largest message of OTLP profiles over gRPC; 0 is no receiver of them, over HTTP neither.
	otlp int
	// splunk receives log records over gRPC and HTTP.
	splunk, hec, targets, page, kafka bool
	// discovery adds http_sd to the configuration, as a user does.
	discovery bool
	// metrics has the lines of profile_metrics, which are commented out, and a backend of metrics that is away.
	metrics bool
}

// shipped is a configuration with the memory that it ships with.
type shipped struct {
	config string
	// containerMiB is the memory of its container, and goMiB Go's soft limit within it.
	containerMiB, goMiB int
	doors               doors
	// all sends all inputs. Other configurations get the most costly ones.
	all bool
	env []string
}

// name is that of the file, and what differs from it.
func (c shipped) name() string {
	name := filepath.Base(c.config)
	if strings.HasPrefix(c.config, kubernetes) {
		name = c.config
	}
	if c.doors.discovery {
		name += " with http_sd"
	}
	if c.doors.metrics {
		name += " with profile_metrics"
	}
	return strings.Join(append([]string{strings.ReplaceAll(name, "/", " ")}, c.env...), " ")
}

// configurations are all that this repository ships. The limits of the files are those of docs/limits.md; those of
// Kubernetes are the manifests' own.
var configurations = []shipped{
	{"config/agent.yaml", 512, 400, doors{push: 32 * mib, otlp: 16 * mib, splunk: true, hec: true, targets: true}, true,
		nil},
	{"config/agent.yaml", 512, 400, doors{push: 32 * mib, discovery: true}, false, nil},
	{"config/agent.yaml", 512, 400,
		doors{push: 32 * mib, otlp: 16 * mib, splunk: true, hec: true, targets: true, metrics: true}, false, nil},
	{"config/kafka-agent.yaml", 512, 400, doors{push: 32 * mib, otlp: 16 * mib, splunk: true, hec: true, targets: true},
		false, nil},
	{"config/fallback.yaml", 1280, 1024, doors{push: 32 * mib, otlp: 32 * mib}, false, nil},
	{"config/fallback.yaml", 1280, 1024, doors{push: 32 * mib, otlp: 32 * mib}, false, []string{"PROFILES_MODE=always"}},
	{"config/gateway.yaml", 1280, 1024, doors{otlp: 32 * mib}, false, nil},
	{"config/host.yaml", 1280, 1024, doors{push: 32 * mib, otlp: 32 * mib, targets: true, page: true}, false, nil},
	{"config/kafka-gateway.yaml", 1280, 1024, doors{kafka: true}, false, nil},
	{"config/quickstart.yaml", 1280, 1024, doors{push: 32 * mib, targets: true, page: true}, false, nil},
	{"config/splunk.yaml", 1280, 1024, doors{splunk: true, hec: true, page: true}, false, nil},
	{"config/standalone.yaml", 1280, 1024,
		doors{push: 32 * mib, otlp: 32 * mib, splunk: true, hec: true, targets: true, page: true}, false, nil},
	{kubernetes + "agent", 0, 0, doors{push: 8_000_000, otlp: 16 * mib, splunk: true, hec: true}, true, nil},
	{kubernetes + "gateway", 0, 0, doors{otlp: 32 * mib}, false, nil},
	{kubernetes + "page", 0, 0, doors{otlp: 32 * mib, page: true}, false, nil},
}

// TestAllConfigurations requires that nothing that ships and receives is left out.
func TestAllConfigurations(t *testing.T) {
	var known, shipped []string
	for _, c := range configurations {
		known = append(known, c.config)
	}
	for pattern, prefix := range map[string]string{"config/*.yaml": "",
		"config/kubernetes/components/*/*set.yaml":       kubernetes,
		"config/kubernetes/components/*/deployment.yaml": kubernetes} {
		files := profiletest.Glob(t, filepath.Join(collectortest.Repository, pattern))
		for _, file := range files {
			name := "config/" + filepath.Base(file)
			if prefix != "" {
				name = prefix + filepath.Base(filepath.Dir(file))
			}
			shipped = append(shipped, name)
		}
	}
	assert.Subset(t, known, append(shipped, kubernetes+"agent"))
}

const (
	// stopAtMiB ends a process that is far above any limit, so that a fault does not take the machine's memory.
	stopAtMiB = 3 << 10
	// hotPagesMiB is what a container needs beside the memory that its process has allocated: the pages of the binary that
	// are in use. The kernel takes the others back; right after a build all 120 MiB of them are resident.
	hotPagesMiB = 64
	// answerBound is how much longer than on an idle process honest requests may take. It is generous, since the machine
	// may be busy with something else. The goal is a second; the log has the figures.
	answerBound = 4 * time.Second
	// idleTime is how long that is measured.
	idleTime = 5 * time.Second
	// longestRun is how long a process may be attacked.
	longestRun = 4 * time.Minute
	// answerTimeout is how long senders wait for an answer.
	answerTimeout = 30 * time.Second
	// attackTime is how long attacks last that are no single request.
	attackTime = 20 * time.Second
)

// TestLimits starts each configuration with its memory, and sends it the worst inputs at every door, alone and eight at
// once. Honest senders push a captured profile and readers open the page meanwhile. The process stays below its limit
// and answers the honest ones in time; what it refuses gets an error of the sender's or 503, with a reason.
//
// A process that was above the limit is ended and replaced, so that each figure is of its input. One that was not goes
// on, so that what inputs leave behind adds up. LIMITS=short sends the most costly inputs to the agent alone,
// LIMITS=quick to all. Attacks wait most of the time, so the short form shares them out among several agents side by
// side.
func TestLimits(t *testing.T) {
	run := os.Getenv("LIMITS")
	if run == "" {
		t.Skip("`make limits` runs this")
	}
	isShort := run != "full"
	for _, c := range configurations {
		if run == "short" && (c.config != agentConfig || !c.all) {
			continue
		}
		agents := 1
		if run == "short" {
			agents = 3
		}
		for agent := range agents {
			t.Run(c.name(), func(t *testing.T) {
				if agents > 1 {
					t.Parallel()
				}
				r := newSiege(t, c)
				r.short = isShort
				defer r.report(t)
				for i, a := range r.attacks(isShort) {
					if i%agents == agent {
						t.Run(strings.ReplaceAll(a.name, "/", " "), func(t *testing.T) { r.run(t, a) })
					}
				}
			})
		}
	}
}

// attack is something that costs much, and how often it is sent at once.
type attack struct {
	name string
	// prepare returns what one sender does. The bytes are made once, when the attack begins.
	prepare func(t *testing.T) func(context.Context) answer
	senders []int
	// before prepares a process; it may be nil.
	before func(t *testing.T)
}

// outcome is what an attack did.
type outcome struct {
	name    string
	senders int
	wire    int
	// before and peak are the resident set, and anonymous the part of the peak that is not pages of files, in MiB.
	before, peak, anonymous float64
	took                    time.Duration
	answers                 map[string]int
	pushes, queries         latencies
	ended                   string
}

// siege is a node under attack, with its honest users.
type siege struct {
	shipped
	node    *node
	backend string
	broker  string
	started time.Time
	// discovery is what a configuration with http_sd asks; nil if there is none.
	discovery *discovery
	honest    *honest
	// idle are the honest users' requests beside which nobody attacks: a push waits for its batch then, too.
	idlePushes, idleQueries latencies
	outcomes                []outcome
	// short is set for LIMITS=short, and sizes are the sizes of inputs, instead of the usual ones.
	short bool
	sizes []int
	// test is that of the configuration: processes outlive an attack.
	test  *testing.T
	watch *watch
}

func newSiege(t *testing.T, c shipped) *siege {
	t.Helper()
	r := &siege{shipped: c, backend: startSink(t), test: t}
	r.node = r.newShippedNode(t)
	r.honest = &honest{siege: r}
	return r
}

// start starts a process and waits until an honest push has arrived, unless one runs.
func (r *siege) start(t *testing.T) {
	t.Helper()
	if r.watch != nil {
		select {
		case <-r.node.Exited:
		default:
			if time.Since(r.started) < longestRun {
				return
			}
		}
		r.stop()
	}
	for _, folder := range []string{r.node.storage, r.node.output} { // otherwise a queue would add to the next figure
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	r.node.start(r.test)
	r.started = time.Now()
	r.watch = watchMemory(r.node)
	r.honest.warmUp(t)
	if r.idlePushes == nil && r.idleQueries == nil {
		traffic := r.honest.start(t.Context())
		time.Sleep(idleTime)
		r.idlePushes, r.idleQueries = traffic.end()
	}
	time.Sleep(200 * time.Millisecond)
}

// stop ends the process.
func (r *siege) stop() {
	if r.watch != nil {
		r.node.Kill()
		r.watch.stop()
		r.watch = nil
	}
}

func (r *siege) run(t *testing.T, a attack) {
	t.Helper()
	send := a.prepare(t)
	for _, senders := range a.senders {
		r.start(t)
		if a.before != nil {
			a.before(t)
		}
		o := r.send(t, a, senders, send)
		r.outcomes = append(r.outcomes, o)
		t.Log(o)
		r.check(t, o)
		if t.Failed() {
			r.stop()
		}
	}
}

// send has the senders attack once each, and returns when they and the honest requests that began meanwhile have
// answers.
func (r *siege) send(t *testing.T, a attack, senders int, send func(context.Context) answer) outcome {
	t.Helper()
	o := outcome{name: a.name, senders: senders, answers: map[string]int{}}
	o.before = r.watch.reset()
	ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
	defer cancel()
	traffic := r.honest.start(ctx)
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			got := send(ctx)
			mu.Lock()
			defer mu.Unlock()
			o.wire = max(o.wire, got.wire)
			o.answers[got.String()]++
		})
	}
	all.Wait()
	o.took = time.Since(began)
	// Short attacks need a few honest requests, too, and what was accepted is still under way.
	time.Sleep(max(500*time.Millisecond-o.took, 200*time.Millisecond))
	o.pushes, o.queries = traffic.end()
	o.peak, o.anonymous = r.watch.peak()
	o.ended = r.watch.why()
	return o
}

// check compares an outcome with what is promised.
func (r *siege) check(t *testing.T, o outcome) {
	t.Helper()
	assert.Empty(t, o.ended, "the process has ended")
	assert.LessOrEqual(t, o.anonymous+hotPagesMiB, float64(r.containerMiB), "MiB in a container of %d", r.containerMiB)
	for text := range o.answers {
		assert.NotContains(t, text, unexpected)
	}
	switch {
	case o.ended != "":
	case r.short: // this runs where other tests run, too
		assert.Less(t, o.pushes.percentile(90), answerTimeout/2, "honest pushes: %s", o.pushes)
	default:
		assert.Less(t, o.pushes.percentile(90), r.idlePushes.percentile(90)+answerBound, "honest pushes: %s", o.pushes)
		assert.Less(t, o.queries.percentile(90), r.idleQueries.percentile(90)+answerBound, "queries of an ordinary hour: %s",
			o.queries)
	}
}

func (o outcome) String() string {
	return fmt.Sprintf(
		"%s × %d: %.1f kB each, resident %.0f → %.0f MiB (%.0f anonymous), %.2f s, answers %v; honest pushes %s; queries %s%s",
		o.name, o.senders, float64(o.wire)/1000, o.before, o.peak, o.anonymous, o.took.Seconds(), o.answers, o.pushes,
		o.queries, o.ended)
}

// report logs the worst outcomes of a configuration, and ends the process.
func (r *siege) report(t *testing.T) {
	t.Helper()
	r.stop()
	var pushes, queries latencies
	for _, o := range r.outcomes {
		pushes, queries = append(pushes, o.pushes...), append(queries, o.queries...)
	}
	above, accepted := 0, 0
	for _, o := range r.outcomes {
		accepted += o.answers["204 No Content"] + o.answers["200 OK"] + o.answers["grpc 0"]
	}
	// A gateway that reads from Kafka alone has no entry.
	assert.True(t, accepted > 0 || len(r.outcomes) == 0,
		"an attack that is always refused does not show what the worst input costs")
	slices.SortFunc(r.outcomes, func(a, b outcome) int { return cmp.Compare(b.peak, a.peak) })
	var text strings.Builder
	for i, o := range r.outcomes {
		if o.anonymous+hotPagesMiB > float64(r.containerMiB) {
			above++
		} else if i >= 20 {
			continue
		}
		fmt.Fprintf(&text, "\n%6.0f MiB  %s × %d, %.1f kB each%s", o.peak, o.name, o.senders, float64(o.wire)/1000, o.ended)
	}
	t.Logf("%s: %d of %d attacks above %d MiB, %d requests accepted; honest pushes %s (idle %s); queries %s (idle %s)%s",
		r.config, above, len(r.outcomes), r.containerMiB, accepted, pushes, r.idlePushes, queries, r.idleQueries, &text)
}

// latencies are the times until requests were answered.
type latencies []time.Duration

func (l latencies) percentile(p int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[(len(sorted)-1)*p/100]
}

func (l latencies) String() string {
	if len(l) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: median %d ms, 90%% %d ms, most %d ms", len(l), l.percentile(50).Milliseconds(),
		l.percentile(90).Milliseconds(), l.percentile(100).Milliseconds())
}

// newShippedNode prepares a process with the configuration as it is shipped.
func (r *siege) newShippedNode(t *testing.T) *node {
	t.Helper()
	config := r.config
	if r.doors.metrics {
		config = filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(config, []byte(collectortest.Uncommented(t, r.config, collectortest.Metrics)), 0o600))
	}
	n := newNode(t, config, r.backend)
	n.flags = nil
	if strings.HasPrefix(r.config, kubernetes) {
		r.asPod(t, n)
		return n
	}
	n.env = append(n.env, fmt.Sprintf("GOMEMLIMIT=%dMiB", r.goMiB))
	if strings.Contains(r.config, "kafka") {
		r.broker = startBroker(t)
		n.env = append(n.env, "KAFKA_BROKERS="+r.broker)
	}
	n.env = append(n.env, r.env...)
	if r.doors.discovery {
		r.discovery = startDiscovery(t)
		n.flags = append(n.flags,
			"--config=yaml:receivers::pprof::scrape::configs: [{job_name: discovered, http_sd_configs: [{refresh_interval: 5s, url: '"+
				r.discovery.url+"'}]}]")
	}
	return n
}
