// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// everything is a configuration in which each part of the connector has something to do.
const everything = `
max_series: 1000
top_functions:
  - {profile: process_cpu/cpu, of: total, compare: {to: 10m, by: service.version}}
  - {profile: memory/inuse_space}
metrics:
  functions: {profiles: [process_cpu/cpu], unit: s, functions: ['f.*1', 'main'], below: ['g'], group_by: {frame: function, sample_attributes: [thread.name]}}
  package:   {profiles: [process_cpu/cpu], unit: s, match: leaf, group_by: {frame: package}}
  leaf:      {profiles: [process_cpu/cpu, process_cpu/samples], unit: s, functions: ['f'], match: leaf, below: [m], has_sample_attributes: {thread.name: .}}
  anywhere:  {profiles: [memory/inuse_space], unit: By, group_by: {frame: package}}
`

func encoded(tb testing.TB, pd pprofile.Profiles) []byte {
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(tb, err)
	return wire
}

// requireBounded passes a message and compares the cost with its bytes.
func requireBounded(t *testing.T, wire []byte) {
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	if err != nil {
		t.Skip("not a message")
	}
	pd.MarkReadOnly()
	var f *fixture
	profiletest.RequireCostOfEach(t, profiletest.BoundOf(2*len(wire), 32<<20, 64), func() func() {
		f = start(t, everything)
		return func() {
			for range 2 {
				require.NoError(t, f.ConsumeProfiles(t.Context(), pd))
			}
			f.flush(t.Context())
		}
	})
	require.LessOrEqual(t, f.table.Len(), 1000)
	require.LessOrEqual(t, f.table.Bytes()+f.functions.Bytes(), f.config.MaxBytes)
}

// TestExpansionIsCounted has locations of many lines that many stacks share: samples whose functions are not visited
// are counted.
func TestExpansionIsCounted(t *testing.T) {
	pd := profiletest.New().Resource().Profile("cpu", "nanoseconds").Period(1, "cpu", "nanoseconds").
		Sample(profiletest.Value(1, "leaf")).Build()
	d := pd.Dictionary()
	lines := d.LocationTable().At(1).Lines()
	for range 2000 {
		lines.At(0).CopyTo(lines.AppendEmpty())
	}
	samples := profiletest.ProfileAt(pd, 0).Samples()
	for range 2000 {
		d.StackTable().At(1).CopyTo(d.StackTable().AppendEmpty())
		s := samples.AppendEmpty()
		samples.At(0).CopyTo(s)
		s.SetStackIndex(int32(d.StackTable().Len() - 1))
	}
	f := start(t, "top_functions: [{profile: process_cpu/cpu, of: total}]")
	require.NoError(t, f.ConsumeProfiles(t.Context(), pd))
	assert.Positive(t, f.dropped(t, "expansion"))
}

// TestMessagesAreBounded has messages whose parts refer to each other so often that following all references would
// never end.
func TestMessagesAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	for name, make := range map[string]func() pprofile.Profiles{
		"very many services":       func() pprofile.Profiles { return manyServices(200_000) },
		"samples of one stack":     func() pprofile.Profiles { return shared(50_000, 20_000, 1, 1) },
		"stacks of one location":   func() pprofile.Profiles { return shared(20_000, 1, 20_000, 20_000) },
		"names":                    func() pprofile.Profiles { return manyNames(100_000) },
		"patterns on a long name":  func() pprofile.Profiles { return longName(4 << 20) },
		"functions of a long name": func() pprofile.Profiles { return longNames(100_000) },
	} {
		t.Run(name, func(t *testing.T) { requireBounded(t, encoded(t, make())) })
	}
}

// manyServices has a profile of each service.
func manyServices(n int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
	for i := range n {
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", fmt.Sprint(i))
		addSamples(rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty(), 1, 1)
	}
	return pd
}

func addSamples(p pprofile.Profile, n, stacks int) {
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	for i := range n {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(i % stacks))
		s.Values().Append(1)
	}
}

// shared has samples of stacks, which have the same locations, each with the same lines.
func shared(samples, locations, lines, stacks int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "cpu", "nanoseconds")
	for i := range max(locations, lines) {
		d.StringTable().Append(fmt.Sprint("f", i))
		d.FunctionTable().AppendEmpty().SetNameStrindex(int32(3 + i))
	}
	for i := range locations {
		l := d.LocationTable().AppendEmpty()
		for k := range lines {
			l.Lines().AppendEmpty().SetFunctionIndex(int32(i + k))
		}
	}
	for range stacks {
		indices := d.StackTable().AppendEmpty().LocationIndices()
		for i := range locations {
			indices.Append(int32(i))
		}
	}
	addSamples(pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty(), samples, stacks)
	return pd
}

// manyNames has a stack of each function.
func manyNames(n int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "cpu", "nanoseconds")
	for i := range n {
		d.StringTable().Append(fmt.Sprintf("pkg%d/f%d", i, i))
		d.FunctionTable().AppendEmpty().SetNameStrindex(int32(3 + i))
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(i))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(i))
	}
	addSamples(pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty(), n, n)
	return pd
}

// longName has one function.
func longName(bytes int) pprofile.Profiles {
	pd := shared(1, 1, 1, 1)
	pd.Dictionary().StringTable().SetAt(3, strings.Repeat("fm", bytes/2))
	return pd
}

// longNames has functions that share a name.
func longNames(n int) pprofile.Profiles {
	pd := manyNames(n)
	pd.Dictionary().StringTable().SetAt(3, strings.Repeat("fm", 1<<16))
	for _, function := range pd.Dictionary().FunctionTable().All() {
		function.SetNameStrindex(3)
	}
	return pd
}

// FuzzMessages passes whatever pdata reads.
func FuzzMessages(f *testing.F) {
	for _, name := range []string{"go-mutex.pb.gz", "go-goroutine.pb.gz"} {
		payload, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pprof", name))
		require.NoError(f, err)
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(f, err)
		f.Add(encoded(f, pd))
	}
	for _, pd := range []pprofile.Profiles{manyServices(3), shared(3, 3, 3, 3), manyNames(3), cpu("shop", 1, 2).Build(),
		state("a", "inuse_space", 1, 2)} {
		f.Add(encoded(f, pd))
	}
	f.Fuzz(requireBounded)
}

// TestMutations cuts and changes bytes of messages, as the fuzz target does.
func TestMutations(t *testing.T) {
	f := start(t, everything)
	wire := encoded(t, cpu("shop", 1, 2, 3).Build())
	for i := range wire {
		for _, b := range []byte{0x00, 0x7f, 0xff} {
			changed := append([]byte(nil), wire...)
			changed[i] = b
			if pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(changed); err == nil {
				assert.NoError(t, f.ConsumeProfiles(t.Context(), pd))
			}
		}
	}
	f.flush(t.Context())
}
