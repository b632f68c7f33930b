// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"debug/elf"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
)

// harness is a processor with what it passed on and logged.
type harness struct {
	*symbolizer
	tb        testing.TB
	sink      *consumertest.ProfilesSink
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
}

// start begins a processor that waits long enough for all lookups, unless change sets another time.
func start(tb testing.TB, change func(*Config)) *harness {
	tb.Helper()
	config := createDefaultConfig().(*Config)
	config.MaxWait = 30 * time.Second
	config.Sources.DebugDirectories = []string{}
	if change != nil {
		change(config)
	}
	require.NoError(tb, config.Validate())
	h := &harness{tb: tb, sink: &consumertest.ProfilesSink{}, telemetry: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.InfoLevel)
	h.logs = logs
	settings := processortest.NewNopSettings(metadata.Type)
	settings.TelemetrySettings = h.telemetry.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	var err error
	h.symbolizer, err = newProcessor(settings, config, h.sink)
	require.NoError(tb, err)
	require.NoError(tb, h.Start(tb.Context(), componenttest.NewNopHost()))
	tb.Cleanup(func() {
		require.NoError(tb, h.Shutdown(context.Background()))
		require.NoError(tb, h.Shutdown(context.Background()), "again")
		require.NoError(tb, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// pass sends a message through and returns what came out, which is conformant.
func (h *harness) pass(pd pprofile.Profiles) pprofile.Profiles {
	h.tb.Helper()
	h.sink.Reset()
	require.NoError(h.tb, h.ConsumeProfiles(h.tb.Context(), pd))
	require.Len(h.tb, h.sink.AllProfiles(), 1)
	out := h.sink.AllProfiles()[0]
	require.NoError(h.tb, profiletest.Check(out))
	return out
}

// program is a file with its functions.
type program struct {
	path      string
	ids       symbols.IDs
	functions map[string]uint64 // virtual addresses
	// text is where the executable segment is.
	text elf.ProgHeader
}

// read reads a program's functions with the standard library.
func read(tb testing.TB, path string) program {
	tb.Helper()
	file, err := os.Open(path)
	require.NoError(tb, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(tb, err)
	image, err := symbols.Open(file, info.Size(), symbols.DefaultLimits)
	require.NoError(tb, err)
	_, err = image.Htlhash()
	require.NoError(tb, err)
	p := program{path: path, ids: image.IDs(), functions: map[string]uint64{}}
	f, err := elf.NewFile(file)
	require.NoError(tb, err)
	all, _ := f.Symbols()
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			p.functions[s.Name] = s.Value
		}
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_LOAD && segment.Flags&elf.PF_X != 0 {
			p.text = segment.ProgHeader
		}
	}
	return p
}

// mapping is the program's text, mapped at an address.
func (p program) mapping(start uint64, ids symbols.IDs) *profiletest.Mapping {
	m := &profiletest.Mapping{Start: start, Limit: start + p.text.Memsz, Offset: p.text.Off, File: p.path}
	for _, id := range [][2]string{
		{attributeBuildIDGNU, ids.GNU}, {attributeBuildIDGo, ids.Go}, {attributeBuildIDHtlhash, ids.Htlhash},
	} {
		if id[1] != "" {
			m.Attributes = append(m.Attributes, profiletest.Attr(id[0], id[1]))
		}
	}
	return m
}

// at is a location of one of the program's functions.
func (p program) at(m *profiletest.Mapping, function string) profiletest.Location {
	return profiletest.Location{Address: m.Start + p.functions[function] - p.text.Vaddr + 1, Mapping: m}
}

// sampled is a message with one sample.
func sampled(stack ...profiletest.Location) pprofile.Profiles {
	return profiletest.New().Profile("cpu", "nanoseconds").Period(10_000_000, "cpu", "nanoseconds").
		Sample(profiletest.Sample{Stack: stack, Values: []int64{30_000_000}}).Build()
}

// functions are the names of the first sample's stack, each location's innermost first; "" for a location without any.
func functions(pd pprofile.Profiles) (names []string) {
	d := pd.Dictionary()
	sample := profiletest.SampleAt(pd, 0)
	for _, l := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
		lines := d.LocationTable().At(int(l)).Lines()
		if lines.Len() == 0 {
			names = append(names, "")
		}
		for _, line := range lines.All() {
			names = append(names, d.StringTable().At(int(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())))
		}
	}
	return names
}
