// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// roundTrip converts payload to OTLP and back.
func roundTrip(t require.TestingT, payload []byte, options Options) (pd pprofile.Profiles, encoded []byte,
	back *profile.Profile) {
	pd, _, err := Decode(payload, options)
	require.NoError(t, err)
	require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	payloads, stats, err := encode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, payloads, 1)
	require.Zero(t, stats.LeftOut)
	back, err = profile.ParseUncompressed(payloads[0].Bytes)
	require.NoError(t, err)
	require.NoError(t, back.CheckValid())
	return pd, payloads[0].Bytes, back
}

// requireLossless converts a payload to OTLP and back, twice. (The second OTLP is another one if a payload repeats an
// identity, with all values 0 in one sample: the encoder joins that one with another.)
func requireLossless(t require.TestingT, payload []byte, options Options) (pd pprofile.Profiles,
	want, back *profile.Profile) {
	pd, encoded, back := roundTrip(t, payload, options)
	want, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.NoError(t, profiletest.EqualPprof(want, back, profiletest.StrictZero(), profiletest.CanonicalLinks()))
	again, _, err := Decode(encoded, options)
	require.NoError(t, err)
	require.NoError(t, profiletest.Equal(withoutIDs(pd), withoutIDs(again)))
	return pd, want, back
}

// withoutIDs clears the profile ids, which are hashes of the decoded bytes.
func withoutIDs(pd pprofile.Profiles) pprofile.Profiles {
	for p := range otlp.Profiles(pd) {
		p.SetProfileID(pprofile.NewProfileIDEmpty())
	}
	return pd
}

func TestRoundTripOfCapturedProfiles(t *testing.T) {
	for name, payload := range captured(t) {
		t.Run(name, func(t *testing.T) {
			_, want, back := requireLossless(t, payload, Options{})
			assert.Equal(t, mainBinary(want), mainBinary(back))
		})
	}
}

// mainBinary returns the file of the first mapping that a sample refers to.
func mainBinary(p *profile.Profile) string {
	p = p.Compact()
	if len(p.Mapping) == 0 {
		return ""
	}
	return p.Mapping[0].File
}

// pprof's own test inputs have many formats; those that its parser reads are written as protobuf first.
func TestRoundTripOfPprofsOwnTestFiles(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/pprof").Output()
	require.NoError(t, err)
	parsed := 0
	err = filepath.WalkDir(strings.TrimSpace(string(dir)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "/testdata/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := profile.ParseData(data)
		if err != nil {
			return nil // a binary, a source file, an expected output
		}
		parsed++
		t.Run(filepath.Base(path), func(t *testing.T) { checkRoundTrip(t, want) })
		return nil
	})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, parsed, 20)
}

// checkRoundTrip writes want, converts it to OTLP and back, and compares.
func checkRoundTrip(t require.TestingT, want *profile.Profile) {
	var payload bytes.Buffer
	require.NoError(t, want.WriteUncompressed(&payload))
	want, err := profile.ParseUncompressed(payload.Bytes()) // the writer drops what the format cannot represent
	require.NoError(t, err)
	if len(want.SampleType) == 0 {
		pd, _, err := Decode(payload.Bytes(), Options{})
		require.NoError(t, err)
		require.Zero(t, pd.ResourceProfiles().Len())
		return
	}
	_, _, back := roundTrip(t, payload.Bytes(), Options{})
	require.NoError(t, profiletest.EqualPprof(want, back, profiletest.StrictZero(), profiletest.CanonicalLinks()))
}

func TestRoundTripLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, profileGenerator().Draw(t, "profile"))
	})
}

// These labels profile.Profile cannot represent, or its writer drops them: empty texts, a number 0 whose unit is "" by
// another index than 0, and the order of texts and numbers under one key.
func TestRoundTripOfLabelsOnTheWire(t *testing.T) {
	const (
		key, text, secondEmpty, unit, otherUnit = 1, 2, 3, 4, 5
	)
	strings := []string{"", "key", "text", "", "ms", "s", "cpu"}
	label := func(str, num, unit int64) profiletest.PprofLabel {
		return profiletest.PprofLabel{Key: key, Str: str, Num: num, Unit: unit}
	}
	for name, labels := range map[string][]profiletest.PprofLabel{
		"empty text":              {label(secondEmpty, 0, 0)},
		"empty and other text":    {label(secondEmpty, 0, 0), label(text, 0, 0), label(secondEmpty, 0, 0)},
		"0":                       {label(0, 0, secondEmpty)},
		"0 with unit":             {label(0, 0, unit)},
		"zeros":                   {label(0, 0, secondEmpty), label(0, 0, secondEmpty)},
		"zeros of several units":  {label(0, 0, secondEmpty), label(0, 0, unit), label(0, 0, otherUnit)},
		"number before text":      {label(0, 7, unit), label(text, 0, 0)},
		"text among numbers":      {label(0, 7, unit), label(text, 0, 0), label(0, 8, unit)},
		"text among many units":   {label(0, 7, unit), label(text, 0, 0), label(0, 8, otherUnit), label(secondEmpty, 0, 0)},
		"number among texts":      {label(text, 0, 0), label(0, -1, 0), label(text, 0, 0)},
		"largest and smallest":    {label(0, 1<<63-1, 0), label(0, -1<<63, 0)},
		"numbers of several kind": {label(0, 5, 0), label(0, 5, unit)},
	} {
		t.Run(name, func(t *testing.T) {
			sample := profiletest.PprofWire(nil).Packed(profiletest.PprofSampleValue, 1)
			for _, l := range labels {
				sample = sample.Label(l)
			}
			payload := profiletest.PprofWire(nil).ValueType(profiletest.PprofSampleType, 6, 5).
				Message(profiletest.PprofSample, sample).Strings(strings...)
			want := profiletest.ParsePprof(t, payload)
			_, encoded, back := roundTrip(t, payload, Options{})
			require.NoError(t, profiletest.EqualPprof(want, back))
			assert.Equal(t, labelsInOrder(payload), labelsInOrder(encoded))
		})
	}
}

// labelsInOrder reads the labels of all samples straight from the wire.
func labelsInOrder(payload []byte) []string {
	var table, labels []string
	var raw [][5]int
	for fields := wire.New(payload); fields.Next(); {
		switch fields.Number {
		case profiletest.PprofString:
			table = append(table, string(fields.Content))
		case profiletest.PprofSample:
			for message := range wire.Messages(fields.Content, profiletest.PprofSampleLabel) {
				var label [5]int
				for numbers := wire.New(message); numbers.Next(); {
					label[numbers.Number] = int(numbers.Value)
				}
				raw = append(raw, label)
			}
		}
	}
	for _, l := range raw {
		if l[scan.LabelStr] != 0 {
			labels = append(labels, fmt.Sprintf("%s: %q", table[l[scan.LabelKey]], table[l[scan.LabelStr]]))
			continue
		}
		labels = append(labels,
			fmt.Sprintf("%s: %d%s", table[l[scan.LabelKey]], l[scan.LabelNum], table[l[scan.LabelNumUnit]]))
	}
	return labels
}

// Attributes with pprof's own words do not change the time or the link of a sample on the way to pprof and back: they
// arrive, or they are counted.
func TestAttributesOfPprofsWords(t *testing.T) {
	for seed := range uint64(300) {
		pd := profiletest.WordyProfiles(rand.New(rand.NewPCG(seed, 0)))
		payloads, stats, err := encode.Encode(pd)
		require.NoError(t, err)
		require.Len(t, payloads, 1)
		back, _, err := Decode(payloads[0].Bytes, Options{TimestampLabels: DefaultTimestampLabels()[1:]})
		require.NoError(t, err)
		arrived := 0
		for i := range 2 {
			sent, got := profiletest.SampleAt(pd, i), profiletest.SampleAt(back, i)
			require.Equal(t, sent.TimestampsUnixNano().AsRaw(), got.TimestampsUnixNano().AsRaw(), "seed %d", seed)
			require.NotZero(t, got.LinkIndex(), "seed %d", seed)
			arrived += got.AttributeIndices().Len() - sent.AttributeIndices().Len()
		}
		require.LessOrEqual(t, arrived+stats.LeftOut, 0, "seed %d", seed)
		require.GreaterOrEqual(t, arrived+2*stats.LeftOut, 0, "seed %d", seed)
	}
}

// Id 0 is no mapping, even if a mapping has no id.
func TestMappingWithoutID(t *testing.T) {
	for id, want := range map[uint64]bool{0: false, 1: true} {
		pd, _, err := Decode(profiletest.PprofWire(nil).Strings("", "cpu", "ns", "/lib/x.so").
			ValueType(profiletest.PprofSampleType, 1, 2).
			Message(profiletest.PprofSample,
				profiletest.PprofWire(nil).Packed(profiletest.PprofSampleLocation, 1).Packed(profiletest.PprofSampleValue, 5)).
			Mapping(profiletest.PprofMappingFields{ID: id, File: 3}).
			Location(profiletest.PprofLocationFields{ID: 1, Mapping: id, Address: 7}), Options{})
		require.NoError(t, err)
		text := profiletest.Render(pd)
		require.Equal(t, want, pd.Dictionary().MappingTable().Len() > 1, text)
	}
}
