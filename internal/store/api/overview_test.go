// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

type costJSON struct{ Now, Before float64 }

type overviewJSON struct {
	Services int
	CPU      costJSON
	List     []struct {
		Service     string
		CPU, Memory *costJSON
		CPULine     *struct{ Values []*float64 } `json:"cpu_line"`
	}
}

// minutes returns an hour of a service until noon: each minute a profile of CPU, and one of memory. cores and heap
// return what an instance uses in a minute.
func minutes(service string, instances int, cores func(minute int) float64,
	heap func(minute int) int64) *profiletest.Builder {
	b := profiletest.New()
	for instance := range instances {
		b.Resource("service.name", service, "service.instance.id", fmt.Sprint(instance))
		for m := range 60 {
			at := uint64(noon.Add(time.Duration(m-60) * time.Minute).UnixNano())
			if cores != nil {
				b.Profile("cpu", "nanoseconds").Time(at, 60e9).Sample(profiletest.Value(int64(cores(m)*60e9), "work", "main"))
			}
			if heap != nil {
				b.Profile("inuse_space", "bytes").Time(at, 0).Sample(profiletest.Value(heap(m), "make", "main"))
			}
		}
	}
	return b
}

func overviewOf(t *testing.T, services ...*profiletest.Builder) func(query string) overviewJSON {
	t.Helper()
	s := store.New(store.Config{Window: 2 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20})
	for _, b := range services {
		require.Zero(t, s.Add(b.Build(), noon).Refused)
	}
	get := jsonOf(t, s)
	return func(query string) (o overviewJSON) {
		get("overview"+query, &o)
		return o
	}
}

// jsonOf returns a function that reads an answer of a store's API.
func jsonOf(t *testing.T, s *store.Store) func(path string, into any) {
	get := serveStore(t, s)
	return func(path string, into any) {
		status, body := get("/api/" + path)
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), into))
	}
}

func constant[T any](v T) func(int) T { return func(int) T { return v } }

// Datadog's libraries write wall time into the same pprof. Of samples of processor time and another time, the samples
// count.
func TestOverviewOfOtherTimes(t *testing.T) {
	for _, typ := range []string{"cpu-time/nanoseconds", "cpu-samples/count"} {
		typ, unit, _ := strings.Cut(typ, "/")
		value := map[string]int64{"nanoseconds": 30e9, "count": 3000}[unit]
		b := profiletest.New().Resource("service.name", "shop").Scope("s", "1", kind.NameAttribute, "process_cpu")
		for _, in := range []struct {
			typ, unit string
			value     int64
		}{{"wall-time", "nanoseconds", 600e9}, {typ, unit, value}} {
			b.Profile(in.typ, in.unit).Time(uint64(noon.UnixNano()-60e9), 60e9).Period(1e7, "cpu", "nanoseconds").
				Sample(profiletest.Value(in.value, "work"))
		}
		o := overviewOf(t, b)("?seconds=60")
		require.NotNil(t, o.List[0].CPU, typ)
		assert.InDelta(t, 0.5, o.List[0].CPU.Now, 1e-3, typ)
	}
}

// The overview has cores and bytes, those of the time before, and the sums of all services.
func TestOverview(t *testing.T) {
	later := func(before, after float64) func(int) float64 {
		return func(minute int) float64 {
			if minute < 45 {
				return before
			}
			return after
		}
	}
	get := overviewOf(t,
		minutes("block-first", 1, nil, nil).Resource("service.name", "block-first").Profile("delay", "nanoseconds").
			Time(uint64(noon.UnixNano()-1e9), 1e9).Sample(profiletest.Value(5, "lock")),
		minutes("shop", 2, later(0.25, 0.5), constant[int64](100<<20)),
		minutes("cart", 1, constant(0.1), constant[int64](300<<20)))
	o := get("?seconds=900")
	require.Equal(t, 3, o.Services)
	assert.InDelta(t, 1.1, o.CPU.Now, 1e-3)
	assert.InDelta(t, 0.6, o.CPU.Before, 1e-3)
	shop, cart, last := o.List[0], o.List[1], o.List[2]
	assert.Equal(t, []string{"shop", "cart", "block-first"}, []string{shop.Service, cart.Service, last.Service})
	assert.InDelta(t, 1.0, shop.CPU.Now, 1e-3)
	assert.InDelta(t, 0.5, shop.CPU.Before, 1e-3)
	assert.InDelta(t, 200<<20, shop.Memory.Now, 1<<20, "of both instances")
	assert.InDelta(t, 300<<20, cart.Memory.Now, 1<<20)
	assert.Nil(t, last.CPU, "what is not known is not 0")
	assert.Nil(t, last.CPULine)
	sum := 0.0
	for _, v := range shop.CPULine.Values {
		if v != nil {
			sum += *v
		}
	}
	assert.InDelta(t, 15*60e9, sum, 1e9)

	assert.Equal(t, "cart", get("?seconds=900&sort=memory").List[0].Service)
	assert.Equal(t, "shop", get("?seconds=900&sort=change").List[0].Service)
	assert.Equal(t, "block-first", get("?seconds=900&sort=name").List[0].Service)
	found := get("?seconds=900&search=CAR")
	require.Len(t, found.List, 1)
	assert.Equal(t, 1, found.Services)
	assert.InDelta(t, 1.1, found.CPU.Now, 1e-3, "a search does not change of what a service is a share")
	few := get("?seconds=900&limit=1")
	assert.Len(t, few.List, 1)
	assert.Equal(t, 3, few.Services)
}

// A service that has just begun, or sends seldom, does not seem to use less than it does.
func TestOverviewOfPartsOfTheTime(t *testing.T) {
	begun := profiletest.New().Resource("service.name", "begun")
	for i := range 3 {
		begun.Profile("cpu", "nanoseconds").Time(uint64(noon.Add(-time.Duration(3-i)*10*time.Second).UnixNano()), 10e9).
			Sample(profiletest.Value(5e9, "work"))
	}
	single := profiletest.New().Resource("service.name", "single").Profile("cpu", "nanoseconds").
		Time(uint64(noon.Add(-10*time.Minute).UnixNano()), 10e9).Sample(profiletest.Value(20e9, "work"))
	o := overviewOf(t, begun, single)("?seconds=900")
	assert.InDelta(t, 2, o.List[0].CPU.Now, 1e-3)
	assert.InDelta(t, 0.5, o.List[1].CPU.Now, 1e-3)
	assert.Zero(t, o.List[1].CPU.Before)
}

// A profile that reaches beyond the end of a past time counts as long as it lasts.
func TestOverviewOfThePast(t *testing.T) {
	get := overviewOf(t, minutes("shop", 2, constant(0.25), nil))
	for _, seconds := range []int{30, 90, 119} {
		until := noon.Add(time.Duration(seconds)*time.Second - 30*time.Minute).Unix()
		o := get(fmt.Sprintf("?from=%d&until=%d", noon.Add(-30*time.Minute).Unix(), until))
		assert.InDelta(t, 0.5, o.CPU.Now, 1e-3, "%d s", seconds)
	}
}

// Counts of samples are processor time by their period, in any unit of time.
func TestOverviewOfCounts(t *testing.T) {
	for _, unit := range []string{"nanoseconds", "ns", "microseconds", "ms"} {
		period := 10_000_000 / kind.NanosPer(unit)
		counts, times := profiletest.New().Resource("service.name", "sampled"),
			profiletest.New().Resource("service.name", "timed")
		for m := range 15 {
			at := uint64(noon.Add(time.Duration(m-15) * time.Minute).UnixNano())
			counts.Profile("samples", "count").Period(period, "cpu", unit).Time(at, 60e9).
				Sample(profiletest.Value(3000, "work"))
			times.Profile("itimer", unit).Time(at, 60e9).Sample(profiletest.Value(3000*period, "work"))
		}
		o := overviewOf(t, counts, times)("?seconds=900")
		assert.InDelta(t, 0.5, o.List[0].CPU.Now, 1e-3, unit)
		assert.InDelta(t, 0.5, o.List[1].CPU.Now, 1e-3, unit)
	}
}

// The parts of a state that was divided are added up, once.
func TestOverviewOfParts(t *testing.T) {
	b := profiletest.New().Resource("service.name", "divided")
	for m := range 15 {
		for _, function := range []string{"a", "b", "a"} {
			b.Profile("inuse_space", "bytes").Time(uint64(noon.Add(time.Duration(m-15)*time.Minute).UnixNano()), 0).
				Sample(profiletest.Value(3000, function))
		}
	}
	o := overviewOf(t, b)("?seconds=900")
	assert.InDelta(t, 6000, o.List[0].Memory.Now, 1)
}

// A state holds for an interval if none follows within two.
func TestOverviewOfAGap(t *testing.T) {
	b := profiletest.New().Resource("service.name", "gone")
	for _, minute := range []int{15, 14, 13, 12, 11, 1} {
		b.Profile("inuse_space", "bytes").Time(uint64(noon.Add(-time.Duration(minute)*time.Minute).UnixNano()), 0).
			Sample(profiletest.Value(1500, "a"))
	}
	o := overviewOf(t, b)("?seconds=900")
	assert.InDelta(t, 1500*6/15, o.List[0].Memory.Now, 1, "for 6 of 15 minutes")
}

// Thousands of services are not all sent, and cost little.
func TestOverviewOfThousands(t *testing.T) {
	b := profiletest.New()
	for i := range 5000 {
		b.Resource("service.name", fmt.Sprint("service-", i)).Profile("cpu", "nanoseconds").
			Time(uint64(noon.Add(-time.Minute).UnixNano()), 60e9).Sample(profiletest.Value(int64(i+1)*1e6, "work"))
	}
	messageBytes := (&pprofile.ProtoMarshaler{}).ProfilesSize(b.Build())
	get := overviewOf(t, b)
	var o overviewJSON
	profiletest.RequireCost(t, profiletest.BoundOf(messageBytes, 16<<20, 64), func() { o = get("") })
	assert.Equal(t, 5000, o.Services)
	assert.Len(t, o.List, 30)
	assert.Equal(t, "service-4999", o.List[0].Service)
}

// The types of a service are listed with their rates or states.
func TestTypes(t *testing.T) {
	s := store.New(store.Config{Window: 2 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 256 << 20})
	require.Zero(t, s.Add(minutes("shop", 2, constant(0.25), constant[int64](100<<20)).Build(), noon).Refused)
	get := jsonOf(t, s)
	var types struct {
		Types []struct {
			Profile, Kind string
			Cost          *costJSON
		}
	}
	get("types?service=shop&seconds=900", &types)
	require.Len(t, types.Types, 2)
	assert.Equal(t, "memory", types.Types[0].Profile)
	assert.InDelta(t, 200<<20, types.Types[0].Cost.Now, 1<<20)
	assert.Equal(t, "process_cpu", types.Types[1].Profile)
	assert.InDelta(t, 0.5e9, types.Types[1].Cost.Now, 1e6)
	assert.InDelta(t, 0.5e9, types.Types[1].Cost.Before, 1e6)

	// A constant load is the same in any part of the time.
	for _, seconds := range []int{60, 90, 300, 1000} {
		for _, until := range []int{0, 7, 33, 95} {
			get(fmt.Sprintf("types?service=shop&seconds=%d&until=now-%ds", seconds, until), &types)
			assert.InDelta(t, 200<<20, types.Types[0].Cost.Now, 1<<20, "%d s until %d s ago", seconds, until)
			assert.InDelta(t, 0.5e9, types.Types[1].Cost.Now, 1e6, "%d s until %d s ago", seconds, until)
			assert.InDelta(t, 0.5e9, types.Types[1].Cost.Before, 1e6, "%d s until %d s ago", seconds, until)
		}
	}

	var page struct {
		Services int
		Service  string
		Profiles []struct{ Service, Profile string }
	}
	get("page", &page)
	assert.Equal(t, "shop", page.Service, "the only service is shown")
	assert.Len(t, page.Profiles, 2)
	require.Zero(t, s.Add(minutes("cart", 1, constant(0.1), nil).Build(), noon).Refused)
	get("page", &page)
	assert.Empty(t, page.Service)
	assert.Empty(t, page.Profiles)
	get("page?service=cart", &page)
	assert.Len(t, page.Profiles, 1)
	var services struct {
		Services []struct{ Service string }
		More     int
	}
	get("services?search=A&limit=1", &services)
	assert.Equal(t, "cart", services.Services[0].Service)
	assert.Zero(t, services.More)
	get("services?limit=1", &services)
	assert.Equal(t, 1, services.More)
}
