// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// ofServices returns a message of a profile of each service, which has just ended.
func ofServices(now time.Time, services ...string) pprofile.Profiles {
	b := profiletest.New()
	for _, service := range services {
		b.Resource("service.name", service).Profile("cpu", "nanoseconds").Time(uint64(now.Add(-10*time.Second).UnixNano()),
			10e9).
			Sample(profiletest.Value(1, "leaf"))
	}
	return b.Build()
}

// inMemoryAndOnDisk runs a test with a store in memory, and with one on disk.
func inMemoryAndOnDisk(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	for _, onDisk := range []bool{false, true} {
		t.Run(fmt.Sprint("on disk: ", onDisk), func(t *testing.T) {
			cfg := cfg
			if onDisk {
				cfg.Disk = diskConfig(t, t.TempDir()).Disk
			}
			s := open(t, cfg)
			test(t, s)
			require.NoError(t, s.Close())
		})
	}
}

// Series that are on disk alone do not take the places of new ones, not after a restart, either.
func TestSeriesAfterARestart(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts: ", restarts), func(t *testing.T) {
			cfg := diskConfig(t, t.TempDir())
			cfg.MaxSeries = 4
			s := open(t, cfg)
			now := noon
			for i := range cfg.MaxSeries {
				require.NoError(t, s.Add(ofServices(now, fmt.Sprint("old", i)), now).Err)
			}
			now = now.Add(time.Hour)
			s.Maintain(now) // the hour is over: its block is on disk
			require.Equal(t, 1, s.Stats().DiskBlocks)
			if restarts {
				require.NoError(t, s.Close())
				s = open(t, cfg)
			}
			for range 3 {
				now = now.Add(12 * time.Hour)
				for range 10 {
					now = now.Add(10 * time.Second)
					for i := range cfg.MaxSeries {
						require.NoError(t, s.Add(ofServices(now, fmt.Sprint("new", i)), now).Err)
					}
					s.Maintain(now)
				}
			}
			for range 6 {
				now = now.Add(time.Hour)
				s.Maintain(now)
			}
			require.Zero(t, s.Stats().Series, "those without a profile for hours are forgotten")
			require.NoError(t, s.Close())
		})
	}
}

// A new series replaces one that is unused, whether that is in memory or waits to be written. No message is refused
// meanwhile.
func TestEachMessageFindsTheRoomOfUnusedSeries(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg := testConfig()
	cfg.MaxSeries = 10
	inMemoryAndOnDisk(t, cfg, func(t *testing.T, s *Store) {
		now := noon
		for i := range 400 {
			now = now.Add(30 * time.Second)
			require.NoError(t, s.Add(ofServices(now, "old", fmt.Sprint("pod", i/2)), now).Err, "%d", i)
			require.LessOrEqual(t, s.Stats().Series, cfg.MaxSeries)
		}
	})
}

// A series of the message itself is not replaced by another one of it.
func TestAMessageReplacesOtherSeries(t *testing.T) {
	cfg := testConfig()
	cfg.MaxSeries = 2
	s := New(cfg)
	require.NoError(t, s.Add(ofServices(noon, "own"), noon).Err)
	require.NoError(t, s.Add(ofServices(noon, "other"), noon.Add(time.Second)).Err)
	now := noon.Add(5 * time.Minute)
	require.NoError(t, s.Add(ofServices(now, "own", "new"), now).Err)
	assert.EqualValues(t, 2, sum(t, s, model.Selection{Service: "own", Profile: "process_cpu"}))
}

// Series of profiles that are not on disk yet are known after a restart for as long as they are in memory.
func TestSeriesOfTheLogAreKnown(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	s := open(t, cfg)
	require.NoError(t, s.Add(ofServices(noon, "a", "b"), noon).Err)
	require.NoError(t, s.Close())
	s = open(t, cfg)
	s.Expire(noon.Add(2 * head.ForgetAfter))
	assert.Equal(t, 2, s.Stats().Series)
	require.NoError(t, s.Close())
}

// Series without a bound of their number make room as profiles do: nothing is refused, and the bytes hold.
func TestSeriesMakeRoom(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg := testConfig()
	cfg.MaxBytes, cfg.MaxSeries = 2<<20, 0
	services := 4000
	if profiletest.IsRace { // everything takes minutes
		cfg.MaxBytes, services = 1<<20, 1600
	}
	inMemoryAndOnDisk(t, cfg, func(t *testing.T, s *Store) {
		now := noon
		for i := range services {
			now = now.Add(10 * time.Millisecond)
			require.NoError(t, s.Add(ofServices(now, fmt.Sprint("service", i)), now).Err)
			require.LessOrEqual(t, s.Stats().Bytes, 2*cfg.MaxBytes)
		}
		s.Maintain(now)
		stats := s.Stats()
		assert.LessOrEqual(t, stats.Bytes, cfg.MaxBytes)
		assert.Equal(t, services, stats.Profiles+stats.Evicted[model.EvictedBytes])
		assert.Len(t, s.services(), stats.Profiles)
		assert.Greater(t, stats.Profiles, services/8)
		idle := 0
		for _, use := range s.known.Series {
			if use.Blocks == 0 {
				idle++
			}
		}
		assert.LessOrEqual(t, idle*useBytes, cfg.MaxBytes/rememberedPart, "of no block")
		bytes := stats.Series * useBytes
		for _, e := range s.blocks {
			bytes += e.Bytes
		}
		if s.disk != nil {
			for _, b := range s.disk.blocks {
				bytes += b.IndexBytes()
			}
		}
		assert.Equal(t, bytes, stats.Bytes)
	})
}

// While the disk fails and the memory is full, messages are refused: what was acknowledged stays, and is written later.
func TestAFullMemoryBeforeADiskThatFails(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 1 << 20
	s := open(t, cfg)
	s.disk.writing.Lock() // no block can be written
	s.adding.Lock()
	s.disk.writeFailed = errors.New("the disk is full")
	s.adding.Unlock()
	kept, refused := int64(0), 0
	for i := range 2000 {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(0)), 1e9)
		for k := range 50 {
			b.Sample(profiletest.Value(1, fmt.Sprint("function", i, "x", k)))
		}
		added := s.Add(b.Build(), noon)
		kept += int64(added.Samples)
		refused += added.Refused[model.RefusedFull]
		require.Equal(t, added.Profiles == 0, added.Err != nil)
		require.LessOrEqual(t, s.Stats().Bytes, cfg.MaxBytes*5/4)
	}
	stats := s.Stats()
	assert.NotZero(t, stats.Profiles)
	assert.Equal(t, 2000, stats.Profiles+refused)
	assert.Equal(t, refused, stats.Refused[model.RefusedFull])
	assert.Zero(t, stats.Evicted)
	s.disk.writing.Unlock()
	s.Maintain(noon.Add(time.Hour))
	require.NoError(t, s.Add(ofServices(noon, "shop"), noon).Err)
	assert.EqualValues(t, kept+1, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// Series of blocks on disk take no memory: pods of many hours stay, and are found, also after a restart. Lists that are
// read are kept within their part of the memory.
func TestOldSeriesTakeNoMemory(t *testing.T) {
	cfg := diskConfig(t, memoryDir(t))
	cfg.MaxBytes, cfg.MaxSeries = 16<<20, 0
	s := open(t, cfg)
	const hours, pods = 10, 300
	for hour := range hours {
		now := noon.Add(time.Duration(hour) * time.Hour)
		for i := range pods {
			pd := ofServices(now, "shop")
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("k8s.pod.name", fmt.Sprint("pod", hour, "-", i))
			require.NoError(t, s.Add(pd, now).Err)
		}
		s.Maintain(now)
	}
	s.Maintain(noon.Add(hours * time.Hour))
	check := func() {
		t.Helper()
		stats := s.Stats()
		require.Equal(t, hours*pods, stats.Profiles)
		require.Zero(t, stats.Evicted)
		list, err := s.Series(t.Context(), model.Selection{Service: "shop"})
		require.NoError(t, err)
		require.Len(t, list, hours*pods)
		require.LessOrEqual(t, s.disk.files.Lists.Memory(), cfg.MaxBytes/listedPart)
		require.Positive(t, s.disk.files.Lists.Memory())
		require.EqualValues(t, hours*pods, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	}
	check()
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(s.disk.path(logFolder))) // it still has the last head
	s = New(cfg)
	perSeries := profiletest.Bound{AllocatedBytes: hours * pods * 100}
	profiletest.RequireCost(t, perSeries, func() { require.NoError(t, s.Open()) })
	check()
	require.NoError(t, s.Close())
}

// What memory has of the services on disk is bounded: the oldest blocks are deleted, which is counted.
func TestTheIndexOfOldServicesIsBounded(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes, cfg.MaxSeries = 1<<20, 0
	s := open(t, cfg)
	sent := 0
	for hour := range 12 {
		now := noon.Add(time.Duration(hour) * time.Hour)
		for i := range 100 {
			require.NoError(t, s.Add(ofServices(now, fmt.Sprint("pod", hour, "-", i)), now).Err)
			sent++
		}
		s.Maintain(now)
		require.LessOrEqual(t, s.Stats().Bytes, cfg.MaxBytes)
	}
	now := noon.Add(13 * time.Hour)
	s.Maintain(now)
	stats := s.Stats()
	assert.Equal(t, sent, stats.Profiles+stats.Evicted[model.EvictedBytes])
	assert.LessOrEqual(t, stats.Profiles*256, cfg.MaxBytes/indexPart)
	assert.Positive(t, stats.Profiles)
	names := profiletest.Glob(t, filepath.Join(cfg.Disk.Directory, "blocks", "*"))
	assert.Len(t, names, stats.DiskBlocks)
	require.NoError(t, s.Close())
}

// ofTotals returns a profile without a duration, of stacks that all services have.
func ofTotals(typ, service string, stacks int, at time.Time, value int64) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", service).Profile(typ, "bytes").Time(uint64(at.UnixNano()), 0)
	for i := range stacks {
		b.Sample(profiletest.Value(value, fmt.Sprint("function", i)))
	}
	return b.Build()
}

// The last totals of each series count in the bytes: the oldest are forgotten, and those of series that go on still
// make deltas.
func TestTotalsAreBounded(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes, cfg.MaxSeries = 4<<20, 0
	inMemoryAndOnDisk(t, cfg, func(t *testing.T, s *Store) {
		const services, stacks = 200, 500
		kept := 0
		totalsOf := func() (bytes int) {
			kept = 0
			for _, use := range s.known.Series {
				if bytes += use.Totals.Bytes(); use.Totals != nil {
					kept++
				}
			}
			return bytes
		}
		for i := range services {
			now := noon.Add(time.Duration(i) * time.Second)
			require.NoError(t, s.Add(ofTotals("alloc_space", fmt.Sprint("service", i), stacks, now, 1), now).Err)
			require.Equal(t, totalsOf(), s.known.TotalsBytes)
			require.LessOrEqual(t, s.known.TotalsBytes, cfg.MaxBytes/totalsPart)
			require.GreaterOrEqual(t, s.Stats().Bytes, s.known.TotalsBytes+useBytes*len(s.known.Series))
		}
		assert.Greater(t, kept, 10)
		assert.Equal(t, services, kept+s.Stats().Evicted[model.EvictedTotals])
		now := noon.Add(services * time.Second)
		for _, service := range []string{fmt.Sprint("service", services-1), "service0"} {
			require.NoError(t, s.Add(ofTotals("alloc_space", service, stacks, now, 3), now).Err)
		}
		later := model.Selection{Profile: "memory", From: now.Add(-time.Second).UnixNano()}
		later.Service = fmt.Sprint("service", services-1)
		assert.EqualValues(t, 2*stacks, sum(t, s, later), "what was added since the one before")
		s.Expire(now.Add(20 * head.ForgetAfter))
		require.Equal(t, totalsOf(), s.known.TotalsBytes)
	})
}

// Totals whose stacks would fill a new block are not all moved to it: it has room for what arrives.
func TestANewBlockHasRoomBesideTotals(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes = 4 << 20
	s := New(cfg)
	for i := range 40 {
		b := profiletest.New().Resource("service.name", fmt.Sprint("service", i)).Profile("alloc_space", "bytes").
			Time(uint64(at(i)), 0)
		for k := range 200 {
			b.Sample(profiletest.Value(1, fmt.Sprint("function", i, "x", k)))
		}
		now := noon.Add(time.Duration(i) * time.Second)
		if i > 0 {
			s.blocks[len(s.blocks)-1].Freeze()
		}
		require.NoError(t, s.Add(b.Build(), now).Err)
	}
	require.NotZero(t, s.known.TotalsBytes)
	require.NotZero(t, s.Stats().Evicted[model.EvictedTotals])
	assert.Less(t, s.blocks[len(s.blocks)-1].Bytes, cfg.MaxBytes/blockCount)
}

// Timestamps count as values do: a message of very many leaves no memory behind that the next one does not need.
func TestScratchOfALargeMessage(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	const observations = 1 << 20
	timestamps, values := make([]uint64, observations), make([]int64, observations)
	for i := range timestamps {
		timestamps[i], values[i] = uint64(noon.UnixNano())+uint64(i), 1
	}
	for name, sample := range map[string]profiletest.Sample{
		"timestamps": profiletest.Observed(timestamps, "leaf"),
		"both":       {Timestamps: timestamps, Values: values, Stack: []profiletest.Location{{Address: 64}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.MaxBytes = 256 << 20
			s := New(cfg)
			pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").Time(uint64(noon.UnixNano()),
				10e9).
				Sample(sample).Build()
			assert.GreaterOrEqual(t, head.MessageBytes(pd), 8*observations)
			before := profiletest.HeapBytes()
			require.Equal(t, observations, s.Add(pd, noon).Samples)
			assert.Less(t, profiletest.HeapBytes()-before, s.Stats().Bytes+8*observations)
			runtime.KeepAlive(pd)
		})
	}
}
