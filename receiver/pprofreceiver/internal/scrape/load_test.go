// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// loadInterval is the interval at which everything is scraped under load.
const loadInterval = 15 * time.Second

// TestScrapeLoad scrapes SCRAPE_LOAD targets of another process, and prints what that costs this one. Then it does the
// same scrapes with net/http and profile.Parse, and with net/http alone. It takes five minutes. docs/benchmarks.md has
// the results. SCRAPE_LOAD_MEMORY names the file in testdata/pprof that the targets serve as memory profile.
func TestScrapeLoad(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SCRAPE_LOAD"))
	if err != nil {
		t.Skip("SCRAPE_LOAD is not a number of targets")
	}
	addresses := startLoadTargets(t, n)
	loadOf(t, n, "scrape", func(ctx context.Context) loadRun { return scrapeAll(ctx, t, addresses) })
	loadOf(t, n, "net/http + profile.Parse", func(ctx context.Context) loadRun {
		return fetchAll(ctx, addresses, func(body io.Reader) error {
			_, err := profile.Parse(body)
			return err
		})
	})
	loadOf(t, n, "net/http alone", func(ctx context.Context) loadRun {
		return fetchAll(ctx, addresses, func(body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		})
	})
}

// loadRun is a measurement of one way of scraping. end stops it.
type loadRun struct {
	scrapes func() int64
	end     func() string
}

// loadOf measures one way of scraping.
func loadOf(t *testing.T, n int, name string, start func(context.Context) loadRun) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := memoryNow()
	run := start(ctx)
	time.Sleep(2 * loadInterval) // until each has been scraped at least once
	scrapes, cpu, began := run.scrapes(), cpuNow(), time.Now()
	time.Sleep(4 * loadInterval)
	cpu, scrapes = cpuNow()-cpu, run.scrapes()-scrapes
	goroutines, files := runtime.NumGoroutine(), openFiles()
	rss := residentBytes()
	after := memoryNow()
	kib := func(a, b uint64) float64 { return (float64(a) - float64(b)) / 1024 / float64(n) }
	t.Logf("%s: %d scrapes in %.0f s, %.3f ms CPU each, %.1f %% of a core, %.3f ms CPU per target and second", name,
		scrapes,
		time.Since(began).Seconds(), 1e3*cpu.Seconds()/float64(scrapes), 100*cpu.Seconds()/time.Since(began).Seconds(),
		1e3*cpu.Seconds()/time.Since(began).Seconds()/float64(n))
	t.Logf("  per target: %.1f KiB heap, %.1f KiB stacks; RSS %.1f MiB, %.1f MiB before; %d goroutines, %d open files",
		kib(after.HeapAlloc, before.HeapAlloc), kib(after.StackInuse, before.StackInuse),
		float64(rss)/(1<<20), float64(before.rss)/(1<<20), goroutines, files)
	t.Log("  " + run.end())
}

type loadMemory struct {
	runtime.MemStats
	rss int
}

// memoryNow returns the memory after a garbage collection.
func memoryNow() (m loadMemory) {
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m.MemStats)
	m.rss = residentBytes()
	return m
}

func residentBytes() int {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.Atoi(strings.Fields(string(text) + " 0 0")[1])
	return pages * os.Getpagesize()
}

func openFiles() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

func cpuNow() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// scrapeAll starts the receiver with all targets.
func scrapeAll(ctx context.Context, t *testing.T, addresses []string) loadRun {
	var cfg Config
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"max_concurrent": 64, "configs": []any{map[string]any{
		"job_name": "load", "scrape_interval": loadInterval.String(),
		"static_configs": []any{map[string]any{"targets": addresses}},
	}}}).Unmarshal(&cfg))
	f := sourcetest.New(t)
	in := f.Ingester("scrape", "http", 0)
	in.Next = loadSink{}
	s := New(&cfg, f.Set, in)
	require.NoError(t, s.Start(ctx, sourcetest.Host{}))
	job := s.schedule.jobs["load"]
	most := int64(0)
	counting, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		worker.Every(counting, 0, 100*time.Millisecond, func() {
			s.schedule.mu.Lock()
			most = max(most, job.requests)
			s.schedule.mu.Unlock()
		})
	})
	scrapes := func() int64 {
		return f.Sum(metricScrapes, "outcome", outcomeDelivered) + f.Sum(metricScrapes, "outcome", outcomeNoSamples)
	}
	return loadRun{scrapes, func() string {
		stop()
		running.Wait()
		states, baselines := s.schedule.status(statusFilter{}).Targets, f.Sum(metricScrapeBaseline)
		begun := time.Now()
		require.NoError(t, s.Shutdown(context.Background()))
		return fmt.Sprintf("%v; %d skipped; most requests at once %d; baselines %.1f KiB per target; shutdown in %v",
			states, f.Sum(metricScrapeSkipped), most, float64(baselines)/1024/float64(len(addresses)),
			time.Since(begun).Round(time.Millisecond))
	}}
}

type loadSink struct{}

func (loadSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (loadSink) ConsumeProfiles(context.Context, pprofile.Profiles) error { return nil }

var loadPaths = []string{"/debug/pprof/profile?seconds=14", "/debug/pprof/allocs", "/debug/pprof/goroutine",
	"/debug/pprof/block", "/debug/pprof/mutex"}

// fetchAll sends the same requests without the receiver: a goroutine and a ticker for each endpoint.
func fetchAll(ctx context.Context, addresses []string, use func(io.Reader) error) loadRun {
	transport := &http.Transport{MaxIdleConns: 20000, DisableCompression: true}
	client := &http.Client{Transport: transport}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var done, failed atomic.Int64
	for i, address := range addresses {
		for k, path := range loadPaths {
			running.Go(func() {
				offset := time.Duration(i*len(loadPaths)+k) * loadInterval / time.Duration(len(addresses)*len(loadPaths))
				worker.Every(ctx, offset, loadInterval, func() {
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
					if err != nil {
						return
					}
					response, err := client.Do(request)
					if err != nil {
						failed.Add(1)
						return
					}
					defer func() { _ = response.Body.Close() }()
					if use(response.Body) != nil {
						failed.Add(1)
						return
					}
					done.Add(1)
				})
			})
		}
	}
	return loadRun{done.Load, func() string {
		n := failed.Load()
		stop()
		running.Wait()
		transport.CloseIdleConnections()
		return fmt.Sprintf("%d failed", n)
	}}
}
