// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// topOf returns the shares of functions as `go tool pprof -top` has them: flat, or cum.
func topOf(p *profile.Profile, index int, isCum bool) map[string]float64 {
	values, all := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		seen := map[string]bool{}
		all += float64(s.Value[index])
		for i, location := range s.Location {
			for k, line := range location.Line {
				if !isCum && (i > 0 || k > 0) || seen[line.Function.Name] {
					continue
				}
				seen[line.Function.Name] = true
				values[line.Function.Name] += float64(s.Value[index])
			}
		}
	}
	for name := range values {
		values[name] /= all
	}
	return values
}

// The shares of captured profiles are those of `go tool pprof -top`, over one interval and over several.
func TestTopFunctionsOfCapturedProfiles(t *testing.T) {
	for _, tt := range []struct{ file, profile, sampleType string }{
		{"go-cpu-labels", "process_cpu/cpu", "cpu"},
		{"go-build-merged-cpu-large", "process_cpu/cpu", "cpu"},
		{"go-heap", "memory/inuse_space", "inuse_space"},
		{"go-heap", "memory/inuse_objects", "inuse_objects"},
		{"go-compile-nethttp-heap-large", "memory/inuse_space", "inuse_space"},
		{"go-heap-delta", "memory/alloc_space", "alloc_space"},
		{"go-goroutine", "goroutine/goroutine", "goroutine"},
		{"node-datadog-wall-cpu", "wall/cpu", "cpu"},
		{"node-datadog-wall-cpu", "wall/wall", "wall"},
	} {
		payload := profiletest.FileBytes(t, "../../testdata/pprof/"+tt.file+".pb.gz")
		p, err := profile.Parse(bytes.NewReader(payload))
		require.NoError(t, err)
		index := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == tt.sampleType })
		require.GreaterOrEqual(t, index, 0, tt)
		for _, of := range []string{"self", "total"} {
			f := start(t, fmt.Sprintf("top_functions: [{profile: %s, of: %s, count: 20, window: 1m}]", tt.profile, of))
			f.clock.at = f.clock.at.Truncate(time.Minute)
			want := topOf(p, index, of == "total")
			names := make([]string, 0, len(want))
			for name := range want {
				names = append(names, name)
			}
			slices.SortFunc(names, func(a, b string) int { return cmp.Compare(want[b], want[a]) })
			if len(names) > 20 { // of equal ones, chance decides which is among them
				names = slices.DeleteFunc(names[:21:21], func(name string) bool { return want[name] == want[names[20]] })
			}
			for range 3 {
				pd, _, err := decode.Decode(payload, decode.Options{})
				require.NoError(t, err)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "shop")
				f.consume(t, pd)
				got := named(f.collect(t), "profile.function.share")
				for _, name := range names {
					assert.InDelta(t, want[name], got[name], 1.0/512+1e-6, "%v %s %s", tt, of, name)
				}
			}
		}
	}
}
