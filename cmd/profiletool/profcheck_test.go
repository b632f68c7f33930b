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
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// conformant is a message of one profile with two samples.
type conformant struct {
	pprofile.Profiles
	profile       pprofile.Profile
	first, second pprofile.Sample
	dictionary    pprofile.ProfilesDictionary
}

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
	changes := map[string]func(*conformant){
		"sound": func(*conformant) {},
		"no resource": func(m *conformant) {
			m.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		},
		"resource without scopes": func(m *conformant) { m.ResourceProfiles().AppendEmpty() },
		"scope without profiles":  func(m *conformant) { m.ResourceProfiles().At(0).ScopeProfiles().AppendEmpty() },
		"profile without samples": func(m *conformant) {
			m.profile.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		},
		"stack out of range":          func(m *conformant) { m.first.SetStackIndex(99) },
		"negative stack":              func(m *conformant) { m.first.SetStackIndex(-1) },
		"link out of range":           func(m *conformant) { m.first.SetLinkIndex(99) },
		"attribute out of range":      func(m *conformant) { m.first.AttributeIndices().Append(99) },
		"attribute twice":             func(m *conformant) { m.first.AttributeIndices().Append(m.first.AttributeIndices().At(0)) },
		"profile attribute range":     func(m *conformant) { m.profile.AttributeIndices().Append(99) },
		"sample type out of range":    func(m *conformant) { m.profile.SampleType().SetTypeStrindex(99) },
		"sample unit negative":        func(m *conformant) { m.profile.SampleType().SetUnitStrindex(-7) },
		"period type out of range":    func(m *conformant) { m.profile.PeriodType().SetTypeStrindex(99) },
		"timestamp before":            func(m *conformant) { m.first.TimestampsUnixNano().SetAt(0, 999) },
		"timestamp at the end":        func(m *conformant) { m.first.TimestampsUnixNano().SetAt(0, 1100) },
		"more values than timestamps": func(m *conformant) { m.first.Values().Append(9) },
		"more timestamps than values": func(m *conformant) { m.first.TimestampsUnixNano().Append(1050) },
		"neither value nor timestamp": func(m *conformant) { empty(m.second) },
		"another shape":               func(m *conformant) { m.second.TimestampsUnixNano().FromRaw(nil) },
		"two values alone": func(m *conformant) {
			empty(m.second)
			m.second.Values().Append(1, 2)
		},
		"a sample twice":               func(m *conformant) { m.second.CopyTo(m.profile.Samples().AppendEmpty()) },
		"payload without format":       func(m *conformant) { m.profile.OriginalPayload().FromRaw([]byte("x")) },
		"format without payload":       func(m *conformant) { m.profile.SetOriginalPayloadFormat("pprof") },
		"stack without a sample":       func(m *conformant) { m.first.SetStackIndex(m.second.StackIndex()) },
		"attribute without a sample":   func(m *conformant) { m.first.AttributeIndices().FromRaw(nil) },
		"link without a sample":        func(m *conformant) { m.first.SetLinkIndex(0) },
		"no time, no timestamps in it": func(m *conformant) { m.profile.SetTime(0) },
		"string twice":                 func(m *conformant) { m.dictionary.StringTable().Append("leaf") },
		"string without reference":     func(m *conformant) { m.dictionary.StringTable().Append("orphan") },
		"first string":                 func(m *conformant) { m.dictionary.StringTable().SetAt(0, "first") },
		"first stack":                  func(m *conformant) { m.dictionary.StackTable().At(0).LocationIndices().Append(1) },
		"first link":                   func(m *conformant) { m.dictionary.LinkTable().At(0).SetTraceID([16]byte{1}) },
		"first attribute":              func(m *conformant) { m.dictionary.AttributeTable().At(0).SetKeyStrindex(1) },
		"first function":               func(m *conformant) { m.dictionary.FunctionTable().At(0).SetStartLine(1) },
		"first mapping":                func(m *conformant) { m.dictionary.MappingTable().At(0).SetFileOffset(1) },
		"first location":               func(m *conformant) { m.dictionary.LocationTable().At(0).SetAddress(1) },
		"no links":                     func(m *conformant) { m.dictionary.LinkTable().RemoveIf(func(pprofile.Link) bool { return true }) },
		"mapping twice": func(m *conformant) {
			m.dictionary.MappingTable().At(1).CopyTo(m.dictionary.MappingTable().AppendEmpty())
		},
		"function twice": func(m *conformant) {
			m.dictionary.FunctionTable().At(1).CopyTo(m.dictionary.FunctionTable().AppendEmpty())
		},
		"location twice": func(m *conformant) {
			m.dictionary.LocationTable().At(1).CopyTo(m.dictionary.LocationTable().AppendEmpty())
		},
		"stack twice": func(m *conformant) {
			m.dictionary.StackTable().At(1).CopyTo(m.dictionary.StackTable().AppendEmpty())
		},
		"mapping without memory": func(m *conformant) { m.dictionary.MappingTable().At(1).SetMemoryLimit(0) },
		"mapping name range":     func(m *conformant) { m.dictionary.MappingTable().At(1).SetFilenameStrindex(99) },
		"mapping attribute range": func(m *conformant) {
			m.dictionary.MappingTable().At(1).AttributeIndices().Append(99)
		},
		"location's mapping range": func(m *conformant) { m.dictionary.LocationTable().At(1).SetMappingIndex(99) },
		"function range":           func(m *conformant) { m.dictionary.LocationTable().At(1).Lines().At(0).SetFunctionIndex(99) },
		"negative line":            func(m *conformant) { m.dictionary.LocationTable().At(1).Lines().At(0).SetLine(-1) },
		"negative column":          func(m *conformant) { m.dictionary.LocationTable().At(1).Lines().At(0).SetColumn(-1) },
		"negative start line":      func(m *conformant) { m.dictionary.FunctionTable().At(1).SetStartLine(-1) },
		"function name range":      func(m *conformant) { m.dictionary.FunctionTable().At(1).SetNameStrindex(99) },
		"function file range":      func(m *conformant) { m.dictionary.FunctionTable().At(1).SetFilenameStrindex(99) },
		"attribute key range":      func(m *conformant) { m.dictionary.AttributeTable().At(1).SetKeyStrindex(99) },
		"attribute unit range":     func(m *conformant) { m.dictionary.AttributeTable().At(1).SetUnitStrindex(99) },
		"location range":           func(m *conformant) { m.dictionary.StackTable().At(1).LocationIndices().Append(99) },
		"link of zeros":            func(m *conformant) { m.dictionary.LinkTable().At(1).SetSpanID([8]byte{}) },
	}
	messages := map[string][]byte{}
	for name, change := range changes {
		pd := build()
		p := profiletest.ProfileAt(pd, 0)
		change(&conformant{pd, p, p.Samples().At(0), p.Samples().At(1), pd.Dictionary()})
		data := profiletest.Marshal(t, pd)
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
	recorded := profiletest.FileBytes(t, "testdata/profcheck.txt")
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
