// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	httppprof "net/http/pprof"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// spin keeps a CPU busy until the test ends, so that CPU profiles have samples.
func spin(t *testing.T) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		block := []byte("x")
		for {
			select {
			case <-done:
				return
			default:
				sum := sha256.Sum256(block)
				block = sum[:]
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		running.Wait()
	})
}

// named returns the profiles with one name.
func named(all []pprofile.Profiles, name string) []pprofile.Profiles {
	return slices.DeleteFunc(slices.Clone(all), func(pd pprofile.Profiles) bool {
		return kind.Stated(pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes()) != name
	})
}

func (f *fixture) awaitNamed(n int, name string) []pprofile.Profiles {
	f.T.Helper()
	require.Eventually(f.T, func() bool { return len(named(f.Next.All(), name)) >= n }, sourcetest.Patience,
		5*time.Millisecond, name)
	return named(f.Next.All(), name)
}

// contend blocks goroutines, for the mutex and block profiles to show.
func contend() {
	var mu sync.Mutex
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			mu.Lock()
			time.Sleep(time.Millisecond)
			mu.Unlock()
		})
	}
	running.Wait()
}

func TestSelfProfiles(t *testing.T) {
	spin(t)
	f := startFixture(t, "self: {collection_interval: 300ms}\nresource_attributes: {zone: a}")
	contend()
	for name, types := range map[string]int{"process_cpu": 2, "memory": 4, "goroutine": 1, "mutex": 2, "block": 2} {
		pd := f.awaitNamed(1, name)[0]
		assert.Equal(t, types, pd.ProfileCount(), name)
		assert.Equal(t, map[string]any{"service.name": "otelcol-profiles", "zone": "a"}, sourcetest.ResourceOf(t, pd))
	}
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(named(f.Next.All(), "process_cpu"), func(pd pprofile.Profiles) bool {
			return slices.Contains(functionNames(pd), "crypto/sha256.Sum256")
		})
	}, sourcetest.Patience, 5*time.Millisecond, "a busy machine may leave a window without samples of it")
	assert.Positive(t, f.Sum("otelcol_receiver_accepted_profile_samples", "transport", "runtime"))
	assert.Zero(t, f.Logs.Len())
}

// Totals of the runtime are delivered as differences, so that backends can add up what arrives.
func TestSelfTotalsBecomeDifferences(t *testing.T) {
	rate := runtime.SetMutexProfileFraction(1)
	defer runtime.SetMutexProfileFraction(rate)
	contend()
	f := startFixture(t, "self: {collection_interval: 100ms, mutex_profile_fraction: 1}")
	require.Eventually(t, func() bool { return len(named(f.Next.All(), "memory")) >= 6 }, sourcetest.Patience,
		5*time.Millisecond)
	f.stop()
	for i, pd := range named(f.Next.All(), "mutex") {
		assert.Equal(t, i == 0, slices.ContainsFunc(functionNames(pd), func(name string) bool {
			return strings.Contains(name, ".contend.")
		}),
			"window %d", i)
	}
	// Goroutines are what exists at the end of each window.
	assert.InDelta(t, len(named(f.Next.All(), "memory")), len(named(f.Next.All(), "goroutine")), 1)
	for i, pd := range named(f.Next.All(), "goroutine") {
		assert.True(t,
			slices.ContainsFunc(functionNames(pd), func(name string) bool { return strings.HasPrefix(name, "testing.") }),
			"window %d", i)
		assert.Zero(t, pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).DurationNano(), "window %d", i)
	}
	for i, pd := range named(f.Next.All(), "memory") {
		for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				typ := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
				assert.Equal(t, i > 0 && strings.HasPrefix(typ, "alloc_"), p.DurationNano() > 0, "window %d, %s", i, typ)
			}
		}
	}
}

// A CPU window begins where the one before ended, except for the time that the runtime needs to write a profile.
func TestSelfWindowsHaveNoGaps(t *testing.T) {
	spin(t)
	f := startFixture(t, "self: {collection_interval: 500ms, mutex_profile_fraction: 0, block_profile_fraction: 0}")
	windows := f.awaitNamed(4, "process_cpu")
	f.stop()
	least := time.Hour
	for i := 1; i < len(windows); i++ {
		before := windows[i-1].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		after := windows[i].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		end := before.Time().AsTime().Add(time.Duration(before.DurationNano()))
		gap := after.Time().AsTime().Sub(end)
		assert.GreaterOrEqual(t, gap, time.Duration(0))
		least = min(least, gap)
	}
	assert.Less(t, least, 250*time.Millisecond, "the others can be longer on a busy machine")
	assert.Empty(t, named(f.Next.All(), "mutex"))
	assert.Empty(t, named(f.Next.All(), "block"))
}

// self neither breaks somebody else's CPU profile nor waits for it: it goes on with the other profiles, and profiles
// the CPU again when that profile ends.
func TestSelfBesideAnotherCPUProfile(t *testing.T) {
	spin(t)
	var others bytes.Buffer
	require.NoError(t, pprof.StartCPUProfile(&others))
	f := startFixture(t, "self: {collection_interval: 100ms}")
	f.awaitNamed(3, "memory")
	assert.Len(t, f.AwaitLog(1, "another CPU profile"), 1)
	assert.Empty(t, named(f.Next.All(), "process_cpu"))

	pprof.StopCPUProfile()
	theirs := profiletest.ParsePprof(t, others.Bytes())
	assert.NotEmpty(t, theirs.Sample)
	f.awaitNamed(2, "process_cpu")
	assert.Len(t, f.Logs.FilterMessageSnippet("the collector").All(), 2, "one line for each change")
}

// The README describes what a user of the pprof extension sees. The extension has the handlers of net/http/pprof.
func TestSelfBesideThePprofExtension(t *testing.T) {
	startFixture(t, "self: {collection_interval: 1h}")
	get := func(handler http.Handler, url string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, url, nil))
		body, err := io.ReadAll(recorder.Body)
		require.NoError(t, err)
		return recorder.Code, string(body)
	}
	code, body := get(http.HandlerFunc(httppprof.Profile), "/debug/pprof/profile?seconds=1")
	for tries := 0; code == http.StatusOK && tries < 5; tries++ {
		// The request got the profiler before self, which retries within a second.
		time.Sleep(time.Second + 200*time.Millisecond)
		code, body = get(http.HandlerFunc(httppprof.Profile), "/debug/pprof/profile?seconds=1")
	}
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, body, "cpu profiling already in use")
	for _, name := range []string{"heap", "goroutine", "mutex", "block"} {
		code, body := get(httppprof.Handler(name), "/debug/pprof/"+name)
		assert.Equal(t, http.StatusOK, code)
		_, err := profile.ParseData([]byte(body))
		assert.NoError(t, err)
	}
}

// Shutdown ends the window early and delivers it. On a busy machine it is the second one: the first ends after seconds.
func TestSelfShutdownFlushes(t *testing.T) {
	spin(t)
	f := startFixture(t, "self: {collection_interval: 1h}")
	f.awaitNamed(1, "goroutine") // profiles of the runtime are delivered at once
	for begun := profiletest.ProcessCPU(); begun > 0 && profiletest.ProcessCPU()-begun < 200*time.Millisecond; {
		time.Sleep(10 * time.Millisecond) // while the process computes, which has no samples on a busy machine at first
	}
	before := len(named(f.Next.All(), "process_cpu"))
	f.stop()
	windows := named(f.Next.All(), "process_cpu")
	require.Greater(t, len(windows), before)
	assert.True(t, slices.ContainsFunc(windows, func(pd pprofile.Profiles) bool {
		return slices.Contains(functionNames(pd), "crypto/sha256.Sum256")
	}))
}

func TestSelfHasOneOwner(t *testing.T) {
	f := startFixture(t, "self: {collection_interval: 1h}")
	second := newFixture(t, "self: {collection_interval: 1h}")
	err := second.receiver.Start(t.Context(), sourcetest.Host{})
	require.ErrorContains(t, err, `start `+"`self`"+`: receiver "pprof" profiles this process already`)
	f.stop()
	require.NoError(t, second.receiver.Start(t.Context(), sourcetest.Host{}), "the first one is shut down")
	require.NoError(t, second.receiver.Shutdown(t.Context()))
}

func TestSelfRates(t *testing.T) {
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(7))
	f := startFixture(t, "self: {collection_interval: 1h, mutex_profile_fraction: 3}")
	assert.Equal(t, 3, runtime.SetMutexProfileFraction(-1))
	f.stop()
	assert.Equal(t, 7, runtime.SetMutexProfileFraction(-1), "as it was before")

	f = startFixture(t, "self: {collection_interval: 1h, mutex_profile_fraction: 0}")
	assert.Equal(t, 7, runtime.SetMutexProfileFraction(-1), "0 leaves it alone")
	f.stop()

	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	startFixture(t, "self: {collection_interval: 1h, mutex_profile_fraction: 0, block_profile_fraction: 0}")
	<-time.After(time.Millisecond)
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("block").WriteTo(&text, 1))
	assert.Contains(t, text.String(), "TestSelfRates", "0 leaves it alone")
}

// While the pipeline hangs, windows are dropped and counted, recording goes on, and only pending windows take memory.
func TestSelfPipelineBehind(t *testing.T) {
	f := newFixture(t, "self: {collection_interval: 20ms, mutex_profile_fraction: 0, block_profile_fraction: 0}")
	release := make(chan struct{})
	f.Next.Err = func(int) error {
		<-release
		return nil
	}
	f.start(nil)
	f.AwaitLog(2, "the pipeline is behind")
	assert.Positive(t, f.Sum(sourcetest.MetricRejected, "reason", "pipeline_behind", "source", "self"))
	close(release)
	f.awaitNamed(4, "memory")
}

// The profiles of a window are delivered concurrently: one after the other would each wait for a batch, together longer
// than a shutdown may take.
func TestSelfDeliversAWindowAtOnce(t *testing.T) {
	f := newFixture(t, "self: {collection_interval: 1h}")
	var window sync.WaitGroup
	window.Add(4) // heap, goroutine, mutex, block
	f.Next.Err = func(n int) error {
		if n < 4 {
			window.Done()
			window.Wait()
		}
		return nil
	}
	f.start(nil)
	f.Await(4)
}

func TestSelfRefused(t *testing.T) {
	f := newFixture(t, "self: {collection_interval: 20ms}")
	f.Next.RefuseWith(errors.New("full"))
	f.start(nil)
	require.Eventually(t, func() bool { return f.Next.Attempts() > 10 }, sourcetest.Patience, time.Millisecond)
	assert.Len(t, f.AwaitLog(1, "cannot accept a profile"), 1)
	f.Next.RefuseWith(nil)
	f.AwaitLog(1, "accepting profiles again")
}
