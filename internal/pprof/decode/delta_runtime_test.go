// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// deltaProcessDir names the folder into which the test binary, run once more, writes its profiles.
const deltaProcessDir = "PPROFCONV_DELTA_PROCESS_DIR"

// deltaProcessWork is what a process does before each of its profiles.
var deltaProcessWork = []int{100, 50, 0, 7}

// TestDeltaProcess is a process of its own, with all allocations and contentions recorded.
func TestDeltaProcess(t *testing.T) {
	dir := os.Getenv(deltaProcessDir)
	if dir == "" {
		t.Skip("run by TestDeltaOfARealProcess")
	}
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	kept := make([][]byte, 0, 1000)
	for step, n := range deltaProcessWork {
		kept = allocateForDelta(kept, n)
		handOver(n)
		if n > 0 {
			contend()
		}
		runtime.GC() // a heap profile shows the state at the collection before the last
		runtime.GC()
		for _, kind := range []string{"allocs", "block", "mutex"} {
			var out bytes.Buffer
			require.NoError(t, pprof.Lookup(kind).WriteTo(&out, 0))
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(kind, step)), out.Bytes(), 0o600))
		}
	}
	runtime.KeepAlive(kept)
}

const deltaObjectBytes = 4096

//go:noinline
func allocateForDelta(kept [][]byte, n int) [][]byte {
	for range n {
		kept = append(kept, make([]byte, deltaObjectBytes))
	}
	return kept
}

// handOver makes one side wait for each value, whichever comes first.
func handOver(n int) {
	values := make(chan int)
	go func() {
		for i := range n {
			values <- i
		}
	}()
	for range n {
		<-values
	}
}

// contend returns once the runtime has recorded that a goroutine waited for a mutex.
func contend() {
	seen := func() (sum int64) {
		records := make([]runtime.BlockProfileRecord, 10_000)
		n, _ := runtime.MutexProfile(records)
		for _, r := range records[:n] {
			sum += r.Count
		}
		return sum
	}
	for before := seen(); seen() == before; {
		var mutex sync.Mutex
		var done sync.WaitGroup
		mutex.Lock()
		done.Go(func() {
			mutex.Lock()
			defer mutex.Unlock()
		})
		time.Sleep(5 * time.Millisecond)
		mutex.Unlock()
		done.Wait()
	}
}

// runDeltaProcess returns the payloads of a process by kind.
func runDeltaProcess(t *testing.T) map[string][][]byte {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestDeltaProcess$")
	cmd.Env = append(os.Environ(), deltaProcessDir+"="+dir, "GODEBUG=memprofilerate=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	payloads := map[string][][]byte{}
	for _, kind := range []string{"allocs", "block", "mutex"} {
		for step := range deltaProcessWork {
			payload := profiletest.FileBytes(t, filepath.Join(dir, fmt.Sprint(kind, step)))
			payloads[kind] = append(payloads[kind], payload)
		}
	}
	return payloads
}

func TestDeltaOfARealProcess(t *testing.T) {
	process, another := runDeltaProcess(t), runDeltaProcess(t)
	for kind, payloads := range process {
		t.Run(kind, func(t *testing.T) {
			s, naive := newDeltaSteps(t, 0), &naiveBaseline{}
			total := int64(0)
			for step, payload := range payloads {
				p := profiletest.ParsePprof(t, payload)
				pd, stats := s.next(payload)
				want := naive.delta(p, s.at)
				*naive = want.next
				assert.Equal(t, DeltaStats{First: step == 0}, stats.Delta)
				checkDelta(t, &want, pd)
				total += int64(deltaProcessWork[step])
				switch n := int64(deltaProcessWork[step]); {
				case step == 0:
				case kind == "allocs":
					assert.Equal(t, n, sumOf(valuesOf(pd, "alloc_objects"), "allocateForDelta"))
					assert.Equal(t, n*deltaObjectBytes, sumOf(valuesOf(pd, "alloc_space"), "allocateForDelta"))
					assert.Equal(t, total, sumOf(valuesOf(pd, "inuse_objects"), "allocateForDelta"))
				case kind == "block":
					assert.Equal(t, n, sumOf(valuesOf(pd, "contentions"), "runtime.chan"))
				case n > 0:
					assert.Positive(t, sumOf(valuesOf(pd, "contentions"), ""))
				}
			}
			_, stats := s.next(another[kind][0])
			if kind != "mutex" { // the test does not determine who waits for a mutex
				assert.True(t, stats.Delta.Restarted)
			}
			pd, stats := s.next(another[kind][1])
			assert.Equal(t, DeltaStats{}, stats.Delta)
			if kind == "allocs" {
				assert.Equal(t, int64(deltaProcessWork[1]), sumOf(valuesOf(pd, "alloc_objects"), "allocateForDelta"))
			}
		})
	}
}

// sumOf adds up the values of the functions whose name contains a text.
func sumOf(values map[string]int64, name string) (sum int64) {
	for function, v := range values {
		if strings.Contains(function, name) {
			sum += v
		}
	}
	return sum
}
