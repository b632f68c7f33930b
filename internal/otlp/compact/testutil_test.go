// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const testdata = "../../../testdata/pprof"

// all is what the processor does by default, without a limit.
var all = Options{OrderByFrequency: true, CombineSamples: true}

// DecodePprof is set by a file of the external test package: translators may import this package, so its own tests
// cannot import them.
var DecodePprof func(payload []byte) (pprofile.Profiles, error)

var capturedProfiles = map[string]pprofile.Profiles{}

// captured returns the captured pprof payloads as profiles, by name. They are decoded once, and read-only.
func captured(t testing.TB) map[string]pprofile.Profiles {
	t.Helper()
	if len(capturedProfiles) == 0 {
		files := profiletest.Glob(t, filepath.Join(testdata, "*.pb.gz"))
		for _, file := range files {
			pd := fromPprof(t, filepath.Base(file))
			pd.MarkReadOnly()
			capturedProfiles[strings.TrimSuffix(filepath.Base(file), ".pb.gz")] = pd
		}
	}
	return maps.Clone(capturedProfiles)
}

func fromPprof(t testing.TB, file string) pprofile.Profiles {
	t.Helper()
	payload := profiletest.FileBytes(t, filepath.Join(testdata, file))
	pd, err := DecodePprof(payload)
	require.NoError(t, err)
	return pd
}

// batchOf gathers messages.
func batchOf(options Options, messages ...pprofile.Profiles) *Batch {
	b := &Batch{}
	b.Reset(options)
	for _, pd := range messages {
		b.Add(pd)
	}
	return b
}

// whole returns the only part of a batch without a limit.
func whole(t testing.TB, b *Batch) pprofile.Profiles {
	t.Helper()
	parts := parts(b)
	require.Len(t, parts, 1)
	return parts[0].Profiles
}

func parts(b *Batch) []Part {
	var parts []Part
	for part := range b.Parts() {
		parts = append(parts, part)
	}
	return parts
}

// encodedSizes returns the size with attributes' texts in place, as the gRPC exporter writes them, and with
// references, as pdata marshals them.
func encodedSizes(t testing.TB, pd pprofile.Profiles) (inPlace, referenced int) {
	t.Helper()
	inPlace = sizer.ProfilesSize(pd)
	return inPlace, len(profiletest.Marshal(t, pd))
}

// slack is by how much Part.Bytes may be too high for the texts of resources and scopes.
func slack(pd pprofile.Profiles) (n int) {
	count := func(m pcommon.Map) {
		n += 4
		everyStringOf(m, func(string) bool { n += 5; return true })
	}
	for _, rp := range pd.ResourceProfiles().All() {
		count(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			count(sp.Scope().Attributes())
		}
	}
	return n
}

// requireMerged requires that the parts together resolve to the messages.
func requireMerged(t testing.TB, parts []Part, want ...pprofile.Profiles) {
	t.Helper()
	require.NoError(t, profiletest.EqualAll(want, messagesOf(parts), profiletest.MergeProfiles()))
}

func messagesOf(parts []Part) (all []pprofile.Profiles) {
	for _, part := range parts {
		all = append(all, part.Profiles)
	}
	return all
}
