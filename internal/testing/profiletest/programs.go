// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"os"
	"testing"
)

// SkipOutsideCI skips a test that needs a program which is missing. CI has the program, so that there it is a failure.
func SkipOutsideCI(t testing.TB, missing string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}
