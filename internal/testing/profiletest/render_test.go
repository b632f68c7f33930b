// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestRender(t *testing.T) {
	Golden(t, "testdata/sound.golden", Render(sound().Build()))
}

func TestRenderNamesBrokenIndices(t *testing.T) {
	pd := New().Sample(Sample{Values: []int64{1}, Stack: []Location{{}}}).Break(func(pd pprofile.Profiles) {
		d := pd.Dictionary()
		d.LocationTable().At(0).SetMappingIndex(-3)
		d.LocationTable().At(0).AttributeIndices().Append(6)
		d.LocationTable().At(0).Lines().AppendEmpty().SetFunctionIndex(7)
		d.StackTable().At(1).LocationIndices().Append(44)
		SampleAt(pd, 0).SetLinkIndex(5)
		ProfileAt(pd, 0).SampleType().SetTypeStrindex(8)
		ProfileAt(pd, 0).Samples().AppendEmpty().SetStackIndex(9)
	}).Build()
	Golden(t, "testdata/broken.golden", Render(pd))
}

// Texts that look like something else are quoted, so that two values never have the same text.
func TestRenderDistinguishesValues(t *testing.T) {
	values := []any{
		nil, "null", true, "true", int64(1), 1.0, 1e21, "1", "", []byte{1}, "0x01", []any{}, []any{nil}, []any{""},
		map[string]any{}, map[string]any{"": nil}, map[string]any{"a": "b, c=\"d\""}, map[string]any{"a": "b", "c": "d"},
	}
	texts := map[string]any{}
	for _, v := range values {
		text := Render(New().Sample(Value(1).With(Attr("k", v))).Build())
		if other, taken := texts[text]; taken {
			t.Errorf("%#v and %#v have one text:\n%s", v, other, text)
		}
		texts[text] = v
	}
}

// standIn replaces a test that must fail, and records why it did. It goes on.
type standIn struct {
	testing.TB
	failure string
}

func (s *standIn) Helper() {}

func (s *standIn) Errorf(format string, args ...any) { s.failure += fmt.Sprintf(format, args...) }

func (s *standIn) Fatalf(format string, args ...any) { s.Errorf(format, args...) }

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "a.golden")
	missing := &standIn{TB: t}
	Golden(missing, path, "one\ntwo\n")
	assert.Contains(t, missing.failure, "read the golden file")

	before := flag.Lookup("update").Value.String()
	require.NoError(t, flag.Set("update", "true"))
	Golden(t, path, "one\ntwo\n")
	require.NoError(t, flag.Set("update", "false"))
	defer func() { require.NoError(t, flag.Set("update", before)) }()

	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(written))
	Golden(t, path, "one\ntwo\n")
	differs := &standIn{TB: t}
	Golden(differs, path, "one\n2\n")
	assert.Contains(t, differs.failure, "differs")
}
