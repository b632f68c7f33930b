// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
)

// TestSymbolize pushes a pprof of a C program that has addresses alone, as gperftools writes it. The output has the
// program's functions, with inlined calls and lines, and is conformant.
func TestSymbolize(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O2", "-g")
	c := startQuickstart(t, "--config", "yaml:processors::symbolize: {max_wait: 30s, lines: true}",
		"--config", "yaml:service::pipelines::profiles::processors: [symbolize]")
	c.requirePush(t, "shop", addressesOf(t, program, "exported", "main"))
	pd := c.output(t)["shop"][0]
	require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	text := profiletest.Render(pd)
	for _, part := range []string{"exported", "main", "shop.c", "symbolize.source"} {
		assert.Contains(t, text, part)
	}
	c.Terminate(t)
}

// addressesOf returns a pprof with one sample, whose stack has an address in each of these functions of a program.
func addressesOf(t *testing.T, program string, functions ...string) []byte {
	t.Helper()
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	table, err := f.Symbols()
	require.NoError(t, err)
	id, err := f.Section(".note.gnu.build-id").Data()
	require.NoError(t, err)
	const start = 0x555500000000
	m := &profile.Mapping{ID: 1, File: program, BuildID: hex.EncodeToString(id[16:])}
	var text elf.ProgHeader
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_LOAD && segment.Flags&elf.PF_X != 0 {
			text = segment.ProgHeader
		}
	}
	m.Start, m.Limit, m.Offset = start, start+text.Memsz, text.Off
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, Mapping: []*profile.Mapping{m},
		Sample: []*profile.Sample{{Value: []int64{10_000_000}}},
	}
	for _, name := range functions {
		for _, s := range table {
			if s.Name == name {
				l := &profile.Location{ID: uint64(len(p.Location) + 1), Mapping: m, Address: start + s.Value - text.Vaddr + 1}
				p.Location = append(p.Location, l)
				p.Sample[0].Location = append(p.Sample[0].Location, l)
			}
		}
	}
	require.Len(t, p.Location, len(functions))
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return b.Bytes()
}
