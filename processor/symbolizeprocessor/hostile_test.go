// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
)

// requireMessageIsBounded passes a message and compares the cost with its bytes.
func requireMessageIsBounded(t *testing.T, h *harness, payload []byte) {
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(payload)
	if err != nil {
		t.Skip("not a message")
	}
	samples := pd.SampleCount()
	profiletest.RequireCostOfEach(t, profiletest.BoundOf(len(payload), 16<<20, 32), func() func() {
		h.sink.Reset()
		own := profiletest.Clone(pd)
		return func() { require.NoError(t, h.ConsumeProfiles(t.Context(), own)) }
	})
	require.Len(t, h.sink.AllProfiles(), 1)
	assert.LessOrEqual(t, h.sink.AllProfiles()[0].SampleCount(), samples)
}

// Messages whose parts refer to each other so often that following all references would never end.
func TestMessagesAreBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	h := start(t, func(c *Config) { c.MaxWait = 0; c.Sources.Files.WithoutBuildID = true })
	for name, m := range map[string]*worst.Message{
		"many samples of one long stack":      longStack(50_000, 50_000),
		"many mappings without a build id":    manyMappings(20_000, false),
		"many mappings with build ids":        manyMappings(20_000, true),
		"one address in all of the locations": longStack(1, 100_000),
	} {
		t.Run(name, func(t *testing.T) { requireMessageIsBounded(t, h, profiletest.Marshal(t, m.Profiles)) })
	}
}

// longStack has samples of one stack, each of a process of its own.
func longStack(samples, locations int) *worst.Message {
	m, stack := worst.NewMessage(), []int32{}
	m.Dict.MappingTable().AppendEmpty().SetFilenameStrindex(m.Text("/program"))
	for range locations {
		stack = append(stack, m.Location())
		m.Dict.LocationTable().At(int(stack[len(stack)-1])).SetMappingIndex(1)
	}
	m.Stack(stack...)
	p := m.Scope.Profiles().AppendEmpty()
	for i := range samples {
		m.Sample(p, 1, m.Attribute(attributePID, 1<<30+i))
	}
	return m
}

func manyMappings(n int, ids bool) *worst.Message {
	m := longStack(n, 1)
	for i := range n {
		mapping := m.Dict.MappingTable().AppendEmpty()
		mapping.SetFilenameStrindex(m.Text(filepath.Join("/nowhere", string(rune('a'+i%26)), string(rune(0x4e00+i)))))
		if ids {
			mapping.AttributeIndices().Append(m.Attribute(attributeBuildIDGNU, string(rune(0x4e00+i))))
		}
		at := m.Location()
		m.Dict.LocationTable().At(int(at)).SetMappingIndex(int32(m.Dict.MappingTable().Len() - 1))
		m.Dict.StackTable().At(1).LocationIndices().Append(at)
	}
	return m
}

// Locations at an address with many inlined calls share its answer, but not its lines.
func TestLinesAreBounded(t *testing.T) {
	answer := &lookup.Answer{Frames: make([]symbols.Frame, 256)}
	for i := range answer.Frames {
		answer.Frames[i].Name = fmt.Sprint("f", i)
	}
	var pd pprofile.Profiles
	var locations pprofile.LocationSlice
	size := len(profiletest.Marshal(t, longStack(1, 20_000).Profiles))
	profiletest.RequireCostOfEach(t, profiletest.BoundOf(size, 16<<20, 32), func() func() {
		pd = longStack(1, 20_000).Profiles
		m := message{profiles: pd, dictionary: pd.Dictionary()}
		locations = pd.Dictionary().LocationTable()
		for i := 1; i < locations.Len(); i++ {
			m.resolved = append(m.resolved, resolvedLocation{location: int32(i), answer: answer})
		}
		return m.write
	})
	assert.Equal(t, 256, locations.At(1).Lines().Len())
	last := locations.At(locations.Len() - 1).Lines()
	require.Equal(t, 1, last.Len())
	name := pd.Dictionary().FunctionTable().At(int(last.At(0).FunctionIndex())).NameStrindex()
	assert.Equal(t, "f255", pd.Dictionary().StringTable().At(int(name)), "the function itself")
}

// With invalid indices anywhere, everything else is symbolised, and the rest passes unchanged.
func TestWrongIndices(t *testing.T) {
	p := shop(t)
	for _, wrong := range []int32{-1, -1 << 31, 1<<31 - 1, 1000} {
		h := start(t, func(c *Config) { c.Sources.Files.WithoutBuildID = true; c.Lookup.Lines = true })
		build := func() pprofile.Profiles {
			m := p.mapping(0x10000000, p.ids)
			pd := sampled(p.at(m, "main"), p.at(m, "exported"))
			pd.ResourceProfiles().At(0).Resource().Attributes().PutInt(attributePID, int64(os.Getpid()))
			return pd
		}
		for _, change := range []func(pprofile.ProfilesDictionary, pprofile.Sample){
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) { d.LocationTable().At(1).SetMappingIndex(wrong) },
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) {
				d.LocationTable().At(1).AttributeIndices().Append(wrong)
			},
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) {
				d.MappingTable().At(1).AttributeIndices().Append(wrong)
			},
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) {
				d.MappingTable().At(1).SetFilenameStrindex(wrong)
			},
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) { d.AttributeTable().At(1).SetKeyStrindex(wrong) },
			func(d pprofile.ProfilesDictionary, _ pprofile.Sample) {
				d.StackTable().At(1).LocationIndices().SetAt(0, wrong)
			},
			func(_ pprofile.ProfilesDictionary, s pprofile.Sample) { s.SetStackIndex(wrong) },
			func(_ pprofile.ProfilesDictionary, s pprofile.Sample) { s.AttributeIndices().Append(wrong) },
		} {
			pd := build()
			change(pd.Dictionary(), profiletest.SampleAt(pd, 0))
			require.NoError(t, h.ConsumeProfiles(t.Context(), pd))
			assert.Positive(t, pd.Dictionary().LocationTable().At(2).Lines().Len()+pd.Dictionary().LocationTable().At(1).Lines().
				Len())
		}
		bare := pprofile.NewProfiles()
		require.NoError(t, h.ConsumeProfiles(t.Context(), bare))
	}
}

// FuzzMessage passes arbitrary messages: nothing panics, no sample is lost, and a conformant message stays conformant.
func FuzzMessage(f *testing.F) {
	program := programtest.Go(f, []string{"CGO_ENABLED=0"})
	p := read(f, program)
	f.Add(profiletest.Marshal(f, sampled(p.at(p.mapping(0x10000000, p.ids), "main.main"))))
	f.Add(profiletest.Marshal(f, sampled(p.at(p.mapping(0x10000000, symbols.IDs{}), "main.price"))))
	f.Add(profiletest.Marshal(f, longStack(3, 3).Profiles))
	f.Add(profiletest.Marshal(f, manyMappings(3, true).Profiles))
	h := start(f, func(c *Config) {
		c.MaxWait = 0
		c.Sources.Files.WithoutBuildID = true
		c.Lookup.CacheBytes = 1 << 20
		c.Sources.Files.ProcPath = "/nowhere"
	})
	f.Fuzz(func(t *testing.T, payload []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(payload)
		if err != nil {
			return
		}
		isConformant := profiletest.Check(pd) == nil
		requireMessageIsBounded(t, h, payload)
		if isConformant {
			require.NoError(t, profiletest.Check(h.sink.AllProfiles()[0]))
		}
	})
}
