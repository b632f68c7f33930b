// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// FuzzDecode decodes arbitrary bytes. The result is conformant, and if profile.Parse can read the bytes too, it
// reads the same.
func FuzzDecode(f *testing.F) {
	for _, payload := range captured(f) {
		if plain := bytes.Clone(plainBytes(f, payload)); len(plain) < 10<<10 {
			f.Add(plain)
			f.Add(payload)
		}
	}
	for _, name := range []string{"cpp-gperftools-legacy.prof", "go-goroutine-debug1.txt"} {
		data := profiletest.FileBytes(f, filepath.Join(testdata, name))
		f.Add(data[:min(len(data), 4<<10)])
	}
	for _, wire := range oddPayloads() {
		f.Add([]byte(wire))
	}
	const key = "end_timestamp_ns"
	f.Add(newTimedPprof("samples", "cpu").add("a", key, "", year2026, 1, 1).add("a", key, "", year2026+1, 1, 2).
		add("b", "", "", 0, 1, 3).bytes(f))
	f.Add(newTimedPprof("samples").add("a", "timestamps_unix_nano", "nanoseconds", year2026-1, 1).bytes(f))
	f.Add(newTimedPprof("samples").add("a", key, "", year2026, 0).add("a", key, "", 17, 1).bytes(f))
	// FuzzDecodeCost limits texts and their expansion: here the limits would only cause differences to profile.Parse.
	limits := scan.Limits{MaxProfileBytes: 1 << 20, MaxSamples: 1 << 16, MaxTableEntries: 1 << 16, MaxStringBytes: 1 << 20,
		MaxExpansion: 1 << 20}
	before := []byte(oddPayloads()["sparse ids"])
	f.Fuzz(func(t *testing.T, payload []byte) {
		// What an earlier payload left in the scratch memory must have no effect.
		_, _, err := Decode(before, Options{})
		require.NoError(t, err)
		for _, options := range []Options{{Limits: limits}, {Limits: limits, TimestampLabels: DefaultTimestampLabels()}} {
			requireAsPeer(t, payload, options)
		}
	})
}

// requireAsPeer decodes a payload, and encodes it again if profile.Parse can read it.
func requireAsPeer(t *testing.T, payload []byte, options Options) {
	pd, stats, err := Decode(payload, options)
	if err != nil {
		var format *scan.FormatError
		require.True(t, errors.As(err, &format) || errors.Is(err, scan.ErrTooLarge), "%v", err)
		if errors.Is(err, scan.ErrTooLarge) {
			return
		}
	} else {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	}
	want := peerReading(payload, options.Limits)
	if want == nil {
		return
	}
	require.NoError(t, err, "profile.Parse reads this")
	require.Zero(t, stats.Dropped)
	encoded, _, err := encode.Encode(pd)
	require.NoError(t, err)
	if len(want.SampleType) == 0 {
		require.Empty(t, encoded)
		return
	}
	require.Len(t, encoded, 1)
	got := profiletest.ParsePprof(t, encoded[0].Bytes)
	require.NoError(t, got.CheckValid())
	require.NoError(t, profiletest.EqualPprof(want, got, profiletest.StrictZero(), profiletest.CanonicalLinks()))
}

// peerReading returns what profile.Parse reads, with the documented repairs. It returns nil if that refuses the
// payload, or if some text is not UTF-8 (which can make two keys equal).
func peerReading(payload []byte, limits scan.Limits) *profile.Profile {
	var d decompressor
	plain, err := d.plain(payload, limits.MaxProfileBytes, nil)
	if err != nil {
		return nil
	}
	p, err := profile.ParseUncompressed(plain)
	if err != nil || p.CheckValid() != nil || !validText(plain) {
		return nil
	}
	for _, l := range p.Location {
		for i := range l.Line {
			l.Line[i].Line, l.Line[i].Column = max(0, l.Line[i].Line), max(0, l.Line[i].Column)
		}
	}
	for _, f := range p.Function {
		f.StartLine = max(0, f.StartLine)
	}
	p.TimeNanos, p.DurationNanos = max(0, p.TimeNanos), max(0, p.DurationNanos)
	return p
}

// validText reports whether all strings of a payload that can be parsed are UTF-8.
func validText(plain []byte) bool {
	var p scan.Payload
	limits := scan.DefaultLimits()
	if p.Scan(plain, &limits, &scan.Counts{}, nil) != nil {
		return false
	}
	return !slices.ContainsFunc(p.Strings, func(at scan.Span) bool { return !utf8.Valid(plain[at.Start:at.End]) })
}
