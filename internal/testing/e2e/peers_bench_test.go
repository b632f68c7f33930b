// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	peerTargets = 200
	peerWarmup  = 12 * time.Second
	peerWindow  = time.Minute
	// peerRounds is how often a target's totals grow. Then they start again, as if the program had been restarted.
	peerRounds = 20
)

// peerKinds maps the path of each kind to the captured profile that targets serve for it.
var peerKinds = map[string]string{
	"/debug/pprof/allocs": "go-allocs", "/debug/pprof/goroutine": "go-goroutine", "/debug/pprof/block": "go-block",
	"/debug/pprof/mutex": "go-mutex",
}

// BenchmarkPeers scrapes memory, goroutine, block and mutex profiles of 200 targets every 5 s for a minute. It measures
// only the scraper: the targets and the next hop are other processes. PARCA and ALLOY name binaries of Parca and of
// Grafana Alloy; a peer runs only if its variable is set.
func BenchmarkPeers(b *testing.B) {
	targets := startPeerTargets(b)
	b.Run("impl=otelcol-profiles", func(b *testing.B) {
		sink := startPlain(b, "receivers: [otlp]\n      exporters: [nop]", "nop:")
		wire := startCounter(b, sink.endpoint)
		path, err := collectortest.Binary()
		require.NoError(b, err)
		config := writePeerConfig(b, "otelcol-profiles.yaml", targets.addresses, wire.address)
		targets.measure(b, exec.Command(path, "--config", config), wire)
	})
	b.Run("impl=parca", func(b *testing.B) {
		parca := peerBinary(b, "PARCA")
		storage := newFile(b, "storage.yaml",
			[]byte("object_storage: {bucket: {type: FILESYSTEM, config: {directory: "+b.TempDir()+"}}}\n"))
		address := freeAddress(b)
		store := collectortest.Start(b, exec.Command(parca, "--config-path", storage, "--http-address", address),
			"Parca's store")
		require.Eventually(b, func() bool {
			connection, err := net.Dial("tcp", address)
			return err == nil && connection.Close() == nil
		}, collectortest.StartTimeout, 50*time.Millisecond, "%s", store.Log)
		wire := startCounter(b, address)
		config := writePeerConfig(b, "parca.yaml", targets.addresses, wire.address)
		targets.measure(b, exec.Command(parca, "--mode", "scraper-only", "--config-path", config,
			"--store-address", wire.address, "--insecure", "--http-address", freeAddress(b)), wire)
	})
	b.Run("impl=alloy", func(b *testing.B) {
		alloy := peerBinary(b, "ALLOY")
		sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/proto") // and no body: an empty PushResponse
		}))
		b.Cleanup(sink.Close)
		wire := startCounter(b, sink.Listener.Addr().String())
		var alloyTargets []string
		for _, address := range targets.addresses {
			alloyTargets = append(alloyTargets, `{"__address__" = `+address+`, "service_name" = "peers"}`)
		}
		config := writePeerConfig(b, "config.alloy", alloyTargets, wire.address)
		targets.measure(b, exec.Command(alloy, "run", config, "--storage.path", b.TempDir(), "--disable-reporting",
			"--server.http.listen-addr", freeAddress(b)), wire)
	})
}

// peerBinary returns the binary that the variable names.
func peerBinary(b *testing.B, variable string) string {
	path := os.Getenv(variable)
	if path == "" {
		b.Skip(variable + " names no binary")
	}
	return path
}

// writePeerConfig fills in a configuration of testdata/peers.
func writePeerConfig(b *testing.B, name string, targets []string, next string) string {
	config := profiletest.FileBytes(b, filepath.Join("testdata", "peers", name))
	filled := strings.NewReplacer("TARGETS", strings.Join(targets, ", "), "NEXT", next).Replace(string(config))
	return newFile(b, name, []byte(filled))
}

// peerTarget serves the profiles of one program.
type peerTarget struct {
	service string
	mu      sync.Mutex
	asked   map[string]int
	fleet   *peerTargetFleet
}

// peerTargetFleet has the addresses of the targets and their answers: by path and service, snapshots with growing
// totals.
type peerTargetFleet struct {
	addresses []string
	snapshots map[string][][]byte
	scrapes   atomic.Int64
}

func startPeerTargets(b *testing.B) *peerTargetFleet {
	fleet := &peerTargetFleet{snapshots: map[string][][]byte{}}
	for path, kind := range peerKinds {
		body := profiletest.FileBytes(b, filepath.Join(repository, "testdata", "pprof", kind+".pb.gz"))
		captured := profiletest.ParsePprof(b, body)
		for service := range benchServices {
			name := fmt.Sprint("service-", service)
			for round := range peerRounds {
				p := captured.Copy()
				for _, f := range p.Function {
					if !ofLibraries.MatchString(f.Name) {
						f.Name, f.SystemName = name+"/"+f.Name, name+"/"+f.SystemName
					}
				}
				for i, sample := range p.Sample {
					for k := range sample.Value {
						sample.Value[k] += sample.Value[k] / 10 * int64(round*(i%10)) // of some stacks more than of others
					}
				}
				var snapshot bytes.Buffer
				require.NoError(b, p.Write(&snapshot))
				fleet.snapshots[path+name] = append(fleet.snapshots[path+name], snapshot.Bytes())
			}
		}
	}
	for i := range peerTargets {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		server := &http.Server{Handler: &peerTarget{service: fmt.Sprint("service-", i%benchServices), asked: map[string]int{},
			fleet: fleet}}
		go func() { _ = server.Serve(listener) }()
		b.Cleanup(func() { _ = server.Close() })
		fleet.addresses = append(fleet.addresses, `"`+listener.Addr().String()+`"`)
	}
	return fleet
}

func (t *peerTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	snapshots := t.fleet.snapshots[r.URL.Path+t.service]
	if snapshots == nil {
		http.NotFound(w, r)
		return
	}
	t.mu.Lock()
	round := t.asked[r.URL.Path]
	t.asked[r.URL.Path]++
	t.mu.Unlock()
	t.fleet.scrapes.Add(1)
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(snapshots[round%len(snapshots)])
}

// measure runs a scraper, and reports the cost of a minute.
func (f *peerTargetFleet) measure(b *testing.B, scraper *exec.Cmd, wire *counter) {
	c := &collector{Process: collectortest.Start(b, scraper, scraper.Path)}
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-c.Exited:
			b.Fatalf("the scraper has ended: %s", c.Log)
		}
	}
	wait(peerWarmup)
	for b.Loop() {
		scrapes, bytes, cpu := f.scrapes.Load(), wire.bytes.Load(), c.cpuSeconds(b)
		wait(peerWindow)
		scrapes, bytes, cpu = f.scrapes.Load()-scrapes, wire.bytes.Load()-bytes, c.cpuSeconds(b)-cpu
		b.ReportMetric(cpu, "cpu-s/min")
		b.ReportMetric(float64(scrapes), "scrapes/min")
		b.ReportMetric(cpu*1e6/float64(scrapes), "cpu-µs/scrape")
		b.ReportMetric(float64(bytes)/float64(scrapes), "wire-B/scrape")
		b.ReportMetric(c.peakMiB(b), "peak-MiB")
	}
}
