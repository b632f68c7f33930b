// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// buildTarget builds the program to scrape and gives its path.
func buildTarget(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	build := exec.Command("go", "build", "-o", path, "./receiver/pprofreceiver/testdata/target")
	build.Dir = repository
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// runTarget runs it at an address until stop is called.
func runTarget(t *testing.T, path, address string) (stop func()) {
	t.Helper()
	_, stop = collectortest.StartProgram(t, exec.Command(path, address))
	return stop
}

// scraped is what the page of targets says of one kind of one target.
type scraped struct{ State, Outcome, Error string }

// page reads the page of targets: by service and kind.
func (c *collector) page(t *testing.T) map[string]scraped {
	t.Helper()
	response, err := client.Get("http://" + c.endpoint + "/targets?format=json")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var page struct {
		Jobs []struct {
			Targets []struct {
				Resource  map[string]any
				Endpoints []struct {
					Profile string
					scraped
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &page), "%s", body)
	found := map[string]scraped{}
	for _, job := range page.Jobs {
		for _, target := range job.Targets {
			for _, e := range target.Endpoints {
				found[fmt.Sprint(target.Resource["service.name"], " ", e.Profile)] = e.scraped
			}
		}
	}
	return found
}

// kindOf gives the kind of profile that a line of the output holds.
func kindOf(pd pprofile.Profiles) string {
	kind, _ := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get("pprof.scope.profile_name")
	return kind.Str()
}

// sumOf adds up the values of a sample type, and tells whether there is a profile of that type.
func sumOf(pd pprofile.Profiles, sampleType string) (sum int64, found bool) {
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			if pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) != sampleType {
				continue
			}
			found = true
			for _, s := range p.Samples().All() {
				for _, v := range s.Values().All() {
					sum += v
				}
			}
		}
	}
	return sum, found
}

// TestScrapeRealPrograms lets the collector find two programs, one of them in a file that appears and vanishes while it
// runs. Their profiles are named and conformant, totals become differences, and a restart makes no false ones.
func TestScrapeRealPrograms(t *testing.T) {
	t.Parallel()
	path, shop, till := buildTarget(t), freeAddress(t), freeAddress(t)
	stopShop := runTarget(t, path, shop)
	runTarget(t, path, till)

	page, out, found := freeAddress(t), t.TempDir(), filepath.Join(t.TempDir(), "found.yaml")
	c := launch(t, page, out, fmt.Sprintf(`yaml:
receivers:
  pprof:
    scrape:
      status: {endpoint: %q}
      configs:
        - job_name: shop
          scrape_interval: 2s
          static_configs: [{targets: [%q], labels: {deployment.environment.name: e2e}}]
          profiles: {custom: {nowhere: {path: /debug/pprof/nowhere}}}
        - job_name: files
          scrape_interval: 2s
          file_sd_configs: [{files: [%q], refresh_interval: 1s}]
exporters:
  file: {path: %q}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [file]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: "${env:METRICS_PORT}"}}}}]}}
`, page, shop, found, filepath.Join(out, "profiles.jsonl")))

	// await waits until there are n lines of a service and kind, and gives them.
	await := func(n int, service, kind string) []pprofile.Profiles {
		t.Helper()
		for deadline := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
			var lines []pprofile.Profiles
			for _, pd := range c.output(t)[service] {
				if kindOf(pd) == kind {
					lines = append(lines, pd)
				}
			}
			if len(lines) >= n {
				return lines
			}
			require.True(t, time.Now().Before(deadline), "%d lines of %s of %s instead of %d; the page: %v", len(lines), kind, service, n, c.page(t))
		}
	}

	require.Contains(t, functionsOf(await(1, "shop", "process_cpu")[0]), "main.Spin")
	require.Contains(t, functionsOf(await(1, "shop", "mutex")[0]), "main.Contend")
	await(1, "shop", "goroutine")
	memory := await(3, "shop", "memory")
	_, totals := sumOf(memory[0], "alloc_space")
	require.False(t, totals, "there is nothing yet to tell the first one from")
	_, inUse := sumOf(memory[0], "inuse_space")
	require.True(t, inUse)
	for _, pd := range memory[1:3] {
		allocated, _ := sumOf(pd, "alloc_space")
		require.Positive(t, allocated)
		require.Less(t, allocated, int64(1<<30), "what 2 s can allocate, not what was since the beginning of time")
	}
	require.Equal(t, "up", c.page(t)["shop memory"].State)
	require.Equal(t, "backed_off", c.page(t)["shop nowhere"].State)

	// A program that is found later is named by its label; it goes as it came.
	label := fmt.Sprintf("[{targets: [%q], labels: {service_name: till, service_version: v7}}]", till)
	require.NoError(t, os.WriteFile(found, []byte(label), 0o600))
	resource := await(1, "till", "memory")[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	require.Equal(t, "v7", resource["service.version"])
	require.NoError(t, os.WriteFile(found, []byte("[]"), 0o600))
	require.Eventually(t, func() bool { return len(c.page(t)) == 6 }, startTimeout, 100*time.Millisecond)

	// The restart of a program is noticed.
	stopShop()
	runTarget(t, path, shop)
	require.Eventually(t, func() bool {
		return strings.Contains(c.ownMetrics(t), "otelcol_receiver_pprof_scrape_restarts")
	}, startTimeout, 100*time.Millisecond)

	for _, lines := range c.output(t) {
		for _, pd := range lines {
			require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			for _, kind := range []string{"alloc_space", "alloc_objects", "contentions", "delay"} {
				sum, _ := sumOf(pd, kind)
				require.GreaterOrEqual(t, sum, int64(0))
			}
		}
	}
	shown := await(1, "shop", "memory")[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw()
	require.Equal(t, "e2e", shown["deployment.environment.name"])
	require.Equal(t, shop, shown["service.instance.id"])
	c.Terminate(t)
}

func functionsOf(pd pprofile.Profiles) []string {
	var names []string
	for _, function := range pd.Dictionary().FunctionTable().All() {
		names = append(names, pd.Dictionary().StringTable().At(int(function.NameStrindex())))
	}
	return names
}
