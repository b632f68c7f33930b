// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// pprofOfTypes returns a pprof of one sample.
func pprofOfTypes(t *testing.T, periodType string, types ...string) []byte {
	t.Helper()
	f := &profile.Function{ID: 1, Name: "main"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		TimeNanos: time.Now().UnixNano(), DurationNanos: 1e9, Period: 1e7,
		Function: []*profile.Function{f}, Location: []*profile.Location{l},
		Sample: []*profile.Sample{{Location: []*profile.Location{l}}},
	}
	if periodType != "" {
		p.PeriodType = &profile.ValueType{Type: periodType, Unit: "nanoseconds"}
	}
	for _, name := range types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "nanoseconds"})
		p.Sample[0].Value = append(p.Sample[0].Value, 1)
	}
	var b strings.Builder
	require.NoError(t, p.Write(&b))
	return []byte(b.String())
}

// exported returns the names of services and profiles in the paths of the files that the exporter pprof_file writes.
func exported(t *testing.T, pd pprofile.Profiles) (names []string) {
	t.Helper()
	folder := t.TempDir()
	factory := pproffileexporter.NewFactory().(xexporter.Factory)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"directory": folder}).Unmarshal(cfg))
	e, err := factory.CreateProfiles(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
	require.NoError(t, e.Shutdown(t.Context()))
	paths := profiletest.Glob(t, filepath.Join(folder, "*", "*", "*.pb.gz"))
	for _, path := range paths {
		dir := filepath.Dir(path)
		names = append(names, filepath.Base(filepath.Dir(dir))+" "+filepath.Base(dir))
	}
	return names
}

// A pprof has one name, on the page, in file names and in this tool, whatever the order of its sample types.
func TestOneSetOfNames(t *testing.T) {
	payloads := map[string][]byte{
		"wall and cpu":            pprofOfTypes(t, "", "wall", "cpu"),
		"cpu and wall":            pprofOfTypes(t, "", "cpu", "wall"),
		"wall and cpu, by wall":   pprofOfTypes(t, "wall", "wall", "cpu"),
		"cpu and wall, by wall":   pprofOfTypes(t, "wall", "cpu", "wall"),
		"wall and cpu, by cpu":    pprofOfTypes(t, "cpu", "wall", "cpu"),
		"what nobody knows, wall": pprofOfTypes(t, "", "frobs", "wall"),
	}
	want := map[string]string{
		"wall and cpu": "process_cpu", "cpu and wall": "process_cpu",
		"wall and cpu, by wall": "wall", "cpu and wall, by wall": "wall",
		"wall and cpu, by cpu": "process_cpu", "what nobody knows, wall": "wall",
		"go-mutex.pb.gz": "mutex", "go-heap.pb.gz": "memory", "node-datadog-wall-cpu.pb.gz": "wall",
	}
	for _, path := range profiletest.Glob(t, pprofData+"*.pb.gz") {
		if strings.Contains(path, "huge") || strings.Contains(path, "large") {
			continue
		}
		payloads[filepath.Base(path)] = profiletest.FileBytes(t, path)
	}
	for name, payload := range payloads {
		t.Run(name, func(t *testing.T) {
			pd, _, err := decode.Decode(payload, decode.Options{})
			require.NoError(t, err)

			var here []string
			for _, g := range groupsOf(pd, true) {
				here = append(here, g.Service+" "+g.Profile)
			}
			slices.Sort(here)
			here = slices.Compact(here)

			kept := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
			kept.Add(pd, time.Now())
			profiles, err := kept.Catalog(t.Context(), store.UnknownService, nil)
			require.NoError(t, err)
			var page []string
			for _, p := range profiles {
				page = append(page, store.UnknownService+" "+p.Profile)
			}
			slices.Sort(page)
			page = slices.Compact(page)
			assert.Equal(t, page, here, "the page and this tool")

			// A choice of types does not change the name.
			first := groupsOf(pd, true)[0]
			only := profiletest.Clone(pd)
			require.NoError(t, (&selection{sampleType: groupsOf(pd, true)[len(groupsOf(pd, true))-1].Type}).apply(only))
			for _, g := range groupsOf(only, true) {
				assert.Equal(t, first.Profile, g.Profile, "a choice of types does not change the name")
			}

			files := exported(t, pd)
			assert.Equal(t, page, slices.Compact(files), "the page and file names")
			require.Len(t, page, 1)
			if want, ok := want[name]; ok {
				assert.Equal(t, store.UnknownService+" "+want, page[0])
			}
		})
	}
}
