// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEndsOfPaths(t *testing.T) {
	for _, tc := range []struct {
		a, b   string
		common int
	}{
		{"/a/b/c.go", "/x/b/c.go", 2}, {"c.go", "c.go", 1}, {"/c.go", "c.go", 1}, {"a.go", "b.go", 0},
		{`C:\a\b.cs`, `D:\a\b.cs`, 2}, {"", "a", 0},
	} {
		assert.Equal(t, tc.common, commonElements(tc.a, tc.b), tc)
	}
	for n, want := range []string{"", "c.go", "b/c.go", "a/b/c.go", "/a/b/c.go", "/a/b/c.go"} {
		assert.Equal(t, want, lastElements("/a/b/c.go", n))
	}
}
