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
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
)

var (
	marshaler   pprofile.ProtoMarshaler
	unmarshaler pprofile.ProtoUnmarshaler
)

func encoded(tb testing.TB, pd pprofile.Profiles) []byte {
	b, err := marshaler.MarshalProfiles(pd)
	require.NoError(tb, err)
	return b
}

// requireMessageIsBounded passes a message and compares the cost with its bytes.
func requireMessageIsBounded(t *testing.T, h *harness, payload []byte) {
	pd, err := unmarshaler.UnmarshalProfiles(payload)
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
	for name, pd := range map[string]pprofile.Profiles{
		"many samples of one long stack":      longStack(20_000, 20_000),
		"many mappings without a build id":    manyMappings(20_000, false),
		"many mappings with build ids":        manyMappings(20_000, true),
		"one address in all of the locations": longStack(1, 100_000),
	} {
		t.Run(name, func(t *testing.T) { requireMessageIsBounded(t, h, encoded(t, pd)) })
	}
}

// longStack has samples of one stack, each of a process of its own.
func longStack(samples, locations int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", attributePID, "/program")
	d.MappingTable().AppendEmpty()
	d.MappingTable().AppendEmpty().SetFilenameStrindex(2)
	d.LocationTable().AppendEmpty()
	stack := d.StackTable().AppendEmpty().LocationIndices()
	for i := range locations {
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(1)
		l.SetAddress(uint64(i + 1))
		stack.Append(int32(i + 1))
	}
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i := range samples {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(1)
		a.Value().SetInt(int64(1<<30 + i))
		s := p.Samples().AppendEmpty()
		s.Values().Append(1)
		s.AttributeIndices().Append(int32(i))
	}
	return pd
}

func manyMappings(n int, ids bool) pprofile.Profiles {
	pd := longStack(n, 1)
	d := pd.Dictionary()
	d.StringTable().Append(attributeBuildIDGNU)
	key := int32(d.StringTable().Len() - 1)
	for i := range n {
		m := d.MappingTable().AppendEmpty()
		d.StringTable().Append(filepath.Join("/nowhere", string(rune('a'+i%26)), string(rune(0x4e00+i))))
		m.SetFilenameStrindex(int32(d.StringTable().Len() - 1))
		if ids {
			a := d.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(key)
			a.Value().SetStr(string(rune(0x4e00 + i)))
			m.AttributeIndices().Append(int32(d.AttributeTable().Len() - 1))
		}
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(int32(d.MappingTable().Len() - 1))
		l.SetAddress(uint64(i + 1))
		d.StackTable().At(0).LocationIndices().Append(int32(d.LocationTable().Len() - 1))
	}
	return pd
}

// Locations at an address with many inlined calls share its answer, but not its lines.
func TestLinesAreBounded(t *testing.T) {
	answer := &lookup.Answer{Frames: make([]symbols.Frame, 256)}
	for i := range answer.Frames {
		answer.Frames[i].Name = fmt.Sprint("f", i)
	}
	var pd pprofile.Profiles
	var locations pprofile.LocationSlice
	size := len(encoded(t, longStack(1, 20_000)))
	profiletest.RequireCostOfEach(t, profiletest.BoundOf(size, 16<<20, 32), func() func() {
		pd = longStack(1, 20_000)
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
	f.Add(encoded(f, sampled(p.at(p.mapping(0x10000000, p.ids), "main.main"))))
	f.Add(encoded(f, sampled(p.at(p.mapping(0x10000000, symbols.IDs{}), "main.price"))))
	f.Add(encoded(f, longStack(3, 3)))
	f.Add(encoded(f, manyMappings(3, true)))
	h := start(f, func(c *Config) {
		c.MaxWait = 0
		c.Sources.Files.WithoutBuildID = true
		c.Lookup.CacheBytes = 1 << 20
		c.Sources.Files.ProcPath = "/nowhere"
	})
	f.Fuzz(func(t *testing.T, payload []byte) {
		pd, err := unmarshaler.UnmarshalProfiles(payload)
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
