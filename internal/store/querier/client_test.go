// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	pyroscope "github.com/grafana/pyroscope-go"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

const clientConfig = `
receivers:
  pprof: {server: {endpoint: "${env:PPROF_ENDPOINT}", pyroscope: {session_id: ""}}} # Pyroscope drops it
exporters:
  profile_store: {server: {endpoint: "${env:PAGE_ENDPOINT}"}}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [profile_store]}
  telemetry: {metrics: {level: none}}
`

// tee sends each request to several servers, so that they get the same bytes.
type tee struct {
	servers []string
	mu      sync.Mutex
	// begun and sent count the requests, failed has the answers other than 200.
	begun, sent int
	failed      []string
}

// isIdle reports that every request was sent.
func (s *tee) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun == s.sent
}

func (s *tee) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.begun++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.sent++
		s.mu.Unlock()
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var last *http.Response
	for _, server := range s.servers {
		again, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, server+r.URL.RequestURI(),
			bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		again.Header = r.Header.Clone()
		response, err := http.DefaultClient.Do(again)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(response.Body)
		err = errors.Join(err, response.Body.Close())
		response.Body = io.NopCloser(bytes.NewReader(answer))
		s.mu.Lock()
		if err != nil || response.StatusCode != http.StatusOK {
			s.failed = append(s.failed, fmt.Sprint(server, " ", response.Status, " ", string(answer), err))
		}
		s.mu.Unlock()
		last = response
	}
	return last, nil
}

// burn uses processor time and memory, and waits for locks, until the context ends.
func burn(ctx context.Context, name string) {
	var mu sync.Mutex
	kept := map[string][]byte{}
	pyroscope.TagWrapper(ctx, pyroscope.Labels("endpoint", name), func(ctx context.Context) {
		for ctx.Err() == nil {
			for i := range 200 {
				text := strings.Repeat(name+strconv.Itoa(i), 20)
				kept[text] = slices.Sorted(slices.Values([]byte(text)))
			}
			clear(kept)
			mu.Lock()
			go func() {
				time.Sleep(2 * time.Millisecond)
				mu.Unlock()
			}()
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // waiting is the point
		}
	})
}

// A program that pyroscope-go profiles has the same answers in a collector and in a real Pyroscope, whose server
// E2E_PYROSCOPE_SERVER names: both get each of its requests.
func TestPyroscopeGoIsAsInPyroscope(t *testing.T) {
	binary := os.Getenv("E2E_PYROSCOPE_SERVER")
	if binary == "" {
		t.Skip("E2E_PYROSCOPE_SERVER names no server")
	}
	begun := time.Now().Add(-time.Minute)
	theirAddress := startPyroscope(t, binary)
	pushAddress, ourAddress := startCollector(t)
	both := &tee{servers: []string{theirAddress, pushAddress}}
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	runtime.SetBlockProfileRate(int(100 * time.Microsecond))
	defer runtime.SetBlockProfileRate(0)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "shop", ServerAddress: theirAddress, Tags: map[string]string{"region": "eu"},
		UploadRate: 2 * time.Second,
		HTTPClient: both,
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileGoroutines, pyroscope.ProfileInuseSpace, pyroscope.ProfileInuseObjects,
			pyroscope.ProfileAllocSpace, pyroscope.ProfileAllocObjects, pyroscope.ProfileMutexCount,
			pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	var busy sync.WaitGroup
	for _, name := range []string{"/cart", "/pay"} {
		busy.Go(func() { burn(ctx, name) })
	}
	busy.Wait()
	profiler.Flush(true)
	require.NoError(t, profiler.Stop()) // which may leave an upload under way
	idle := 0
	require.Eventually(t, func() bool {
		if idle++; !both.isIdle() {
			idle = 0
		}
		return idle == 5
	}, time.Minute, 200*time.Millisecond)
	require.Empty(t, both.failed)
	require.Greater(t, both.sent, 10)

	theirs := querierv1connect.NewQuerierServiceClient(http.DefaultClient, theirAddress)
	ours := querierv1connect.NewQuerierServiceClient(http.DefaultClient, ourAddress)
	end := begun
	for end.Before(time.Now()) {
		end = end.Add(15 * time.Second) // a series has whole steps
	}
	waitFor(t, theirs, end)
	types := func(c querierv1connect.QuerierServiceClient) (list []string) {
		out, err := c.ProfileTypes(t.Context(),
			connect.NewRequest(&querierv1.ProfileTypesRequest{Start: begun.UnixMilli(), End: end.UnixMilli()}))
		require.NoError(t, err)
		for _, id := range out.Msg.ProfileTypes {
			list = append(list, id.ID)
		}
		slices.Sort(list)
		return list
	}
	list := types(theirs)
	require.Equal(t, list, pyroscopeGoNames(types(ours)))
	require.Len(t, list, 11, "two of CPU, four of memory, goroutines, two each of mutexes and of blocking")
	const nodes = 1 << 20
	most := int64(nodes)
	for _, id := range list {
		t.Run(id, func(t *testing.T) {
			flame := func(c querierv1connect.QuerierServiceClient, selector string) (int64, []string) {
				out, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
					ProfileTypeID: id, LabelSelector: selector, Start: begun.UnixMilli(), End: end.UnixMilli(), MaxNodes: &most,
				}))
				require.NoError(t, err)
				return out.Msg.Flamegraph.Total, selfLines(out.Msg.Flamegraph)
			}
			series := func(c querierv1connect.QuerierServiceClient, step float64) []string {
				out, err := c.SelectSeries(t.Context(), connect.NewRequest(&querierv1.SelectSeriesRequest{
					ProfileTypeID: id, LabelSelector: `{service_name="shop"}`, Start: begun.UnixMilli(), End: end.UnixMilli(),
					Step:    step,
					GroupBy: []string{"service_name", "region", "endpoint"},
				}))
				require.NoError(t, err)
				return seriesText(out.Msg.Series)
			}
			for _, selector := range []string{`{service_name="shop"}`, `{region="eu", endpoint="/cart"}`} {
				total, stacks := flame(theirs, selector)
				found, foundStacks := flame(ours, selector)
				assert.Equal(t, total, found, "total of %s", selector)
				assert.Equal(t, stacks, foundStacks, selector)
				t.Logf("%s: total %d in %d stacks", selector, total, len(stacks))
			}
			// Here from and until win over the time in a pprof, which is the end of the recording unless it is of the processor.
			if points := series(theirs, 1); strings.HasPrefix(id, "process_cpu:") {
				assert.Equal(t, points, series(ours, 1))
				assert.Equal(t, series(theirs, 15), series(ours, 15))
			} else {
				times := regexp.MustCompile(` \d+:`)
				assert.NotEmpty(t, points)
				assert.Equal(t, times.ReplaceAllString(fmt.Sprint(points), " "), times.ReplaceAllString(fmt.Sprint(series(ours, 1)), " "))
			}
		})
	}
	for _, name := range []string{"service_name", "region", "endpoint", "__profile_type__"} {
		values := func(c querierv1connect.QuerierServiceClient) []string {
			out, err := c.LabelValues(t.Context(),
				connect.NewRequest(&typesv1.LabelValuesRequest{Name: name, Start: begun.UnixMilli(), End: end.UnixMilli()}))
			require.NoError(t, err)
			return out.Msg.Names
		}
		assert.Equal(t, values(theirs), pyroscopeGoNames(values(ours)), name)
	}
}

// pyroscopeGoNames returns names of profile types as Pyroscope lists those of pyroscope-go. Queries take both.
func pyroscopeGoNames(list []string) (names []string) {
	for _, name := range list {
		if strings.HasPrefix(name, "goroutine:") {
			name = "goroutines" + strings.TrimPrefix(name, "goroutine")
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// selfLines returns the stacks of a flame graph with their own values. Names have no type parameters.
func selfLines(f *querierv1.FlameGraph) (lines []string) {
	sums := map[string]int64{}
	for _, line := range levelPaths(f.GetNames(), f.GetLevels(), 4) {
		var total, self int64
		at := strings.LastIndex(line, "[")
		_, _ = fmt.Sscanf(line[at:], "[%d %d]", &total, &self)
		// A function without a name is called (unknown) here.
		sums[strings.ReplaceAll(withoutShapes(line[:at])+";", ";(unknown);", ";;")] += self
	}
	for path, sum := range sums {
		if sum != 0 {
			lines = append(lines, fmt.Sprint(path, " ", sum))
		}
	}
	slices.Sort(lines)
	return lines
}

// startCollector starts the collector with a store in memory, and returns where pushes and queries go.
func startCollector(t *testing.T) (push, queries string) {
	t.Helper()
	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(config, []byte(clientConfig), 0o600))
	push, queries = collectortest.FreeAddress(t), collectortest.FreeAddress(t)
	command := exec.Command(path, "--config", config)
	command.Env = append(os.Environ(), "PPROF_ENDPOINT="+push, "PAGE_ENDPOINT="+queries)
	collectortest.Start(t, command, "the collector").WaitUntilReady(t)
	return "http://" + push, "http://" + queries
}
