// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// The peak of the heap is at most boundConstant + boundFactor × the message's encoded bytes, and what comes out has at
// most sizeFactor times its bytes and sizeConstant more.
const (
	boundConstant = 32 << 20
	boundFactor   = 100
	sizeConstant  = 2 * copiedConstant
	sizeFactor    = 12
)

var sizer pprofile.ProtoMarshaler

// ofProcesses adds n samples, each of a process of its own, with more attributes.
func ofProcesses(m *worst.Message, n int, more ...int32) {
	p := m.Profile()
	for i := range n {
		m.Sample(p, 0, append([]int32{m.Attribute("process.pid", i+1)}, more...)...)
	}
}

// resources adds n resources of a process, each with a long attribute that its scope has, too.
func resources(key string) func(m *worst.Message, size int) {
	return func(m *worst.Message, size int) {
		long := strings.Repeat("x", size/2)
		for i := range size / 60 {
			attributes := m.NextResource()
			attributes.PutInt("process.pid", int64(i))
			attributes.PutStr("process.executable.name", "a")
			attributes.PutStr(key, long)
			m.Scope.Scope().Attributes().PutStr(key, long)
			m.Sample(m.Scope.Profiles().AppendEmpty(), 0)
		}
	}
}

// worstMessages are messages of processes that are made to cost as much as possible.
func worstMessages() worst.Messages {
	all := worst.Messages{
		"a process for each sample": func(m *worst.Message, size int) { ofProcesses(m, size/20) },
		"processes of a large resource": func(m *worst.Message, size int) {
			m.Resource.Resource().Attributes().PutStr("text", strings.Repeat("x", size/2))
			ofProcesses(m, size/40)
		},
		"processes of a resource with many attributes": func(m *worst.Message, size int) {
			m.Resource.Resource().Attributes().EnsureCapacity(size / 40)
			for i := range min(size/40, 10_000) {
				m.Resource.Resource().Attributes().PutInt(fmt.Sprint("key-", i), 1)
			}
			ofProcesses(m, size/40)
		},
		"processes of a long name": func(m *worst.Message, size int) {
			m.Resource.Resource().Attributes().PutStr("service.name", strings.Repeat("x", size/2))
			ofProcesses(m, size/40)
		},
		"processes of a large scope": func(m *worst.Message, size int) {
			m.Scope.Scope().Attributes().PutStr("text", strings.Repeat("x", size/2))
			ofProcesses(m, size/40)
		},
		"processes of a profile with many attributes": func(m *worst.Message, size int) {
			ofProcesses(m, size/40)
			m.Scope.Profiles().At(0).AttributeIndices().FromRaw(slices.Repeat([]int32{1}, size/4))
		},
		"processes of many profiles": func(m *worst.Message, size int) {
			var pids []int32
			for i := range 300 {
				pids = append(pids, m.Attribute("process.pid", i+1))
			}
			for range size / 20 / len(pids) {
				p := m.Scope.Profiles().AppendEmpty()
				for _, pid := range pids {
					m.Sample(p, 0, pid)
				}
			}
		},
		"a process, many times in a sample": func(m *worst.Message, size int) {
			m.Sample(m.Profile(), 0, slices.Repeat([]int32{m.Attribute("process.pid", 1)}, size)...)
		},
		"a process in resources of a long attribute": func(m *worst.Message, size int) {
			pid, long := m.Attribute("process.pid", 1), strings.Repeat("x", size/2)
			for range size / 60 {
				m.NextResource().PutStr("text", long)
				m.Sample(m.Scope.Profiles().AppendEmpty(), 0, pid)
			}
		},
		"resources of processes of a long path": resources("process.executable.path"),
		"resources of processes of a long text": resources("text"),
	}
	for _, key := range []string{"process.executable.path", "process.executable.name", "service.name", "moved",
		"process.environment_variable.OTEL_RESOURCE_ATTRIBUTES", "container.id"} {
		all["processes of a long "+key] = func(m *worst.Message, size int) {
			ofProcesses(m, size/40, m.Attribute(key, strings.Repeat("x", size/2)))
		}
	}
	return all
}

// requireBounded regroups by process, with a name of its own for each process where there is nothing else.
func requireBounded(t testing.TB, wire []byte) {
	t.Helper()
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	if err != nil {
		return
	}
	in, samples := sizer.ProfilesSize(pd), pd.SampleCount()
	r := New(Options{
		Move:  []string{"process.executable.name", "container.id", "moved"},
		Lower: []string{"process.pid", "process.executable.path"},
	})
	if len(wire)%2 == 0 {
		r = New(Options{Move: []string{"process.pid", "process.executable.name", "process.executable.path", "container.id",
			"moved"}})
	}
	for _, admit := range []func([32]byte) bool{admitAll, func([32]byte) bool { return false }} {
		var own pprofile.Profiles
		profiletest.RequireCostOfEach(t, profiletest.BoundOf(len(wire), boundConstant, boundFactor), func() func() {
			own = profiletest.Clone(pd)
			return func() { r.Regroup(own, Group{Identify: nameAll, Admit: admit}) }
		})
		require.Equal(t, samples, own.SampleCount())
		require.LessOrEqual(t, sizer.ProfilesSize(own), sizeConstant+sizeFactor*in)
	}
}

func admitAll([32]byte) bool { return true }

// nameAll names each process by its executable, or by one name.
func nameAll(resources []Resource) {
	for n := range resources {
		resource := &resources[n]
		_, resource.IsProcess = resource.Attributes.Get("process.pid")
		for i := range resource.Processes {
			p := &resource.Processes[i]
			switch {
			case p.ServiceName != "":
				p.Identity = Identity{ServiceName: "apm", FromSample: true}
			case p.ExecutableName != "":
				p.Identity.ServiceName = p.ExecutableName[:min(len(p.ExecutableName), 20)]
			case p.PID != NoPID || resource.IsProcess:
				p.Identity = Identity{ServiceName: "shop", Attributes: []Attribute{{"k8s.pod.uid", "1"}}, Key: "1"}
			}
		}
	}
}

func TestRegroupIsBounded(t *testing.T) {
	for name, wire := range worstMessages().All(1 << 18) {
		t.Run(name, func(t *testing.T) { requireBounded(t, wire) })
	}
	for name, wire := range worstMessages().All(1 << 20) { // what is read again and again shows in what is large
		if strings.Contains(name, "long") || strings.Contains(name, "large") {
			t.Run(name, func(t *testing.T) { requireBounded(t, wire) })
		}
	}
}

func FuzzRegroup(f *testing.F) {
	for _, wire := range worstMessages().All(2_000) {
		f.Add(wire)
	}
	for seed := range uint64(4) {
		wire := profiletest.Marshal(f, host(seed, 5, 40))
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		requireBounded(t, wire)
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
		if err != nil || profiletest.Check(pd) != nil {
			return
		}
		New(Options{Move: []string{"process.executable.name"}}).Regroup(pd, Group{Identify: nameAll, Admit: admitAll})
		require.NoError(t, profiletest.Check(pd, profiletest.AllowOrphans()), "what is conformant stays so")
	})
}
