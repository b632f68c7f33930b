// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestPprofGeneratorSurvivesWriteAndParse(t *testing.T) {
	generator := profileGenerator(generatorOptions{NegativeTimes: true, NegativeLines: true, InvalidUTF8: true})
	rapid.Check(t, func(t *rapid.T) {
		p := generator.Draw(t, "profile")
		require.NoError(t, p.CheckValid())
		var wire bytes.Buffer
		require.NoError(t, p.WriteUncompressed(&wire))
		read, err := profile.ParseData(wire.Bytes())
		require.NoError(t, err)
		require.NoError(t, profiletest.EqualPprof(p, read, profiletest.StrictZero()))
	})
}

func TestPprofLayoutIsReadAsWhatItLaysOut(t *testing.T) {
	generator := profileGenerator(generatorOptions{NegativeTimes: true, NegativeLines: true, InvalidUTF8: true})
	rapid.Check(t, func(t *rapid.T) {
		p := generator.Draw(t, "profile")
		for _, s := range p.Sample {
			if rapid.Bool().Draw(t, "what profile.Write cannot write") {
				s.Label = map[string][]string{"empty": {"", "x", ""}}
				s.NumLabel = map[string][]int64{"zero": {0, 5, 0}}
				s.NumUnit = nil
			}
		}
		read, err := profile.ParseData(layOut(t, p))
		require.NoError(t, err)
		require.NoError(t, profiletest.EqualPprof(p, read, profiletest.StrictZero()))
	})
}

// The property tests are only as good as the cases that the generator reaches.
func TestPprofGeneratorReachesWhatIsHard(t *testing.T) {
	plain := profileGenerator(generatorOptions{})
	seen := map[string]bool{}
	note := func(what string, is bool) { seen[what] = seen[what] || is }
	for i := range 1000 {
		p := plain.Example(i)
		noteProfile(p, note)
		for _, s := range p.Sample {
			noteSample(s, note)
		}
		noteTables(p, note)
		require.GreaterOrEqual(t, p.TimeNanos, int64(0))
		require.GreaterOrEqual(t, p.DurationNanos, int64(0))
		for _, f := range p.Function {
			require.GreaterOrEqual(t, f.StartLine, int64(0))
			require.True(t, utf8.ValidString(f.Name))
		}
	}
	for _, what := range []string{
		"no sample types", "six sample types", "repeated sample type", "default of no sample type", "default first",
		"default in the middle", "sample without locations", "all-zero sample", "identity twice", "inlined lines",
		"inlined lines in falling order", "line of an empty function", "location without mapping", "folded",
		"locations that differ in folded", "mappings that differ in build id", "functions that concatenate alike",
		"mapping that starts at or past its end", "several texts", "several numbers", "text and number",
		"zero with unit", "differing units", "lowest number", "highest number", "link", "padded link", "half a link",
		"zero link", "comments", "empty comment", "sparse ids", "go build id", "equal locations",
	} {
		assert.True(t, seen[what], "never generated: %s", what)
	}
}
