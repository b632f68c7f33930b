// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regroup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
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

// worstMessages are messages of about size encoded bytes, made to cost as much as possible.
func worstMessages(t testing.TB, size int) map[string][]byte {
	t.Helper()
	type message struct {
		pprofile.Profiles
		d  pprofile.ProfilesDictionary
		rp pprofile.ResourceProfiles
		p  pprofile.Profile
	}
	long := strings.Repeat("x", size/2)
	all := map[string][]byte{}
	add := func(name string, fill func(m message)) {
		m := message{Profiles: profiletest.New().Resource().Scope("s", "1").Profile("cpu", "ns").Build()}
		m.d = m.Dictionary()
		m.rp = m.ResourceProfiles().At(0)
		m.p = m.rp.ScopeProfiles().At(0).Profiles().At(0)
		fill(m)
		wire, err := sizer.MarshalProfiles(m.Profiles)
		require.NoError(t, err)
		all[name] = wire
	}
	key := func(m message, key string) int32 {
		m.d.StringTable().Append(key)
		return int32(m.d.StringTable().Len() - 1)
	}
	attribute := func(m message, key int32) (pprofile.KeyValueAndUnit, int32) {
		a := m.d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(key)
		return a, int32(m.d.AttributeTable().Len() - 1)
	}
	sample := func(p pprofile.Profile, attributes ...int32) {
		s := p.Samples().AppendEmpty()
		s.Values().Append(1)
		s.AttributeIndices().FromRaw(attributes)
	}
	pids := func(m message, n int, more ...int32) {
		pid := key(m, "process.pid")
		for i := range n {
			a, at := attribute(m, pid)
			a.Value().SetInt(int64(i + 1))
			sample(m.p, append([]int32{at}, more...)...)
		}
	}
	add("a process for each sample", func(m message) { pids(m, size/20) })
	add("processes of a large resource", func(m message) {
		m.rp.Resource().Attributes().PutStr("text", long)
		pids(m, size/40)
	})
	add("processes of a resource with many attributes", func(m message) {
		m.rp.Resource().Attributes().EnsureCapacity(size / 40)
		for i := range min(size/40, 10_000) {
			m.rp.Resource().Attributes().PutInt(fmt.Sprint("key-", i), 1)
		}
		pids(m, size/40)
	})
	add("processes of a long service name", func(m message) {
		m.rp.Resource().Attributes().PutStr("service.name", long)
		pids(m, size/40)
	})
	for _, name := range []string{"process.executable.path", "process.executable.name", "service.name", "moved",
		"process.environment_variable.OTEL_RESOURCE_ATTRIBUTES", "container.id"} {
		add("processes of a long "+name, func(m message) {
			a, at := attribute(m, key(m, name))
			a.Value().SetStr(long)
			pids(m, size/40, at)
		})
	}
	add("processes of a large scope", func(m message) {
		m.rp.ScopeProfiles().At(0).Scope().Attributes().PutStr("text", long)
		pids(m, size/40)
	})
	add("processes of a profile with many attributes", func(m message) {
		for range size / 4 {
			m.p.AttributeIndices().Append(1)
		}
		pids(m, size/40)
	})
	add("processes of many profiles", func(m message) {
		pid := key(m, "process.pid")
		const processes = 300
		for i := range processes {
			a, _ := attribute(m, pid)
			a.Value().SetInt(int64(i + 1))
		}
		first := int32(m.d.AttributeTable().Len() - processes)
		for range size / 20 / processes {
			p := m.rp.ScopeProfiles().At(0).Profiles().AppendEmpty()
			for i := range int32(processes) {
				sample(p, first+i)
			}
		}
	})
	add("one attribute of one sample, many times", func(m message) {
		a, at := attribute(m, key(m, "process.pid"))
		a.Value().SetInt(1)
		s := m.p.Samples().AppendEmpty()
		s.Values().Append(1)
		for range size {
			s.AttributeIndices().Append(at)
		}
	})
	add("resources that refer to one long text", func(m message) {
		a, at := attribute(m, key(m, "process.pid"))
		a.Value().SetInt(1)
		for range size / 60 {
			rp := m.ResourceProfiles().AppendEmpty()
			rp.Resource().Attributes().PutStr("text", long)
			sample(rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty(), at)
		}
	})
	for _, name := range []string{"process.executable.path", "text"} {
		add("resources of processes that refer to one long "+name, func(m message) {
			for i := range size / 60 {
				rp := m.ResourceProfiles().AppendEmpty()
				rp.Resource().Attributes().PutInt("process.pid", int64(i))
				rp.Resource().Attributes().PutStr("process.executable.name", "a")
				rp.Resource().Attributes().PutStr(name, long)
				sp := rp.ScopeProfiles().AppendEmpty()
				sp.Scope().Attributes().PutStr(name, long)
				sample(sp.Profiles().AppendEmpty())
			}
		})
	}
	add("resources of processes", func(m message) {
		for i := range size / 30 {
			rp := m.ResourceProfiles().AppendEmpty()
			rp.Resource().Attributes().PutInt("process.pid", int64(i))
			sample(rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty())
		}
	})
	add("resources, scopes and profiles without samples", func(m message) {
		for range size / 20 {
			m.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		}
	})
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
			own = pprofile.NewProfiles()
			pd.CopyTo(own)
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
	for name, wire := range worstMessages(t, 1<<18) {
		t.Run(name, func(t *testing.T) { requireBounded(t, wire) })
	}
	for name, wire := range worstMessages(t, 1<<20) { // what is read again and again shows in what is large
		if strings.Contains(name, "long") || strings.Contains(name, "large") {
			t.Run(name, func(t *testing.T) { requireBounded(t, wire) })
		}
	}
}

func FuzzRegroup(f *testing.F) {
	for _, wire := range worstMessages(f, 2_000) {
		f.Add(wire)
	}
	for seed := range uint64(4) {
		wire, err := sizer.MarshalProfiles(host(seed, 5, 40))
		require.NoError(f, err)
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
