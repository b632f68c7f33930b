// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// shareOf writes profiles in which a function runs in a number of 1000 samples, below another one.
func shareOf(t *testing.T, samples int64) string {
	t.Helper()
	b := profiletest.New().Resource("service.name", "shop")
	for range 4 {
		b.Profile("cpu", "nanoseconds").Time(1, 10_000_000_000).Period(10_000_000, "cpu", "nanoseconds").Sample(
			profiletest.Value(samples*10_000_000/4, "example.com/shop/cart.Add", "net/http.serve"),
			profiletest.Value((1000-samples)*10_000_000/4, "runtime.idle"),
		)
	}
	wire := profiletest.Marshal(t, b.Build())
	return write(t, fmt.Sprint(samples, ".otlp"), string(wire))
}

// What a pprof names in drop_frames counts for its callers, as in top.
func TestGateWithoutDroppedFrames(t *testing.T) {
	file := func(allocated int64) string {
		b := profiletest.New().Resource("service.name", "shop").Profile("inuse_space", "bytes").Time(1, 0).Attributes(
			profiletest.Attr("pprof.profile.drop_frames", "malloc|tcmalloc::.*")).Sample(
			profiletest.Value(allocated, "tcmalloc::Sampler", "malloc", "grow", "main"), profiletest.Value(600, "main"))
		wire := profiletest.Marshal(t, b.Build())
		return write(t, fmt.Sprint(allocated, ".otlp"), string(wire))
	}
	r := run(t, nil, "diff", "--fail-if=self(grow)>50%", file(400), file(1400))
	assert.Equal(t, exitFound, r.code, r.log)
	assert.Contains(t, r.out, "failed     self(grow)>50%: 40.00 % → 70.00 %")
	assert.NotContains(t, r.out, "malloc")
}

func TestGate(t *testing.T) {
	base, same, little, more := shareOf(t, 100), shareOf(t, 104), shareOf(t, 112), shareOf(t, 200)
	for _, c := range []struct {
		condition, file string
		code            int
		says            string
	}{
		{"self(example.com/shop/...)>+5%", more, exitFound, "failed"},
		{"self(example.com/shop/…)>+5%", more, exitFound, "failed"},
		{"self(example.com/shop/cart)>+5%", more, exitFound, "failed"},
		{"self(example.com/shop/cart.Add)>+5pp", more, exitFound,
			"10.00 % → 20.00 % (+10.00 pp, p = <0.0001, 1000 and 1000 samples)"},
		{"self(example.com/shop/cart.Add)>+15pp", more, exitOK, "ok"},
		{"self(example.com/shop/cart.Add)>+5%", same, exitOK, "ok"},
		{"self(example.com/shop/cart.Add)>+5%", little, exitOK, "by chance"},
		{"self(net/http)>+5%", more, exitOK, "ok"},
		{"total(net/http)>+5%", more, exitFound, "failed"},
		{"total(net/http)>15%", more, exitFound, "failed"},
		{"total(net/http)>25%", more, exitOK, "ok"},
	} {
		r := run(t, nil, "diff", "--fail-if", c.condition, base, c.file)
		assert.Equal(t, c.code, r.code, "%s: %s%s", c.condition, r.out, r.log)
		assert.Contains(t, r.out, c.says, c.condition)
	}
	assert.Equal(t, exitFound, run(t, nil, "diff", "--fail-if=self(example.com/shop/cart)>+5%", "--alpha", "1", base,
		little).code)
	assert.Equal(t, exitFound,
		run(t, nil, "diff", base, more, "--fail-if=total(net/http)>90%", "--fail-if=self(runtime)>1%").code)
}

// TestGateLetsImprovementsPass has a function that takes less than before, whatever the condition on its growth.
func TestGateLetsImprovementsPass(t *testing.T) {
	more, less := shareOf(t, 500), shareOf(t, 200)
	for _, growth := range []string{"+5%", "+5pp", "+0%", "+0pp"} {
		r := run(t, nil, "diff", "--fail-if", "self(example.com/shop/cart)>"+growth, more, less)
		assert.Equal(t, exitOK, r.code, "%s: %s%s", growth, r.out, r.log)
		assert.Equal(t, exitFound, run(t, nil, "diff", "--fail-if", "self(example.com/shop/cart)>"+growth, less, more).code,
			growth)
	}
}

// TestGateIgnoresProfilesWithoutValues has recordings in which nothing happened: they tell nothing about how shares
// vary.
func TestGateIgnoresProfilesWithoutValues(t *testing.T) {
	empty := func(name string) string {
		b := profiletest.New().Resource("service.name", "shop")
		for range 100 {
			b.Profile("cpu", "nanoseconds").Time(1, 10_000_000_000).Period(10_000_000, "cpu", "nanoseconds").
				Sample(profiletest.Value(0, "runtime.idle"))
		}
		wire := profiletest.Marshal(t, b.Build())
		return write(t, name, string(wire))
	}
	base, varied := shareOf(t, 100), []string{shareOf(t, 90), shareOf(t, 160)}
	args := append([]string{"diff", "--fail-if", "self(example.com/shop/cart)>+5%", base}, varied...)
	want, got := run(t, nil, args...), run(t, nil, append(args, empty("a.otlp"), empty("b.otlp"))...)
	assert.Equal(t, want.out, got.out)
	assert.Equal(t, want.code, got.code)
}

// TestGateReadsURLs has a base and a file that are behind URLs.
func TestGateReadsURLs(t *testing.T) {
	base := shareOf(t, 100)
	files := map[string]string{"/debug/pprof/profile": base, "/more": shareOf(t, 200)}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := files[r.URL.Path]; ok {
			http.ServeFile(w, r, file)
			return
		}
		http.Error(w, "no such profile", http.StatusNotFound)
	}))
	defer site.Close()
	condition := "--fail-if=self(example.com/shop/...)>+5%"
	r := run(t, nil, "diff", condition, site.URL, site.URL+"/more")
	assert.Equal(t, exitFound, r.code, r.log)
	assert.Contains(t, r.out, "10.00 % → 20.00 %")
	assert.Equal(t, exitOK,
		run(t, nil, "diff", condition, site.URL+"/debug/pprof/profile?seconds=1", files["/debug/pprof/profile"]).code)
	address := strings.TrimPrefix(site.URL, "http://") // as pprof takes it
	assert.Equal(t, exitFound, run(t, nil, "diff", condition, address, address+"/more").code)
	files["/debug/pprof/profile"] = goCPU
	for _, source := range []string{address, site.URL} {
		assert.Equal(t, must(t, "top", "-nodecount=3", goCPU), must(t, "top", "-nodecount=3", source))
	}
	files["/debug/pprof/profile"] = base
	r = run(t, nil, "diff", condition, site.URL, site.URL+"/none")
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, "404 Not Found no such profile")
	site.Close()
	r = run(t, nil, "diff", condition, site.URL, files["/more"])
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.log, site.URL)
}

func TestGateFormats(t *testing.T) {
	base, more := shareOf(t, 100), shareOf(t, 200)
	r := run(t, nil, "diff", "--format=markdown", "--fail-if", "total(net/http)>+5pp", base, more)
	assert.Equal(t, exitFound, r.code)
	assert.Contains(t, r.out, "| failed | `total(net/http)>+5pp` | 10.00 % | 20.00 % | +10.00 pp | <0.0001 |")
	assert.Contains(t, r.out, "| `example.com/shop/cart.Add` | 10.00 % | 20.00 % | +10.00 pp | <0.0001 |")

	var report struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID    string
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	require.NoError(t,
		json.Unmarshal([]byte(run(t, nil, "diff", "--format=sarif", "--fail-if", "self(runtime)>+5%", base, more).out),
			&report))
	assert.Equal(t, "2.1.0", report.Version)
	require.Len(t, report.Runs, 1)
	assert.NotNil(t, report.Runs[0].Results, "an empty list, not null")
	assert.Empty(t, report.Runs[0].Results)
	r = run(t, nil, "diff", "--format=sarif", "--profile=process_cpu", "--fail-if", "total(...)>50%", goCPU, goCPU)
	assert.Equal(t, exitFound, r.code)
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	require.Len(t, report.Runs[0].Results, 1)
	assert.Contains(t, report.Runs[0].Results[0].Message.Text, "total(...)>50%")
	require.Len(t, report.Runs[0].Results[0].Locations, 1)
	assert.Contains(t, report.Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI, "/")
}

func TestGateRefuses(t *testing.T) {
	base := shareOf(t, 100)
	for says, args := range map[string][]string{
		"must look like self(pkg/...)>+5%": {"--fail-if=self(x)>5pp", base, base},
		"a file is missing":                {"--fail-if=self(x)>5%", base},
		"must be one of text, markdown":    {"--format=xml", base, base},
		"--alpha must be above 0":          {"--format=text", "--alpha=0", base, base},
		"unknown flag: --cum":              {"--format=text", "--cum", base, base},
		"choose by --profile and --type":   {"--format=text", base, goHeap},
		"in the profiles process_cpu":      {"--fail-if=self(example.com/shpo/...)>+5%", base, base},
		`is "cart"`:                        {"--fail-if=total(net/http)>+5%", "--fail-if=self(cart)>+0%", base, base},
		"no such file":                     {"--format=text", base, "/none"},
		"cpu/nanoseconds":                  {"--format=text", "--profile=memory", base, base},
	} {
		r := run(t, nil, append([]string{"diff"}, args...)...)
		assert.Equal(t, exitFailed, r.code, args)
		assert.Contains(t, r.log, says)
	}
}
