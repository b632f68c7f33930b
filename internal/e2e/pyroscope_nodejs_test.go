// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestPyroscopeNodeJS installs two versions of Pyroscope's SDK for Node.js from npm, runs a busy application with each
// against the built binary, and expects functions of that application in conformant profiles of CPU and wall clock time and
// of memory. It needs npm and a registry, hence it runs only where `make e2e-pyroscope` asks for it.
func TestPyroscopeNodeJS(t *testing.T) {
	wanted := os.Getenv("E2E_PYROSCOPE")
	if wanted == "" {
		t.Skip("`make e2e-pyroscope` runs this")
	}
	app := t.TempDir()
	require.NoError(t, os.CopyFS(app, os.DirFS(filepath.Join("testdata", "pyroscope-nodejs"))))
	out, err := run(t, app, nil, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	if err != nil && wanted == "if-possible" {
		t.Skipf("SKIPPED: Pyroscope's SDK cannot be installed, which takes npm, node and a registry: %v\n%s", err, out)
	}
	require.NoError(t, err, out)
	c := startQuickstart(t)
	for _, sdk := range []string{"pyroscope-0.6", "pyroscope-0.4"} {
		printed, err := run(t, app, []string{"SDK=" + sdk, "COLLECTOR=http://" + c.endpoint}, "node", "app.js")
		require.NoError(t, err, printed)
	}
	c.Terminate(t)
	byService := c.output(t)
	for _, sdk := range []string{"pyroscope-0.6", "pyroscope-0.4"} {
		t.Run(sdk, func(t *testing.T) {
			functions := map[string]string{}
			for _, pd := range byService["shop."+sdk] {
				require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
				region, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("region")
				require.Equal(t, "eu", region.Str())
				addFunctions(functions, pd)
			}
			// A name is the file, the function and its line.
			require.Regexp(t, `:checksumOfTheCart\b`, functions["wall"])
			require.Regexp(t, `:fillTheShelves\b`, functions["memory"])
			require.Len(t, functions, 2)
		})
	}
}

// addFunctions adds the names of all functions, a line each, by profile name.
func addFunctions(to map[string]string, pd pprofile.Profiles) {
	dict := pd.Dictionary()
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		name, _ := sp.Scope().Attributes().Get("pprof.scope.profile_name")
		for _, function := range dict.FunctionTable().All() {
			to[name.Str()] += dict.StringTable().At(int(function.NameStrindex())) + "\n"
		}
	}
}
