// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	storeStep     = 10 * time.Second
	storeVariants = 8
	// stepsOfRequest is how many steps a request has: one that has waited for Pyroscope's segment, half a second or more,
	// brings a minute.
	stepsOfRequest = 6
)

// storeProfile is what a service sends of one type in a step.
type storeProfile struct {
	name    string
	bodies  [storeVariants][]byte // gzip without the time
	samples [storeVariants]int
}

// storeDay is what services send: the first one in all steps, the others in the first steps.
type storeDay struct {
	begun         time.Time
	services      [][]storeProfile
	steps, ofEach int
}

// requests sends all requests, several at a time: Pyroscope answers after it has written a segment, which takes half a
// second.
func (d *storeDay) requests(t *testing.T, send func(body []byte) error) (samples int) {
	var sent atomic.Int64
	type batch struct{ service, step int }
	next := make(chan batch)
	var senders sync.WaitGroup
	var failed atomic.Value
	for range 64 {
		senders.Go(func() {
			for at := range next {
				body, n := d.request(t, at.service, d.begun.Add(time.Duration(at.step)*storeStep), stepsOfRequest)
				if err := send(body); err != nil {
					failed.Store(err)
				}
				sent.Add(int64(n))
			}
		})
	}
	for step := 0; step < d.steps; step += stepsOfRequest {
		for service := range d.services {
			if service > 0 && step >= d.ofEach || failed.Load() != nil {
				break
			}
			next <- batch{service, step}
		}
	}
	close(next)
	senders.Wait()
	require.Nil(t, failed.Load())
	return int(sent.Load())
}

// request returns a message of push.v1 with all types of a service in several steps.
func (d *storeDay) request(t *testing.T, service int, at time.Time, steps int) (body []byte, samples int) {
	request := &pushv1.PushRequest{}
	for step := range steps {
		// The time is a field that follows the others, in a member of gzip of its own: nothing has to be compressed again.
		const timeNanos = 9
		start := at.Add(time.Duration(step) * storeStep)
		when := profiletest.Gzip(binary.AppendUvarint([]byte{timeNanos << 3}, uint64(start.UnixNano())))
		variant := int(start.Unix()/int64(storeStep.Seconds())) % storeVariants
		for _, p := range d.services[service] {
			request.Series = append(request.Series, &pushv1.RawProfileSeries{
				Labels: []*typesv1.LabelPair{
					{Name: "__name__", Value: p.name}, {Name: "__delta__", Value: "false"},
					{Name: "pod", Value: fmt.Sprintf("shop-%d-abcde", service)},
					{Name: "service_name", Value: fmt.Sprintf("shop-%d", service)},
				},
				Samples: []*pushv1.RawSample{{RawProfile: slices.Concat(p.bodies[variant], when)}},
			})
			samples += p.samples[variant]
		}
	}
	body, err := proto.Marshal(request)
	require.NoError(t, err)
	return body, samples
}

// generatedProfiles returns what profiletool load sends.
func generatedProfiles(t *testing.T) (list []*profile.Profile) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, to := grpc.NewServer(), &firstMessages{}
	pprofileotlp.RegisterGRPCServer(server, to)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	tool := exec.Command(filepath.Join(repository, "bin", "profiletool"), "load", "--endpoint", listener.Addr().String(),
		"--services=1", "--types=5", "--samples=100", "--rate=50", "--duration=1s")
	out, err := tool.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, pd := range to.messages[:5] {
		payloads, _, err := encode.Encode(pd)
		require.NoError(t, err)
		p := profiletest.ParsePprof(t, payloads[0].Bytes)
		list = append(list, p)
	}
	return list
}

type firstMessages struct {
	pprofileotlp.UnimplementedGRPCServer
	mu       sync.Mutex
	messages []pprofile.Profiles
}

func (m *firstMessages) Export(
	_ context.Context, request pprofileotlp.ExportRequest,
) (pprofileotlp.ExportResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, request.Profiles())
	return pprofileotlp.NewExportResponse(), nil
}

// newStoreDay makes profiles of services. Half of them send captured ones, half of them generated ones. Each sends
// functions of its own, and seven tenths of the samples with other values each time.
func newStoreDay(t *testing.T, services, steps, ofEach int) *storeDay {
	d := &storeDay{begun: time.Now().UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour), steps: steps, ofEach: ofEach}
	random := rand.New(rand.NewPCG(1, 2))
	generated := generatedProfiles(t)
	payloads := capturedPayloads(t)
	for service := range services {
		var list []storeProfile
		for i, kind := range []struct{ name, file string }{
			{"process_cpu", "go-cpu-labels"}, {"memory", "go-heap"}, {"goroutine", "go-goroutine"}, {"mutex", "go-mutex"},
			{"block", "go-block"},
		} {
			base := generated[i]
			if service%2 == 0 {
				base = profiletest.ParsePprof(t, payloads[kind.file+".pb.gz"])
			}
			base.DurationNanos = int64(storeStep)
			p := storeProfile{name: kind.name}
			for v := range storeVariants {
				variant := profiletest.ParsePprof(t, benchVariant(t, base, fmt.Sprint("shop-", service), random))
				variant.TimeNanos = 0 // request sets it
				var body bytes.Buffer
				require.NoError(t, variant.Write(&body))
				p.bodies[v], p.samples[v] = body.Bytes(), len(variant.Sample)*len(variant.SampleType)
			}
			list = append(list, p)
		}
		d.services = append(d.services, list)
	}
	return d
}

// storePeer is a process that keeps profiles, and takes them and answers as Pyroscope does.
type storePeer struct {
	name, dir string
	// start starts it with what is in dir. push and query are where it listens then.
	start       func() *collectortest.Process
	push, query string
	process     *collectortest.Process
}

func (p *storePeer) post(target string, body []byte) (answer []byte, err error) {
	request, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/proto")
	response, err := benchClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.300s", target, response.StatusCode, answer)
	}
	return answer, err
}

func (p *storePeer) send(body []byte) error {
	_, err := p.post("http://"+p.push+"/push.v1.PusherService/Push", body)
	return err
}

// flameGraph returns the total of a service's processor time, and how long the answer took.
func (p *storePeer) flameGraph(service int, from, until time.Time) (total int64, took time.Duration, err error) {
	body, err := proto.Marshal(&querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
		LabelSelector: fmt.Sprintf(`{service_name="shop-%d"}`, service),
		Start:         from.UnixMilli(), End: until.UnixMilli(),
	})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	answer, err := p.post("http://"+p.query+"/querier.v1.QuerierService/SelectMergeStacktraces", body)
	took = time.Since(began)
	if err != nil {
		return 0, took, err
	}
	var graph querierv1.SelectMergeStacktracesResponse
	err = proto.Unmarshal(answer, &graph)
	return graph.GetFlamegraph().GetTotal(), took, err
}

// bytesOnDisk returns the size of the files of a folder.
func bytesOnDisk(folder string) (sum int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// settle waits until the process has written nothing for a while: what it compacts soon is compacted.
func (p *storePeer) settle(t *testing.T) {
	const quiet, most = 50 * time.Second, 4 * time.Minute
	began := time.Now()
	changed, size := began, int64(0)
	for time.Since(changed) < quiet && time.Since(began) < most {
		time.Sleep(time.Second)
		if now := bytesOnDisk(p.dir); max(now-size, size-now) > size/500 {
			changed, size = time.Now(), now
		}
	}
	t.Logf("%s: wrote until %s after the last push", p.name, changed.Sub(began).Round(time.Second))
}

// restart starts the process again, while none of its files is in the system's cache.
func (p *storePeer) restart(t *testing.T) {
	p.process.Terminate(t)
	_ = exec.Command("sync").Run()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		t.Logf("files stay in the system's cache: %v", err)
	}
	p.process = p.start()
}

// fill sends the day, and returns the processor time by the last answer.
func (p *storePeer) fill(t *testing.T, d *storeDay) (samples int, cpu float64) {
	p.process = p.start()
	time.Sleep(10 * time.Second)
	began, before := time.Now(), cpuSeconds(t, p.process.Pid)
	samples = d.requests(t, p.send)
	cpu = cpuSeconds(t, p.process.Pid) - before
	t.Logf("%s: %d samples in %s; processor time a sample %.2f µs", p.name, samples, time.Since(began).Round(time.Second),
		cpu/float64(samples)*1e6)
	return samples, cpu
}

// median returns the median time of flame graphs of the first service's day.
func (p *storePeer) median(t *testing.T, d *storeDay) time.Duration {
	var took []time.Duration
	for range 11 {
		_, one, err := p.flameGraph(0, d.begun, d.begun.Add(24*time.Hour))
		require.NoError(t, err)
		took = append(took, one)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func newOurs(t *testing.T) *storePeer {
	p := &storePeer{name: "profile_store", dir: t.TempDir()}
	p.start = func() *collectortest.Process {
		c := launch(t, `yaml:
receivers: {pprof: {server: {endpoint: "${env:PPROF_ENDPOINT}"}}}
exporters: {profile_store: {server: {endpoint: "${env:PAGE_ENDPOINT}"}, storage: {directory: `+p.dir+`}}}
service: {pipelines: {profiles: {receivers: [pprof], exporters: [profile_store]}},
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: "${env:METRICS_PORT}"}}}}]}}}`)
		p.push, p.query = c.endpoint, c.graphs
		return c.Process
	}
	return p
}

// storeDayOfEnvironment returns the day for which STORE_SERVICES and STORE_MINUTES ask.
func storeDayOfEnvironment(t *testing.T) *storeDay {
	number := func(key string, def int) int {
		if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
			return n
		}
		return def
	}
	_, err := collectortest.Binary() // and profiletool
	require.NoError(t, err)
	return newStoreDay(t, number("STORE_SERVICES", 20), number("STORE_DAY_MINUTES", 24*60)*6,
		number("STORE_MINUTES", 30)*6)
}

// TestStoreBesidePyroscope sends the same requests to profile_store and to the Pyroscope of E2E_PYROSCOPE_SERVER, one
// after the other, and prints what each of them took. STORE_SERVICES (20) services send five types every ten seconds of
// the first STORE_MINUTES (30) of yesterday; one of them of all STORE_DAY_MINUTES (1440).
func TestStoreBesidePyroscope(t *testing.T) {
	binary := os.Getenv("E2E_PYROSCOPE_SERVER")
	if binary == "" {
		t.Skip("E2E_PYROSCOPE_SERVER names no server")
	}
	d := storeDayOfEnvironment(t)
	pyroscope := pyroscopetest.NewReal(t, binary, "-validation.reject-older-than=0")
	address := pyroscope.URL[len("http://"):]
	ours, theirs := newOurs(t), &storePeer{name: "Pyroscope", dir: pyroscope.Dir, push: address, query: address}
	theirs.start = func() *collectortest.Process {
		pyroscope.Start(t)
		return pyroscope.Process
	}
	totals := map[string][]int64{}
	for _, p := range []*storePeer{ours, theirs} {
		samples, cpu := p.fill(t, d)
		before := cpuSeconds(t, p.process.Pid)
		p.settle(t)
		t.Logf("%s: processor time a sample %.2f µs with what it wrote afterwards", p.name,
			(cpu+cpuSeconds(t, p.process.Pid)-before)/float64(samples)*1e6)
		for service := range 2 {
			total, _, err := p.flameGraph(service, d.begun, d.begun.Add(24*time.Hour))
			require.NoError(t, err)
			totals[p.name] = append(totals[p.name], total)
		}
		warm := p.median(t, d)
		p.restart(t)
		total, cold, err := p.flameGraph(0, d.begun, d.begun.Add(24*time.Hour))
		require.NoError(t, err)
		assert.Equal(t, totals[p.name][0], total, "%s after a restart", p.name)
		t.Logf("%s: flame graph of 24 h: %s warm, %s after a restart with an empty cache; %s", p.name,
			warm.Round(time.Millisecond), cold.Round(time.Millisecond), p.sizes(samples))
		if p == theirs {
			text, bytes := pyroscope.Blocks(t)
			t.Logf("%s: %.2f bytes a sample in blocks that are read: %s", p.name, float64(bytes)/float64(samples), text)
		}
		p.process.Terminate(t)
	}
	assert.Equal(t, totals[theirs.name], totals[ours.name], "both have everything")
}

// sizes describes what is on disk.
func (p *storePeer) sizes(samples int) string {
	text := fmt.Sprintf("%.2f bytes a sample on disk", float64(bytesOnDisk(p.dir))/float64(samples))
	entries, _ := os.ReadDir(p.dir)
	for _, entry := range entries {
		if n := bytesOnDisk(filepath.Join(p.dir, entry.Name())); entry.IsDir() && n > 0 {
			text += fmt.Sprintf(", %s %.2f", entry.Name(), float64(n)/float64(samples))
		}
	}
	return text
}
