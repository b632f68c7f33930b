// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	pprofencode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// service is a program whose CPU profiles are like those of a busy server: each profile has some of its stacks, mostly
// the same ones.
type service struct {
	rnd       *rand.Rand
	functions []*profile.Function
	locations []*profile.Location
	mapping   *profile.Mapping
	stacks    [][]*profile.Location
}

func newService(stacks, functions, depth int) *service {
	s := &service{rnd: rand.New(rand.NewPCG(1, 2))}
	s.mapping = &profile.Mapping{ID: 1, Start: 0x400000, Limit: 0x4000000, File: "/usr/bin/shop",
		BuildID: "abcdef0123456789", HasFunctions: true}
	for i := range functions {
		f := &profile.Function{
			ID: uint64(i + 1), Name: fmt.Sprintf("example.com/shop/internal/package%d.(*Type%d).Method%d", i%97, i%31, i),
			Filename: fmt.Sprintf("/src/shop/internal/package%d/file%d.go", i%97, i%11), StartLine: int64(i),
		}
		f.SystemName = f.Name
		s.functions = append(s.functions, f)
		for k := range 2 {
			s.locations = append(s.locations, &profile.Location{
				ID: uint64(2*i + k + 1), Mapping: s.mapping, Address: uint64(0x400000 + 64*i + 8*k),
				Line: []profile.Line{{Function: f, Line: int64(i + k)}},
			})
		}
	}
	// Stacks grow as calls do: most share their callers with another.
	for range stacks {
		var stack []*profile.Location
		if n := len(s.stacks); n > 0 {
			from := s.stacks[s.rnd.IntN(n)]
			keep := len(from) - 1 - s.rnd.IntN(min(len(from), 12))
			stack = append(stack, from[len(from)-max(keep, 1):]...)
		}
		for len(stack) < depth/2+s.rnd.IntN(depth) {
			stack = append([]*profile.Location{s.locations[s.rnd.IntN(len(s.locations))]}, stack...)
		}
		s.stacks = append(s.stacks, stack)
	}
	return s
}

// profile returns ten seconds of the service, n of its stacks.
func (s *service) profile(at time.Time, n int) *profile.Profile {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000,
		TimeNanos: at.UnixNano(), DurationNanos: 10e9,
		Mapping: []*profile.Mapping{s.mapping}, Function: s.functions, Location: s.locations,
	}
	for _, i := range s.rnd.Perm(len(s.stacks))[:n] {
		count := 1 + s.rnd.Int64N(9)
		p.Sample = append(p.Sample, &profile.Sample{Location: s.stacks[i], Value: []int64{count, count * p.Period}})
	}
	return p.Compact()
}

// hour is 360 profiles of 5,000 stacks each, as pprof and as OTLP.
func hour(t testing.TB, profiles, stacks int) (pprofs []*profile.Profile, messages []pprofile.Profiles) {
	s := newService(stacks*2, stacks, 30)
	for i := range profiles {
		p := s.profile(noon.Add(time.Duration(i-profiles)*10*time.Second), stacks)
		pprofs = append(pprofs, p)
		var payload bytes.Buffer
		require.NoError(t, p.WriteUncompressed(&payload))
		pd, _, err := decode.Decode(payload.Bytes(), decode.Options{})
		require.NoError(t, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "shop")
		messages = append(messages, pd)
	}
	return pprofs, messages
}

// addInputs are messages of one service each, as they arrive.
func addInputs(b *testing.B) map[string][][]byte {
	inputs := map[string][][]byte{}
	for _, name := range []string{"go-cpu-labels", "go-heap", "go-build-merged-cpu-large"} {
		payload := profiletest.FileBytes(b, "../../testdata/pprof/"+name+".pb.gz")
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(b, err)
		wire := profiletest.Marshal(b, pd)
		inputs[name] = [][]byte{wire}
	}
	_, messages := hour(b, 4, 5000)
	for _, pd := range messages {
		wire := profiletest.Marshal(b, pd)
		inputs["5000-stacks"] = append(inputs["5000-stacks"], wire)
	}
	return inputs
}

// BenchmarkAdd compares the cost of storing a message with what pdata spends to read it. cpu-ns/op is processor
// time, which is more meaningful than wall-clock time on a busy machine.
func BenchmarkAdd(b *testing.B) {
	for name, wires := range addInputs(b) {
		unmarshal := func(i int) pprofile.Profiles {
			return profiletest.Unmarshal(b, wires[i%len(wires)])
		}
		b.Run(name+"/impl=store", func(b *testing.B) {
			var messages []pprofile.Profiles
			for i := range wires {
				messages = append(messages, unmarshal(i))
			}
			s := New(testConfig())
			b.SetBytes(int64(len(wires[0])))
			b.ReportAllocs()
			before := profiletest.ProcessCPU()
			for i := 0; b.Loop(); i++ {
				s.Add(messages[i%len(messages)], noon)
			}
			b.ReportMetric(float64(profiletest.ProcessCPU()-before)/float64(b.N), "cpu-ns/op")
		})
		b.Run(name+"/impl=unmarshal", func(b *testing.B) {
			b.SetBytes(int64(len(wires[0])))
			b.ReportAllocs()
			before := profiletest.ProcessCPU()
			for i := 0; b.Loop(); i++ {
				unmarshal(i)
			}
			b.ReportMetric(float64(profiletest.ProcessCPU()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func filled(b testing.TB, messages []pprofile.Profiles) (*Store, int) {
	cfg := testConfig()
	cfg.MaxBytes = 256 << 20
	s := New(cfg)
	for i, m := range messages {
		added := s.Add(m, noon.Add(time.Duration(i-len(messages)+1)*10*time.Second))
		require.Zero(b, added.Refused)
	}
	require.Zero(b, s.Stats().Evicted)
	return s, len(messages)
}

func BenchmarkHour(b *testing.B) {
	pprofs, messages := hour(b, 360, 5000)
	s, _ := filled(b, messages)
	sel := model.Selection{Service: "shop", Profile: "process_cpu"}
	b.Run("merge/impl=store", func(b *testing.B) {
		before := profiletest.ProcessCPU()
		for b.Loop() {
			merged, err := s.Merge(context.Background(), sel)
			require.NoError(b, err)
			encoded, _, err := pprofencode.Encode(merged.Profiles)
			require.NoError(b, err)
			require.Len(b, encoded, 1)
		}
		b.ReportMetric(float64(profiletest.ProcessCPU()-before)/float64(b.N), "cpu-ns/op")
	})
	b.Run("merge/impl=pprof", func(b *testing.B) {
		before := profiletest.ProcessCPU()
		for b.Loop() {
			merged, err := profile.Merge(pprofs)
			require.NoError(b, err)
			var out bytes.Buffer
			require.NoError(b, merged.WriteUncompressed(&out))
		}
		b.ReportMetric(float64(profiletest.ProcessCPU()-before)/float64(b.N), "cpu-ns/op")
	})
}
