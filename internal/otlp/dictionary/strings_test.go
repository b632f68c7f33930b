// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCutUTF8(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"ä", 1, ""}, {"aä", 2, "a"}, {"a€b", 4, "a€"},
		{"a€b", 3, "a"},
		{"a😀", 4, "a"}, {"a😀b", 5, "a😀"},
		{"ok\x80\x80\x80\x80\x80\x80", 6, "ok\x80\x80\x80\x80"}, {"a\xe2\x80\x80\x80", 4, "a\xe2\x80\x80"},
		{"a\xf0\x9f b", 3, "a\xf0\x9f"},
	} {
		assert.Equal(t, c.want, CutUTF8(c.text, c.limit), "%q at %d", c.text, c.limit)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.SampledFrom([]byte("a\x80\xbf\xc3\xe2\x82\xac\xf0\x9f\xff")), 0, 12).Draw(t,
			"text"))
		limit := rapid.IntRange(0, 12).Draw(t, "limit")
		got := CutUTF8(text, limit)
		require.Equal(t, text[:len(got)], got)
		require.LessOrEqual(t, len(got), limit)
		// Cut characters and bytes one by one until the next does not fit.
		want := 0
		for want < len(text) {
			_, size := utf8.DecodeRuneInString(text[want:])
			if want+size > limit {
				break
			}
			want += size
		}
		require.Len(t, got, want)
	})
}

// A snapshot keeps what the dictionary has while that grows.
func TestSnapshot(t *testing.T) {
	d := New()
	a := d.Strings.Intern("a")
	s := d.Snapshot()
	for i := range 1000 {
		d.Strings.Intern(strconv.Itoa(i))
	}
	require.Equal(t, 2, s.Strings.Len())
	found, ok := s.Strings.Lookup("a")
	require.True(t, ok)
	require.Equal(t, a, found)
	_, ok = s.Strings.Lookup("7")
	require.False(t, ok)
	_, ok = s.Strings.Lookup("")
	require.True(t, ok)
}
