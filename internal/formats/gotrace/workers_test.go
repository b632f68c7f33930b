// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotrace

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// runningTime sums how long the goroutines of a trace ran: all of them, and those that were never labelled as workers
// of the garbage collector.
func runningTime(t *testing.T, data []byte) (all, others int64) {
	t.Helper()
	reader, err := trace.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	since, total, labelled := map[trace.GoID]trace.Time{}, map[trace.GoID]int64{}, map[trace.GoID]bool{}
	var now trace.Time
	for {
		e, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		now = e.Time()
		switch e.Kind() {
		case trace.EventLabel:
			if l := e.Label(); strings.HasPrefix(l.Label, "GC (") {
				labelled[l.Resource.Goroutine()] = true
			}
		case trace.EventStateTransition:
			st := e.StateTransition()
			if st.Resource.Kind != trace.ResourceGoroutine {
				continue
			}
			id := st.Resource.Goroutine()
			_, to := st.Goroutine()
			begun, isRunning := since[id]
			switch {
			case to == trace.GoRunning && !isRunning:
				since[id] = now
			case to != trace.GoRunning && isRunning:
				total[id] += int64(now - begun)
				delete(since, id)
			}
		}
	}
	for id, begun := range since {
		total[id] += int64(now - begun)
	}
	for id, n := range total {
		if all += n; !labelled[id] {
			others += n
		}
	}
	return all, others
}

// The toolchain's own traces of before Go 1.22, in which preempted goroutines have a stack of nothing, and workers of
// the garbage collector are preempted, too.
func TestWorkersOfTheGarbageCollector(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)),
		"src/internal/trace/internal/tracev1/testdata/stress_1_*_good"))
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Skip("the toolchain has no traces of before Go 1.22")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data := pt.FileBytes(t, path)
			all, others := runningTime(t, data)
			require.Greater(t, all, others+others/10, "it has workers")
			options := DefaultOptions()
			options.Aggregate = true
			pd, _, err := Decode(data, options)
			require.NoError(t, err)
			require.NoError(t, pt.Check(pd))
			text := func(i int32) string { return pd.Dictionary().StringTable().At(int(i)) }
			sum := int64(0)
			for p := range otlp.Profiles(pd) {
				if text(p.SampleType().TypeStrindex()) == "on_cpu" {
					for _, s := range p.Samples().All() {
						sum += s.Values().At(0)
					}
				}
			}
			// A worker that never had anything to do has no label, and runs for microseconds.
			assert.InEpsilon(t, others, sum, 0.001)
			for i, f := range pd.Dictionary().FunctionTable().All() {
				assert.False(t, i > 0 && f.NameStrindex() == 0, "a frame without a name")
			}
		})
	}
}
