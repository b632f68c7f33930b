// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fleet makes messages of services that have the stacks of a program each, a few of them in each profile, mostly the
// same ones.
type fleet struct {
	rnd      *rand.Rand
	services []pprofile.Profiles
	stacks   int
}

var fleetTypes = []struct {
	name, unit string
	unitValue  int64
	duration   uint64
}{
	{"samples", "count", 1, 10e9}, {"cpu", "nanoseconds", 10_000_000, 10e9}, {"alloc_space", "bytes", 524_288, 10e9},
	{"inuse_space", "bytes", 524_288, 0}, {"goroutine", "count", 1, 0},
}

func newFleet(services, stacks int) *fleet {
	f := &fleet{rnd: rand.New(rand.NewPCG(1, 2)), stacks: stacks}
	for i := range services {
		d := dictionary.New()
		{
			var path []int32
			for d.Stacks.Len() <= stacks {
				if len(path) > 30 || len(path) > 5 && f.rnd.IntN(4) == 0 {
					path = path[len(path)-f.rnd.IntN(len(path)):]
				}
				n := f.rnd.IntN(1500)
				function := d.Functions.Intern(dictionary.Function{
					Name: d.Strings.Intern(fmt.Sprintf("example.com/service%d/internal/package%d.(*Type%d).Method%d", i, n%97,
						n%31, n)),
					Filename:  d.Strings.Intern(fmt.Sprintf("/src/service%d/internal/package%d/file%d.go", i, n%97, n%11)),
					StartLine: int64(n),
				})
				location := d.Locations.Intern(dictionary.Location{Address: uint64(n * 16)},
					[]dictionary.Line{{Function: function, Line: int64(n + 3)}})
				path = append([]int32{int32(location)}, path...)
				d.Stacks.Intern(path)
			}
			pd := pprofile.NewProfiles()
			rp := pd.ResourceProfiles().AppendEmpty()
			rp.Resource().Attributes().PutStr("service.name", fmt.Sprint("service", i))
			rp.Resource().Attributes().PutStr("service.version", "1.2.3")
			rp.Resource().Attributes().PutStr("k8s.pod.name", fmt.Sprint("service", i, "-abcdef"))
			sp := rp.ScopeProfiles().AppendEmpty()
			for range fleetTypes {
				sp.Profiles().AppendEmpty()
			}
			for k, t := range fleetTypes {
				sp.Profiles().At(k).SampleType().SetTypeStrindex(int32(d.Strings.Intern(t.name)))
				sp.Profiles().At(k).SampleType().SetUnitStrindex(int32(d.Strings.Intern(t.unit)))
			}
			d.CopyTo(pd.Dictionary())
			f.services = append(f.services, pd)
		}
	}
	return f
}

// message returns ten seconds of a service, which are valid until the next ones.
func (f *fleet) message(service int, at time.Time, samples int) pprofile.Profiles {
	pd := f.services[service]
	for k, t := range fleetTypes {
		p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(k)
		p.SetTime(pcommon.NewTimestampFromTime(at))
		p.SetDurationNano(t.duration)
		p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		for range samples {
			s := p.Samples().AppendEmpty()
			hot := f.rnd.Float64()
			s.SetStackIndex(int32(1 + hot*hot*hot*float64(f.stacks-1)))
			s.Values().Append(t.unitValue * (1 + int64(f.rnd.ExpFloat64()*3)))
		}
	}
	return pd
}

// BenchmarkHistory measures a store on disk: HISTORY_SERVICES (4), each with five sample types every ten seconds, of
// HISTORY_SAMPLES (50), for HISTORY_DAYS (1). HISTORY_HOURS ends the first day before its blocks become one.
func BenchmarkHistory(b *testing.B) {
	number := func(key string, def int) int {
		n, err := strconv.Atoi(os.Getenv(key))
		if err != nil {
			return def
		}
		return n
	}
	services, samples, days := number("HISTORY_SERVICES", 4), number("HISTORY_SAMPLES", 50), number("HISTORY_DAYS", 1)
	dir := b.TempDir()
	cfg := diskConfig(b, dir)
	cfg.MaxBytes, cfg.Disk.Retention = 256<<20, 30*24*time.Hour
	s := open(b, cfg)
	f := newFleet(services, 2000)
	begun := noon.Truncate(24 * time.Hour)
	now := begun
	count, storing := 0, time.Duration(0)
	until := begun.Add(time.Duration(days)*24*time.Hour + 2*time.Hour)
	if hours := number("HISTORY_HOURS", 0); hours > 0 {
		days, until = 1, begun.Add(time.Duration(hours)*time.Hour)
	}
	for now.Before(until) {
		for i := range services {
			pd := f.message(i, now, samples)
			before := profiletest.ProcessCPU()
			added := s.Add(pd, now.Add(10*time.Second))
			storing += profiletest.ProcessCPU() - before
			require.Zero(b, added.Refused)
			count += added.Samples
		}
		now = now.Add(10 * time.Second)
		if now.Minute() == 0 && now.Second() == 0 {
			before := profiletest.ProcessCPU()
			s.Maintain(now)
			storing += profiletest.ProcessCPU() - before
		}
	}
	s.Maintain(now)
	require.NoError(b, s.Close())
	s = nil
	runtime.GC()
	report := func(b *testing.B, run func(s *Store)) {
		s := open(b, cfg)
		defer func() { require.NoError(b, s.Close()) }()
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		began := profiletest.ProcessCPU()
		for b.Loop() {
			run(s)
		}
		b.ReportMetric(float64(profiletest.ProcessCPU()-began)/float64(b.N)/1e6, "cpu-ms/op")
		b.ReportMetric(float64(len(s.Blocks())), "blocks")
		b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(s.Stats().DiskBytes)/float64(s.Stats().Samples), "disk-B/sample")
		b.ReportMetric(float64(storing)/float64(count), "store-cpu-ns/sample")
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s := open(b, cfg)
			require.NoError(b, s.Close())
		}
	})
	end := begun.Add(time.Duration(days) * 24 * time.Hour).UnixNano()
	for _, span := range []struct {
		name  string
		hours int
	}{{"hour", 1}, {"day", 24}, {"all", 24 * days}} {
		sel := model.Selection{Service: "service0", Profile: "process_cpu", Type: "cpu",
			From: end - int64(span.hours)*int64(time.Hour), Until: end}
		b.Run("flamegraph/"+span.name, func(b *testing.B) {
			report(b, func(s *Store) {
				g, err := s.FlameGraph(context.Background(), sel, 20_000)
				require.NoError(b, err)
				require.NotZero(b, g.Total[0])
			})
		})
		b.Run("timeline/"+span.name, func(b *testing.B) {
			report(b, func(s *Store) {
				_, err := s.Timeline(context.Background(), sel, 360, now)
				require.NoError(b, err)
			})
		})
	}
}
