// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
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
	for _, name := range []string{"services", "samples of a stack of many frames", "samples of a deep stack",
		"a location of many lines in many stacks", "many stacks", "stacks with most in common", "functions of a long name"} {
		m := worst.NewMessage()
		worst.Profiles[name](m, 4<<20)
		t.Run(name, func(t *testing.T) { requireBounded(t, encoded(t, m.Profiles)) })
	}
	// Samples of a stack whose frames have names.
	m := worst.NewMessage()
	var frames []int32
	for i := range 20_000 {
		frames = append(frames, m.Location(m.Function(m.Text(fmt.Sprint("f", i)))))
	}
	stack := m.Stack(frames...)
	for p, i := m.Profile(), 0; i < 200_000; i++ {
		m.Sample(p, stack)
	}
	requireBounded(t, encoded(t, m.Profiles))
	// Patterns are matched with a long name.
	pd := cpu("shop", 1).Build()
	pd.Dictionary().StringTable().SetAt(int(pd.Dictionary().FunctionTable().At(1).NameStrindex()),
		strings.Repeat("fm", 2<<20))
	requireBounded(t, encoded(t, pd))
}

// FuzzMessages passes whatever pdata reads.
func FuzzMessages(f *testing.F) {
	for _, name := range []string{"go-mutex.pb.gz", "go-goroutine.pb.gz"} {
		payload := profiletest.FileBytes(f, filepath.Join("..", "..", "testdata", "pprof", name))
		pd, _, err := decode.Decode(payload, decode.Options{})
		require.NoError(f, err)
		f.Add(encoded(f, pd))
	}
	for _, pd := range []pprofile.Profiles{cpu("shop", 1, 2).Build(), state("a", "inuse_space", 1, 2)} {
		f.Add(encoded(f, pd))
	}
	for _, wire := range worst.Profiles.All(300) {
		f.Add(wire)
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
