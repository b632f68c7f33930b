// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var byExecutable = []string{"process.executable.name", "process.executable.path", "container.id"}

// host returns a message like the eBPF profiler's: a resource for the host and one for a container, CPU samples with
// timestamps, and off-CPU samples with values too.
func host(seed uint64, processes, samples int) pprofile.Profiles {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := profiletest.New()
	for _, container := range []string{"", strings.Repeat("c1", 32)} {
		b.Resource("container.id", container).Scope("go.opentelemetry.io/ebpf-profiler", "v1").
			SchemaURLs("https://example.com/1.37", "https://example.com/1.37")
		for _, kind := range []string{"samples", "off_cpu"} {
			b.Profile(kind, "count").Time(1_000, 5_000_000).Period(50_000_000, "cpu", "nanoseconds")
			seen := map[string]bool{}
			for i := range samples {
				pid := rnd.IntN(processes) + 1
				thread := pid*10 + rnd.IntN(3)
				functions := []string{fmt.Sprint("leaf", rnd.IntN(20)), fmt.Sprint("middle", rnd.IntN(5)), "main"}
				s := profiletest.Observed([]uint64{1_000 + uint64(i)}, functions...)
				for k := range s.Stack {
					s.Stack[k].Attributes = []profiletest.Attribute{profiletest.Attr("profile.frame.type", "native")}
				}
				if kind == "off_cpu" {
					s.Values = []int64{int64(i)}
				}
				attributes := []profiletest.Attribute{profiletest.Attr("thread.name", fmt.Sprint("thread", thread))}
				if pid%5 != 0 { // others are kernel threads
					name := fmt.Sprint("program", pid%7)
					attributes = append(attributes, profiletest.Attr("process.executable.name", name),
						profiletest.Attr("process.executable.path", "/usr/bin/"+name))
				}
				if pid%11 == 1 {
					attributes = append(attributes, profiletest.Attr("service.name", "apm"))
					s = s.Linked([16]byte{1, byte(i)}, [8]byte{2})
				}
				attributes = append(attributes, profiletest.Attr("process.pid", int64(pid)),
					profiletest.Attr("thread.id", int64(thread)), profiletest.Attr("cpu.logical_number", int64(rnd.IntN(2))))
				if key := fmt.Sprint(functions, attributes, s.TraceID); !seen[key] {
					seen[key] = true
					b.Sample(s.With(attributes...))
				}
			}
		}
	}
	return b.Build()
}

// byProgram names processes by their executable, or as kernel threads if they have none.
func byProgram(resources []Resource) {
	for _, resource := range resources {
		for i := range resource.Processes {
			p := &resource.Processes[i]
			switch {
			case p.ServiceName != "":
				p.Identity = Identity{ServiceName: p.ServiceName, FromSample: true}
			case p.ExecutableName != "":
				p.Identity.ServiceName = p.ExecutableName
			case p.PID != NoPID:
				p.Identity.ServiceName = "kernel"
			}
		}
	}
}

// facts lists what each sample states, including attributes of its resource.
func facts(pd pprofile.Profiles, ofResource ...string) (all []string) {
	d := pd.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				header := fmt.Sprint(rp.SchemaUrl(), sp.Scope().Name(), sp.Scope().Version(), sp.SchemaUrl(), p.Time(),
					p.DurationNano(), p.Period(),
					text(p.SampleType().TypeStrindex()), text(p.SampleType().UnitStrindex()), text(p.PeriodType().TypeStrindex()))
				for _, s := range p.Samples().All() {
					attributes := map[string]string{}
					for key, value := range rp.Resource().Attributes().All() {
						if slices.Contains(ofResource, key) && value.AsString() != "" {
							attributes[key] = value.AsString()
						}
					}
					for _, a := range s.AttributeIndices().All() {
						entry := d.AttributeTable().At(int(a))
						attributes[text(entry.KeyStrindex())] = entry.Value().AsString()
					}
					delete(attributes, "service.name")
					keys := slices.Sorted(maps.Keys(attributes))
					line := header
					for _, key := range keys {
						line += " " + key + "=" + attributes[key]
					}
					for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
						location := d.LocationTable().At(int(l))
						line += " " + text(d.FunctionTable().At(int(location.Lines().At(0).FunctionIndex())).NameStrindex())
						line += fmt.Sprint(location.AttributeIndices().Len())
						for _, a := range location.AttributeIndices().All() {
							line += text(d.AttributeTable().At(int(a)).KeyStrindex())
						}
					}
					link := d.LinkTable().At(int(s.LinkIndex()))
					line += fmt.Sprint(s.Values().AsRaw(), s.TimestampsUnixNano().AsRaw(), link.TraceID(), link.SpanID())
					all = append(all, line)
				}
			}
		}
	}
	sort.Strings(all)
	return all
}

func TestHostBecomesServices(t *testing.T) {
	for seed := range uint64(8) {
		for _, move := range [][]string{byExecutable, append(slices.Clone(byExecutable), "process.pid"), {"container.id"},
			{"container.id", "thread.name"}} {
			pd := host(seed, 2+int(seed)*7, 10+int(seed)*30)
			require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
			before := profiletest.Clone(pd)
			stats := New(Options{Move: move}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
			require.Zero(t, stats)
			require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
			require.NoError(t, profiletest.Check(new(compact.Batch).Merge([]pprofile.Profiles{profiletest.Clone(pd)})),
				"conformant after dictionary_dedup")
			require.Equal(t, facts(before, "container.id"), facts(pd, append(move, "container.id")...))

			again := profiletest.Clone(before)
			New(Options{Move: move}).Regroup(again, Group{Identify: byProgram, Admit: admitAll})
			require.Equal(t, marshal(t, pd), marshal(t, again), "the same input gives the same bytes")
		}
	}
}

func marshal(t testing.TB, pd pprofile.Profiles) []byte {
	return profiletest.Marshal(t, pd)
}

// processes returns a message like newer profilers': a resource for each process.
func processes(seed uint64, n int) pprofile.Profiles {
	rnd := rand.New(rand.NewPCG(seed, 2))
	b := profiletest.New()
	for pid := range n {
		name := fmt.Sprint("program", rnd.IntN(5))
		b.Resource("process.pid", int64(pid), "process.executable.name", name, "process.executable.path", "/bin/"+name).
			Scope(fmt.Sprint("scope", rnd.IntN(2)), "1")
		for kind := range 1 + rnd.IntN(2) {
			b.Profile(fmt.Sprint("kind", kind), "count").Time(1_000, 5_000_000)
			for i := range 1 + rnd.IntN(4) {
				s := profiletest.Observed([]uint64{1_000 + uint64(i)}, fmt.Sprint("f", i)).
					With(profiletest.Attr("thread.id", int64(rnd.IntN(9))))
				if rnd.IntN(5) == 0 {
					s = s.With(profiletest.Attr("process.pid", int64(pid)))
				}
				b.Sample(s)
			}
		}
	}
	return b.Build()
}

func TestProcessesShareResources(t *testing.T) {
	all := []string{"process.pid", "process.executable.name", "process.executable.path"}
	for seed := range uint64(30) {
		for moved := range len(all) {
			pd := processes(seed, 1+int(seed))
			require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
			if seed%2 == 0 { // as it comes over the wire
				var err error
				pd, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(marshal(t, pd))
				require.NoError(t, err)
			}
			before := facts(pd, all...)
			New(Options{Move: all[moved+1:], Lower: all[:moved+1]}).Regroup(pd, Group{Identify: func(resources []Resource) {
				for i := range resources {
					resources[i].IsProcess = true
					for k := range resources[i].Processes {
						name, _ := resources[i].Attributes.Get("process.executable.name")
						resources[i].Processes[k].Identity.ServiceName = name.Str()
					}
				}
			}, Admit: admitAll})
			require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
			require.Equal(t, before, facts(pd, all...))
			// One for each program, and one more for samples that had the attribute themselves.
			require.LessOrEqual(t, pd.ResourceProfiles().Len(), 2*5)
			for _, rp := range pd.ResourceProfiles().All() {
				require.LessOrEqual(t, rp.ScopeProfiles().Len(), 2)
			}
		}
	}
}

// Each executable has one resource for each incoming resource, and one profile for each incoming profile.
func TestProcessesAreNotSplitNeedlessly(t *testing.T) {
	pd := host(3, 60, 500)
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	seen := map[string]bool{}
	for _, rp := range pd.ResourceProfiles().All() {
		attributes := rp.Resource().Attributes()
		key := fmt.Sprint(attributes.AsRaw())
		apm, _ := attributes.Get("service.name")
		// A sample with its own name loses one more attribute.
		assert.False(t, seen[key] && apm.Str() != "apm", key)
		seen[key] = true
		require.Equal(t, 1, rp.ScopeProfiles().Len())
		assert.LessOrEqual(t, rp.ScopeProfiles().At(0).Profiles().Len(), 2)
	}
	assert.Len(t, seen, 2*(7+1+6),
		"7 programs, the kernel, and 6 of them with a name of their own, on the host and in the container")
}

// If a dictionary has an attribute twice, the samples that keep the one keep it, even if others lose the other.
func TestDuplicatedAttributes(t *testing.T) {
	for _, indices := range [][2]int32{{1, 2}, {2, 1}} {
		b := profiletest.New()
		for i := range indices {
			b.Resource("host.name", fmt.Sprint(i)).Scope("s", "1").Profile("cpu", "ns").
				Sample(sampleOf(profiletest.Attr("process.executable.name", "a")))
		}
		pd := b.Build()
		attributes := pd.Dictionary().AttributeTable()
		require.Equal(t, 2, attributes.Len())
		attributes.At(1).CopyTo(attributes.AppendEmpty())
		for i, index := range indices {
			profiletest.ProfileAt(pd, i).Samples().At(0).AttributeIndices().SetAt(0, index)
		}
		admitted := 0
		New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: func([32]byte) bool {
			admitted++
			return admitted == 1
		}})
		require.Equal(t, 2, pd.ResourceProfiles().Len())
		lost, kept := profiletest.ProfileAt(pd, 0).Samples().At(0), profiletest.ProfileAt(pd, 1).Samples().At(0)
		assert.Zero(t, lost.AttributeIndices().Len())
		require.Equal(t, 1, kept.AttributeIndices().Len())
		at := kept.AttributeIndices().At(0)
		require.Positive(t, at)
		require.Less(t, int(at), attributes.Len())
		assert.Equal(t, "a", attributes.At(int(at)).Value().Str())
	}
}

func TestNothingToMove(t *testing.T) {
	pd := profiletest.New().Resource("service.name", "shop").Scope("s", "1").Profile("cpu", "ns").
		Sample(profiletest.Value(1, "a").With(profiletest.Attr("thread.id", int64(1)))).Build()
	before := marshal(t, pd)
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	assert.Equal(t, before, marshal(t, pd))
}

func sampleOf(attributes ...profiletest.Attribute) profiletest.Sample {
	return profiletest.Value(1, fmt.Sprint(attributes)).With(attributes...)
}

// Samples without information about a process keep their resource, and so do profiles without samples.
func TestWhatStays(t *testing.T) {
	pd := profiletest.New().Resource("container.id", "", "host.name", "h").Scope("s", "1").
		Profile("cpu", "ns").ID([16]byte{1}).Payload("x", []byte("payload")).
		Sample(sampleOf(profiletest.Attr("thread.id", int64(1)))).
		Sample(sampleOf(profiletest.Attr("process.pid", int64(7)), profiletest.Attr("process.executable.name", "a"))).
		Profile("empty", "ns").
		Build()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	require.Equal(t, 2, pd.ResourceProfiles().Len())
	stayed, moved := pd.ResourceProfiles().At(0), pd.ResourceProfiles().At(1)
	assert.Equal(t, map[string]any{"container.id": "", "host.name": "h"}, stayed.Resource().Attributes().AsRaw())
	assert.Equal(t, 2, stayed.ScopeProfiles().At(0).Profiles().Len())
	p := stayed.ScopeProfiles().At(0).Profiles().At(0)
	assert.Equal(t, 1, p.Samples().Len())
	assert.Equal(t, "payload", string(p.OriginalPayload().AsRaw()), "the payload goes out once")
	assert.Equal(t, pprofile.ProfileID{1}, p.ProfileID())
	assert.Equal(t, map[string]any{"service.name": "a", "process.executable.name": "a", "host.name": "h"},
		moved.Resource().Attributes().AsRaw())
	p = moved.ScopeProfiles().At(0).Profiles().At(0)
	assert.Zero(t, p.OriginalPayload().Len())
	assert.False(t, p.ProfileID().IsEmpty())
	assert.NotEqual(t, pprofile.ProfileID{1}, p.ProfileID(), "an id is of one profile")
}

// A profile that moves as a whole keeps its id and payload, and a resource of one process keeps its position.
func TestOneProcess(t *testing.T) {
	pd := profiletest.New().Resource("process.pid", int64(7)).Scope("s", "1").
		Profile("cpu", "ns").ID([16]byte{1}).Payload("x", []byte("payload")).
		Sample(sampleOf(profiletest.Attr("service.name", "shop"), profiletest.Attr("thread.id", int64(1)))).Build()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	assert.Equal(t, map[string]any{"service.name": "shop", "process.pid": int64(7)},
		pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
	p := profiletest.ProfileAt(pd, 0)
	assert.Equal(t, pprofile.ProfileID{1}, p.ProfileID())
	assert.Equal(t, "payload", string(p.OriginalPayload().AsRaw()))
	assert.Equal(t, 1, p.Samples().At(0).AttributeIndices().Len(), "thread.id")
}

// A profile moves unchanged if all of its samples go to one resource.
func TestWholeProfilesMove(t *testing.T) {
	b := profiletest.New().Resource().Scope("s", "1")
	for i := range byte(3) {
		b.Profile("cpu", "ns").ID([16]byte{i + 1}).Payload("x", []byte("payload")).
			Sample(sampleOf(profiletest.Attr("process.executable.name", fmt.Sprint("program", i))))
	}
	pd := b.Build()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	require.Equal(t, 3, pd.ResourceProfiles().Len())
	for i := range 3 {
		p := profiletest.ProfileAt(pd, i)
		assert.Equal(t, pprofile.ProfileID{byte(i + 1)}, p.ProfileID())
		assert.Equal(t, "payload", string(p.OriginalPayload().AsRaw()))
	}
}

// Only the first part of a profile gets the original payload and its format.
func TestThePayloadGoesOnce(t *testing.T) {
	b := profiletest.New().Resource().Profile("cpu", "ns").Payload("x", []byte("payload"))
	for i := range 3 {
		b.Sample(sampleOf(profiletest.Attr("process.executable.name", fmt.Sprint("program", i))))
	}
	pd := b.Build()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	for i, want := range []string{"payload", "", ""} {
		assert.Equal(t, want, string(profiletest.ProfileAt(pd, i).OriginalPayload().AsRaw()))
		assert.Equal(t, want == "", profiletest.ProfileAt(pd, i).OriginalPayloadFormat() == "")
	}
}

func keysOf(pd pprofile.Profiles) (keys []string) {
	for _, a := range pd.Dictionary().AttributeTable().All() {
		keys = append(keys, pd.Dictionary().StringTable().At(int(a.KeyStrindex())))
	}
	return keys
}

// An attribute that something else refers to as well stays in the dictionary.
func TestSharedAttributesStay(t *testing.T) {
	name := profiletest.Attr("process.executable.name", "a")
	s := sampleOf(name, profiletest.Attr("process.pid", int64(1)))
	s.Stack[0].Attributes = []profiletest.Attribute{name}
	pd := profiletest.New().Resource().Profile("cpu", "ns").Sample(s).Build()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	assert.Contains(t, keysOf(pd), "process.executable.name")
	assert.Equal(t, 1, profiletest.SampleAt(pd, 0).AttributeIndices().Len())
}

// Processes above the limit share one resource, which has only attributes of the machine. Their samples keep all
// attributes.
func TestOther(t *testing.T) {
	b := profiletest.New().Resource("container.id", strings.Repeat("a", 64), "host.name", "h", "k8s.pod.name", "p").
		Profile("cpu", "ns")
	for i := range 5 {
		b.Sample(sampleOf(profiletest.Attr("process.executable.name", fmt.Sprint("program", i)),
			profiletest.Attr("process.pid", int64(i+1))))
	}
	pd := b.Build()
	admitted := 0
	stats := New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: func([32]byte) bool {
		admitted++
		return admitted <= 2
	}})
	require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()))
	assert.Equal(t, Stats{OverResources: 3}, stats)
	require.Equal(t, 3, pd.ResourceProfiles().Len())
	other := pd.ResourceProfiles().At(2)
	assert.Equal(t, map[string]any{"service.name": "other", "host.name": "h"}, other.Resource().Attributes().AsRaw())
	assert.Equal(t, 3, other.ScopeProfiles().At(0).Profiles().At(0).Samples().Len())
	assert.Equal(t, 2, other.ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).AttributeIndices().Len())
}

// Admit gets the same content for the same process in every message.
func TestContentIsStable(t *testing.T) {
	seen := map[[32]byte]int{}
	for seed := range uint64(5) {
		New(Options{Move: byExecutable}).Regroup(host(seed, 20, 1000),
			Group{Identify: byProgram, Admit: func(content [32]byte) bool {
				seen[content]++
				return true
			}})
	}
	for content, n := range seen {
		assert.Zero(t, n%5, content)
	}
}

// References into the string table, in attributes of resources, keep their meaning.
func TestReferencesKeepTheirMeaning(t *testing.T) {
	pd := profiletest.New().Resource("zone", "north", "container.id", "").Scope("s", "1", "key", "value").Profile("cpu",
		"ns").
		Sample(sampleOf(profiletest.Attr("process.executable.name", "a"), profiletest.Attr("z", "last"))).Build()
	_, err := sizer.MarshalProfiles(pd) // leaves references behind, as over gRPC
	require.NoError(t, err)
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	again := profiletest.Unmarshal(t, marshal(t, pd))
	rp := again.ResourceProfiles().At(0)
	assert.Equal(t, map[string]any{"service.name": "a", "process.executable.name": "a", "zone": "north"},
		rp.Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"key": "value"}, rp.ScopeProfiles().At(0).Scope().Attributes().AsRaw())
}

// Different entries with the same value belong to the same process.
func TestDuplicateAttributes(t *testing.T) {
	pd := profiletest.New().Resource().Profile("cpu", "ns").Sample(
		sampleOf(profiletest.Attr("process.executable.name", "a"), profiletest.Attr("thread.id", int64(1))),
		sampleOf(profiletest.Attr("process.executable.name", "a"), profiletest.Attr("thread.id", int64(2))),
	).Build()
	d := pd.Dictionary()
	d.AttributeTable().At(1).CopyTo(d.AttributeTable().AppendEmpty())
	indices := profiletest.SampleAt(pd, 1).AttributeIndices()
	require.EqualValues(t, 1, indices.At(0))
	indices.SetAt(0, int32(d.AttributeTable().Len()-1))
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	for _, s := range profiletest.ProfileAt(pd, 0).Samples().All() {
		assert.Equal(t, 1, s.AttributeIndices().Len())
	}
}

// Entry 0 stays, whatever its content is.
func TestARealAttributeAtZero(t *testing.T) {
	pd := profiletest.New().Resource().Profile("cpu", "ns").
		Sample(sampleOf(profiletest.Attr("process.executable.name", "a"))).Build()
	d := pd.Dictionary()
	d.AttributeTable().At(1).CopyTo(d.AttributeTable().At(0))
	profiletest.SampleAt(pd, 0).AttributeIndices().FromRaw([]int32{0})
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	assert.Equal(t, []string{"process.executable.name", "process.executable.name"}, keysOf(pd))
	assert.Zero(t, profiletest.SampleAt(pd, 0).AttributeIndices().Len())
	name, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "a", name.Str())
}

// Faults of a message stay as they are.
func TestIndicesOutOfRange(t *testing.T) {
	pd := host(1, 10, 30)
	d := pd.Dictionary()
	bad := int32(d.AttributeTable().Len())
	s := profiletest.SampleAt(pd, 0)
	s.AttributeIndices().Append(-1, bad, 1<<30)
	d.LocationTable().At(1).AttributeIndices().Append(-1, bad)
	d.AttributeTable().At(1).SetKeyStrindex(-5)
	d.AttributeTable().At(2).SetUnitStrindex(int32(d.StringTable().Len()))
	d.FunctionTable().At(1).SetNameStrindex(1 << 30)
	samples := pd.SampleCount()
	New(Options{Move: byExecutable}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	assert.Equal(t, samples, pd.SampleCount())
	kept := 0
	for p := range otlp.Profiles(pd) {
		for _, s := range p.Samples().All() {
			for _, a := range s.AttributeIndices().All() {
				if a < 0 || int(a) >= d.AttributeTable().Len() {
					kept++
				}
			}
		}
	}
	assert.Equal(t, 3, kept, "-1, and two that are too high")
	New(Options{Move: byExecutable}).Regroup(pprofile.NewProfiles(), Group{Identify: byProgram, Admit: admitAll})
}

// Indices out of range stay out of range when attributes of a resource move to its samples and tables grow.
func TestIndicesOutOfRangeWhereTablesGrow(t *testing.T) {
	pd := profiletest.New().Resource("process.pid", int64(7), "process.executable.name", "a").Profile("cpu", "ns").
		Sample(sampleOf(profiletest.Attr("thread.id", int64(1)))).Build()
	d := pd.Dictionary()
	s := profiletest.SampleAt(pd, 0)
	s.AttributeIndices().Append(int32(d.AttributeTable().Len()))
	d.LocationTable().At(1).AttributeIndices().Append(int32(d.AttributeTable().Len()))
	d.FunctionTable().At(1).SetNameStrindex(int32(d.StringTable().Len()))
	New(Options{Lower: []string{"process.pid"}}).Regroup(pd, Group{Identify: func(resources []Resource) {
		resources[0].IsProcess = true
		resources[0].Processes[0].Identity.ServiceName = "a"
	}, Admit: admitAll})
	assert.Equal(t, map[string]any{"service.name": "a", "process.executable.name": "a"},
		pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
	assert.Equal(t, []string{"", "thread.id", "process.pid"}, keysOf(pd))
	assert.Equal(t, []int32{1, outOfRange, 2}, s.AttributeIndices().AsRaw())
	assert.Equal(t, []int32{outOfRange}, d.LocationTable().At(1).AttributeIndices().AsRaw())
	assert.EqualValues(t, outOfRange, d.FunctionTable().At(1).NameStrindex())
}

// Samples do not move for values that a process cannot have.
func TestUnusableAttributes(t *testing.T) {
	pd := profiletest.New().Resource().Profile("cpu", "ns").Sample(
		sampleOf(profiletest.Attr("process.pid", "seven")),
		sampleOf(profiletest.Attr("process.pid", int64(-7))),
		sampleOf(profiletest.Attr("process.executable.name", int64(7))),
		sampleOf(profiletest.Attr("process.executable.name", "")),
		sampleOf(profiletest.Attr("moved", []any{"a"})),
	).Build()
	before := marshal(t, pd)
	New(Options{Move: []string{"moved", "process.pid"}}).Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
	assert.Equal(t, before, marshal(t, pd))
}

// A Regrouper that is used again has the same result as a new one.
func TestUsedAgain(t *testing.T) {
	r := New(Options{Move: byExecutable})
	for seed := range uint64(10) {
		pd, want := host(seed, 30, 200), host(seed, 30, 200)
		r.Regroup(pd, Group{Identify: byProgram, Admit: admitAll})
		New(Options{Move: byExecutable}).Regroup(want, Group{Identify: byProgram, Admit: admitAll})
		require.Equal(t, marshal(t, want), marshal(t, pd))
	}
}
