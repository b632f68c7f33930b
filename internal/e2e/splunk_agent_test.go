// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestSplunkAgent installs Splunk's agent for Node.js from npm, runs a busy application with it against the built
// binary, and expects functions of that application, linked to the spans that it printed, as conformant profiles.
// It needs npm and a registry, hence it runs only where `make e2e-splunk` asks for it.
func TestSplunkAgent(t *testing.T) {
	wanted := os.Getenv("E2E_SPLUNK")
	if wanted == "" {
		t.Skip("`make e2e-splunk` runs this")
	}
	app := t.TempDir()
	require.NoError(t, os.CopyFS(app, os.DirFS(filepath.Join("testdata", "splunk-agent"))))
	out, err := run(t, app, nil, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	if err != nil && wanted == "if-possible" {
		t.Skipf("SKIPPED: Splunk's agent cannot be installed, which takes npm, node and a registry: %v\n%s", err, out)
	}
	require.NoError(t, err, out)
	c, _ := startSplunk(t)
	printed, err := run(t, app, []string{"COLLECTOR=http://" + c.endpoint}, "node", "app.js")
	require.NoError(t, err, printed)
	c.Terminate(t)

	spans := map[string]bool{}
	for line := range strings.Lines(printed) {
		if span, found := strings.CutPrefix(strings.TrimSpace(line), "span "); found {
			spans[span] = true
		}
	}
	require.NotEmpty(t, spans, printed)
	found := agentFindings{spans: spans, linked: map[string]int{}, types: map[string]bool{}}
	for _, pd := range c.output(t)["busy-shop"] {
		require.NoError(t, profiletest.Check(pd))
		found.read(t, pd)
	}
	require.True(t, found.types["samples"])
	require.True(t, found.types["allocated_space"])
	require.Positive(t, found.linked["checksumOfTheCart"])
	require.Positive(t, found.linked["sortTheShelves"])
	t.Logf("%d spans; %d samples of one function and %d of another are linked to them",
		len(spans), found.linked["checksumOfTheCart"], found.linked["sortTheShelves"])
}

// run runs a command to its end, and gives what it printed.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// agentFindings is what stands in the profiles of the application.
type agentFindings struct {
	spans map[string]bool
	// linked counts the CPU samples that are linked to a span of the application, by the functions in their stacks.
	linked map[string]int
	types  map[string]bool
}

func (f *agentFindings) read(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	dict := pd.Dictionary()
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	for _, profile := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		typ := text(profile.SampleType().TypeStrindex())
		f.types[typ] = true
		for _, s := range profile.Samples().All() {
			link := dict.LinkTable().At(int(s.LinkIndex()))
			if typ != "samples" || !f.spans[link.TraceID().String()+"/"+link.SpanID().String()] {
				continue
			}
			functions := map[string]bool{}
			for _, l := range dict.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				for _, line := range dict.LocationTable().At(int(l)).Lines().All() {
					functions[text(dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())] = true
				}
			}
			for name := range functions {
				f.linked[name] += s.TimestampsUnixNano().Len()
			}
		}
	}
}
