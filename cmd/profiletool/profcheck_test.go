// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// corpus returns messages by name: a conformant one, and the same with one change each.
func corpus(t *testing.T) map[string][]byte {
	build := func() pprofile.Profiles {
		binary := &profiletest.Mapping{Start: 1, Limit: 9, File: "/bin/shop",
			Attributes: []profiletest.Attribute{profiletest.Attr("build", "x")}}
		other := &profiletest.Mapping{Start: 9, Limit: 20, File: "/lib/so"}
		stack := []profiletest.Location{
			{Address: 2, Mapping: binary,
				Lines: []profiletest.Line{{Function: profiletest.Function{Name: "leaf", File: "a.go", StartLine: 2}, Line: 3,
					Column: 4}}},
			{Address: 10, Mapping: other, Attributes: []profiletest.Attribute{profiletest.Attr("folded", true)}},
		}
		return profiletest.New().Profile("cpu", "nanoseconds").Time(1000, 100).Period(10, "cpu", "ticks").
			Attributes(profiletest.Attr("profile.key", "v")).
			Sample(
				profiletest.Sample{Stack: stack, Values: []int64{1, 2}, Timestamps: []uint64{1000, 1099},
					Attributes: []profiletest.Attribute{
						profiletest.Attr("thread.name", "a"), {Key: "size", Value: 3, Unit: "bytes"},
					}}.Linked([16]byte{1}, [8]byte{2}),
				profiletest.Sample{Stack: stack[1:], Values: []int64{5}, Timestamps: []uint64{1001}},
			).Build()
	}
	changes := map[string]func(pprofile.Profiles, pprofile.Profile, pprofile.ProfilesDictionary){
		"sound": func(pprofile.Profiles, pprofile.Profile, pprofile.ProfilesDictionary) {},
		"no resource": func(pd pprofile.Profiles, _ pprofile.Profile, _ pprofile.ProfilesDictionary) {
			pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		},
		"resource without scopes": func(pd pprofile.Profiles, _ pprofile.Profile, _ pprofile.ProfilesDictionary) {
			pd.ResourceProfiles().AppendEmpty()
		},
		"scope without profiles": func(pd pprofile.Profiles, _ pprofile.Profile, _ pprofile.ProfilesDictionary) {
			pd.ResourceProfiles().At(0).ScopeProfiles().AppendEmpty()
		},
		"profile without samples": func(_ pprofile.Profiles, p pprofile.Profile, _ pprofile.ProfilesDictionary) {
			p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		},
	}
	// Of the profile.
	for name, change := range map[string]func(pprofile.Profile){
		"stack out of range":     func(p pprofile.Profile) { p.Samples().At(0).SetStackIndex(99) },
		"negative stack":         func(p pprofile.Profile) { p.Samples().At(0).SetStackIndex(-1) },
		"link out of range":      func(p pprofile.Profile) { p.Samples().At(0).SetLinkIndex(99) },
		"attribute out of range": func(p pprofile.Profile) { p.Samples().At(0).AttributeIndices().Append(99) },
		"attribute twice": func(p pprofile.Profile) {
			p.Samples().At(0).AttributeIndices().Append(p.Samples().At(0).AttributeIndices().At(0))
		},
		"profile attribute range":     func(p pprofile.Profile) { p.AttributeIndices().Append(99) },
		"sample type out of range":    func(p pprofile.Profile) { p.SampleType().SetTypeStrindex(99) },
		"sample unit negative":        func(p pprofile.Profile) { p.SampleType().SetUnitStrindex(-7) },
		"period type out of range":    func(p pprofile.Profile) { p.PeriodType().SetTypeStrindex(99) },
		"timestamp before":            func(p pprofile.Profile) { p.Samples().At(0).TimestampsUnixNano().SetAt(0, 999) },
		"timestamp at the end":        func(p pprofile.Profile) { p.Samples().At(0).TimestampsUnixNano().SetAt(0, 1100) },
		"more values than timestamps": func(p pprofile.Profile) { p.Samples().At(0).Values().Append(9) },
		"more timestamps than values": func(p pprofile.Profile) { p.Samples().At(0).TimestampsUnixNano().Append(1050) },
		"neither value nor timestamp": func(p pprofile.Profile) { empty(p.Samples().At(1)) },
		"another shape":               func(p pprofile.Profile) { p.Samples().At(1).TimestampsUnixNano().FromRaw(nil) },
		"two values alone": func(p pprofile.Profile) {
			empty(p.Samples().At(1))
			p.Samples().At(1).Values().Append(1, 2)
		},
		"a sample twice":         func(p pprofile.Profile) { p.Samples().At(1).CopyTo(p.Samples().AppendEmpty()) },
		"payload without format": func(p pprofile.Profile) { p.OriginalPayload().FromRaw([]byte("x")) },
		"format without payload": func(p pprofile.Profile) { p.SetOriginalPayloadFormat("pprof") },
		"stack without a sample": func(p pprofile.Profile) {
			p.Samples().At(0).SetStackIndex(p.Samples().At(1).StackIndex())
		},
		"attribute without a sample":   func(p pprofile.Profile) { p.Samples().At(0).AttributeIndices().FromRaw(nil) },
		"link without a sample":        func(p pprofile.Profile) { p.Samples().At(0).SetLinkIndex(0) },
		"no time, no timestamps in it": func(p pprofile.Profile) { p.SetTime(0) },
	} {
		changes[name] = func(_ pprofile.Profiles, p pprofile.Profile, _ pprofile.ProfilesDictionary) { change(p) }
	}
	// Of the dictionary.
	for name, change := range map[string]func(pprofile.ProfilesDictionary){
		"string twice":             func(d pprofile.ProfilesDictionary) { d.StringTable().Append("leaf") },
		"string without reference": func(d pprofile.ProfilesDictionary) { d.StringTable().Append("orphan") },
		"first string":             func(d pprofile.ProfilesDictionary) { d.StringTable().SetAt(0, "first") },
		"first stack":              func(d pprofile.ProfilesDictionary) { d.StackTable().At(0).LocationIndices().Append(1) },
		"first link":               func(d pprofile.ProfilesDictionary) { d.LinkTable().At(0).SetTraceID([16]byte{1}) },
		"first attribute":          func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(0).SetKeyStrindex(1) },
		"first function":           func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(0).SetStartLine(1) },
		"first mapping":            func(d pprofile.ProfilesDictionary) { d.MappingTable().At(0).SetFileOffset(1) },
		"first location":           func(d pprofile.ProfilesDictionary) { d.LocationTable().At(0).SetAddress(1) },
		"no links": func(d pprofile.ProfilesDictionary) {
			d.LinkTable().RemoveIf(func(pprofile.Link) bool { return true })
		},
		"mapping twice": func(d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).CopyTo(d.MappingTable().AppendEmpty())
		},
		"function twice": func(d pprofile.ProfilesDictionary) {
			d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
		},
		"location twice": func(d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
		},
		"stack twice": func(d pprofile.ProfilesDictionary) {
			d.StackTable().At(1).CopyTo(d.StackTable().AppendEmpty())
		},
		"mapping without memory": func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetMemoryLimit(0) },
		"mapping name range":     func(d pprofile.ProfilesDictionary) { d.MappingTable().At(1).SetFilenameStrindex(99) },
		"mapping attribute range": func(d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).AttributeIndices().Append(99)
		},
		"location's mapping range": func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).SetMappingIndex(99) },
		"function range": func(d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(99)
		},
		"negative line":        func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetLine(-1) },
		"negative column":      func(d pprofile.ProfilesDictionary) { d.LocationTable().At(1).Lines().At(0).SetColumn(-1) },
		"negative start line":  func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetStartLine(-1) },
		"function name range":  func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetNameStrindex(99) },
		"function file range":  func(d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetFilenameStrindex(99) },
		"attribute key range":  func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(1).SetKeyStrindex(99) },
		"attribute unit range": func(d pprofile.ProfilesDictionary) { d.AttributeTable().At(1).SetUnitStrindex(99) },
		"location range":       func(d pprofile.ProfilesDictionary) { d.StackTable().At(1).LocationIndices().Append(99) },
		"link of zeros":        func(d pprofile.ProfilesDictionary) { d.LinkTable().At(1).SetSpanID([8]byte{}) },
	} {
		changes[name] = func(_ pprofile.Profiles, _ pprofile.Profile, d pprofile.ProfilesDictionary) { change(d) }
	}
	messages := map[string][]byte{}
	for name, change := range changes {
		pd := build()
		change(pd, profiletest.ProfileAt(pd, 0), pd.Dictionary())
		data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		messages[name] = data
	}
	return messages
}

func empty(s pprofile.Sample) {
	s.Values().FromRaw(nil)
	s.TimestampsUnixNano().FromRaw(nil)
}

// modes are the arguments of both checkers: with all rules, and without the rule about unused entries.
var modes = []struct{ profcheck, profiletool []string }{
	{[]string{"-check-dupes", "-check-orphans"}, []string{"check", "-"}},
	{[]string{"-check-dupes"}, []string{"check", "--allow-orphans", "-"}},
}

// stricter are the messages that profcheck passes in the first or the second mode while profiletool does not.
var stricter = map[string]string{
	"a sample twice":         "samples of one identity are one (profiles.proto, Sample)",
	"payload without format": "original_payload_format is required with original_payload (profiles.proto)",
	"format without payload": "the same",
	"function twice":         "the dictionary holds no entry twice (profiles.proto); profcheck compares strings and mappings",
	"location twice":         "the same",
	"stack twice":            "the same",
}

// TestProfcheck compares verdicts with those of profcheck, the checker of OpenTelemetry's profiling group. They were
// recorded by
//
//	PROFCHECK=path/to/profcheck go test ./cmd/profiletool -run TestProfcheck -update
//
// with profcheck of open-telemetry/sig-profiling at d2ab6d5.
func TestProfcheck(t *testing.T) {
	messages := corpus(t)
	names := slices.Sorted(maps.Keys(messages))
	if profcheck := os.Getenv("PROFCHECK"); profcheck != "" {
		var verdicts strings.Builder
		for _, name := range names {
			path := write(t, "x.otlp", string(messages[name]))
			fmt.Fprintf(&verdicts, "%s:", name)
			for _, mode := range modes {
				err := exec.Command(profcheck, append(mode.profcheck, path)...).Run()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				fmt.Fprintf(&verdicts, " %t", err == nil)
			}
			verdicts.WriteByte('\n')
		}
		profiletest.Golden(t, "testdata/profcheck.txt", verdicts.String())
	}
	recorded, err := os.ReadFile("testdata/profcheck.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(recorded)) {
		name, verdicts, _ := strings.Cut(strings.TrimSpace(line), ": ")
		var ours []string
		for _, mode := range modes {
			ours = append(ours, fmt.Sprint(run(t, messages[name], mode.profiletool...).code == exitOK))
		}
		if _, ok := stricter[name]; ok {
			assert.Contains(t, verdicts, "true", "%s: is no longer a difference", name)
			assert.Equal(t, []string{"false", "false"}, ours, "%s: is listed as stricter", name)
			continue
		}
		assert.Equal(t, verdicts, strings.Join(ours, " "), name)
	}
	assert.Equal(t, len(names), strings.Count(string(recorded), "\n"))
}
