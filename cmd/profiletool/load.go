// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	configcheck "github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// loadConfig configures what load sends.
type loadConfig struct {
	services, types, samples, connections int
	rate                                  float64
	duration                              time.Duration
}

func (c *loadConfig) validate() error {
	var faults configcheck.Faults
	faults.Require(c.services > 0, "--services must be positive, found %d", c.services)
	faults.Require(c.types > 0, "--types must be positive, found %d", c.types)
	faults.Require(c.types <= len(loadTypes), "--types must be at most %d, found %d", len(loadTypes), c.types)
	faults.Require(c.samples > 0, "--samples must be positive, found %d", c.samples)
	faults.Require(c.connections > 0, "--connections must be positive, found %d", c.connections)
	faults.Require(c.rate >= 0, "--rate must not be negative, found %g", c.rate)
	faults.Require(c.duration > 0, "--duration must be positive, found %s", c.duration)
	return faults.Err()
}

func newLoad(term *terminal) *cobra.Command {
	config := loadConfig{services: 10, types: 2, samples: 300, connections: 4, rate: 10, duration: 10 * time.Second}
	var client clientConfig
	cmd := &cobra.Command{
		Use:     "load",
		Short:   "Send the profiles of many services at a rate, to size a gateway",
		GroupID: groupNetwork,
		Long: `Load sends generated profiles: each message has one profile type of one service, with stacks like those of a Go program.
It cycles through services and types at --rate messages a second, or with --rate 0 as fast as the answers come.

It prints a line of progress to standard error every second. The report at the end has the numbers of messages that were
accepted and refused, and how long the answers took. If no connection is free in time, a message is sent late, and its
latency counts from when it was due: the latency shows whether a receiver stalls. It exits with 1 if something was refused.`,
		Example: `  profiletool load --endpoint gateway:4317 --services 200 --types 3 --rate 60 --duration 5m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.validate(); err != nil {
				return err
			}
			to, err := client.connect()
			if err != nil {
				return err
			}
			defer to.close()
			l := newLoader(term, &config, to)
			l.run(cmd.Context())
			return l.report()
		},
	}
	client.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&config.services, "services", config.services, "number of services")
	f.IntVar(&config.types, "types", config.types, fmt.Sprintf("profile types of each service, up to %d", len(loadTypes)))
	f.IntVar(&config.samples, "samples", config.samples, "samples of each profile")
	f.Float64Var(&config.rate, "rate", config.rate, "messages a second, 0 for as many as possible")
	f.DurationVar(&config.duration, "duration", config.duration, "how long to send")
	f.IntVar(&config.connections, "connections", config.connections, "messages under way at once")
	return cmd
}

// loader sends messages and counts what becomes of them.
type loader struct {
	term      *terminal
	config    *loadConfig
	to        sender
	templates []pprofile.Profiles // by type
	began     time.Time
	took      time.Duration

	mu    sync.Mutex
	total loadCounts
}

// loadCounts are what became of messages.
type loadCounts struct {
	accepted, refused int
	samples           int
	latency           *hdrhistogram.Histogram // in microseconds
	// errors counts refusals by their message.
	errors map[string]int
}

// Latencies are kept in steps of a thousandth, up to maxLatency.
const maxLatency = time.Hour

func newLoadCounts() loadCounts {
	return loadCounts{errors: map[string]int{}, latency: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

func (c *loadCounts) add(latency time.Duration) {
	_ = c.latency.RecordValue(min(latency, maxLatency).Microseconds()) // it is in range
}

// percentile returns the latency that a part of all messages did not exceed.
func (c *loadCounts) percentile(percent float64) time.Duration {
	return time.Duration(c.latency.ValueAtQuantile(percent)) * time.Microsecond
}

func newLoader(term *terminal, config *loadConfig, to sender) *loader {
	l := &loader{term: term, config: config, to: to, total: newLoadCounts()}
	for _, t := range loadTypes[:config.types] {
		l.templates = append(l.templates, t.generate(config.samples))
	}
	return l
}

// run sends until the duration is over or ctx ends, and waits for the last answers.
func (l *loader) run(ctx context.Context) {
	l.began = time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.config.duration)
	defer cancel()
	due := make(chan job)
	var workers sync.WaitGroup
	for range l.config.connections {
		workers.Go(func() {
			for j := range due {
				l.send(j)
			}
		})
	}
	var progress sync.WaitGroup
	progress.Go(func() { l.progress(ctx) })
	l.schedule(ctx, due)
	close(due)
	workers.Wait()
	l.took = time.Since(l.began)
	cancel()
	progress.Wait()
}

// job is the nth message, which should leave at a time.
type job struct {
	n   int
	due time.Time
}

func (l *loader) schedule(ctx context.Context, out chan<- job) {
	for n := 0; ; n++ {
		due := time.Now()
		if l.config.rate > 0 {
			due = l.began.Add(time.Duration(float64(n) / l.config.rate * float64(time.Second)))
			if !await.Sleep(ctx, time.Until(due)) {
				return
			}
		}
		select {
		case out <- job{n, due}:
		case <-ctx.Done():
			return
		}
	}
}

// send sends one message. It may outlive the duration, by the client's timeout at most.
func (l *loader) send(j job) {
	perService := len(l.templates)
	pd := pprofile.NewProfiles()
	l.templates[j.n%perService].CopyTo(pd)
	resource := pd.ResourceProfiles().At(0).Resource().Attributes()
	resource.PutStr("service.name", fmt.Sprintf("load-%04d", j.n/perService%l.config.services))
	retimed([]pprofile.Profiles{pd}, time.Now())
	if l.config.rate == 0 {
		j.due = time.Now()
	}
	samples := pd.SampleCount()
	err := l.to.send(context.Background(), pd)
	took := time.Since(j.due)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.total.add(took)
	if err != nil {
		l.total.refused++
		if reason := err.Error(); len(l.total.errors) < maxLoadErrors || l.total.errors[reason] > 0 {
			l.total.errors[reason]++
		}
		return
	}
	l.total.accepted++
	l.total.samples += samples
}

// maxLoadErrors bounds how many different messages are remembered.
const maxLoadErrors = 20

// progress writes a line each second.
func (l *loader) progress(ctx context.Context) {
	before := 0
	for await.Sleep(ctx, time.Second) {
		l.mu.Lock()
		c := l.total
		p50, p99 := c.percentile(50), c.percentile(99)
		l.mu.Unlock()
		answered := c.accepted + c.refused
		l.term.logf("%4.0fs  %d/s  %d accepted  %d refused  p50 %s  p99 %s", time.Since(l.began).Seconds(),
			answered-before, c.accepted, c.refused, p50, p99)
		before = answered
	}
}

func (l *loader) report() error {
	c := &l.total
	seconds := l.took.Seconds()
	w := tabwriter.NewWriter(l.term.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "time\t%s\n", l.took.Round(time.Millisecond))
	if sent := float64(c.accepted+c.refused) / seconds; l.config.rate > 0 && sent < 0.95*l.config.rate {
		fmt.Fprintf(w, "rate\t%.1f/s of %.1f/s: the answers were too slow for --connections %d\n", sent, l.config.rate,
			l.config.connections)
	}
	fmt.Fprintf(w, "accepted\t%d messages\t%.1f/s\n", c.accepted, float64(c.accepted)/seconds)
	fmt.Fprintf(w, "refused\t%d messages\n", c.refused)
	fmt.Fprintf(w, "samples\t%d accepted\t%.0f/s\n", c.samples, float64(c.samples)/seconds)
	for _, percent := range []float64{50, 90, 99} {
		fmt.Fprintf(w, "latency p%.0f\t%s\n", percent, c.percentile(percent))
	}
	fmt.Fprintf(w, "latency max\t%s\n", c.percentile(100))
	for _, reason := range slices.Sorted(maps.Keys(c.errors)) {
		fmt.Fprintf(w, "%d times\t%s\n", c.errors[reason], reason)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.refused > 0 {
		return errFound
	}
	return nil
}
