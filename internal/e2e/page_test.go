// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestPage pushes captured, hostile and large profiles to the built binary, and drives the `pprof` exporter's page in
// Chromium: testdata/page/drive.js is the reader. Its screenshots go to bin/page. It needs Chromium, npm and a registry,
// hence it runs only where `make e2e-page` asks for it.
func TestPage(t *testing.T) {
	wanted := os.Getenv("E2E_PAGE")
	if wanted == "" {
		t.Skip("`make e2e-page` runs this")
	}
	browser, err := findBrowser()
	if err != nil && wanted == "if-possible" {
		t.Skipf("SKIPPED: the page is driven in Chromium: %v", err)
	}
	require.NoError(t, err)
	driver := t.TempDir()
	require.NoError(t, os.CopyFS(driver, os.DirFS(filepath.Join("testdata", "page"))))
	out, err := run(t, driver, nil, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	if err != nil && wanted == "if-possible" {
		t.Skipf("SKIPPED: playwright-core cannot be installed, which takes npm, node and a registry: %v\n%s", err, out)
	}
	require.NoError(t, err, out)

	endpoint, address := freeAddress(t), freeAddress(t)
	c := launchWith(t, endpoint, t.TempDir(), "config/quickstart.yaml", nil,
		"PPROF_ENDPOINT="+endpoint, "PAGE_ENDPOINT="+address, "PROFILES_OUT="+t.TempDir())
	pushed := pushForPage(t, c)
	pushStalls(t, c)
	waitForServices(t, address, 6)

	results, err := filepath.Abs(filepath.Join(repository, "bin", "page"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(results))
	expected := filepath.Join(driver, "expect.json")
	data, err := json.Marshal(pushed.expected())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(expected, data, 0o600))
	format, err := filepath.Abs(filepath.Join(repository, "exporter", "pprofexporter", "page", "static", "format.js"))
	require.NoError(t, err)
	printed, err := run(t, driver, []string{"PAGE=http://" + address + "/", "CHROMIUM=" + browser, "OUT=" + results,
		"EXPECT=" + expected, "FORMAT=" + format}, "node", "drive.js")
	t.Log(printed)
	require.NoError(t, err, "what the browser showed is in %s", results)

	requireDownloads(t, results, pushed)
	c.Terminate(t)
}

func findBrowser() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	var firstErr error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return "", firstErr
}

// pageProfiles are the profiles that the page is driven with.
type pageProfiles struct {
	// eu and us are of one service, in two regions.
	eu, us *profile.Profile
	large  []string
}

func pushForPage(t *testing.T, c *collector) pageProfiles {
	t.Helper()
	captured := capturedPayloads(t)
	var pushed pageProfiles
	parse := func(name string) *profile.Profile {
		p, err := profile.ParseData(captured[name])
		require.NoError(t, err)
		return p
	}
	pushed.eu, pushed.us = parse("go-build-merged-cpu-large.pb.gz"), parse("go-cpu-labels.pb.gz")
	for region, p := range map[string]*profile.Profile{"eu": pushed.eu, "us": pushed.us} {
		pushProfile(t, c, url.Values{"service.name": {"shop"}, "attr.region": {region}}, p)
	}
	pushProfile(t, c, url.Values{"service.name": {"other-shop"}}, pushed.us)
	pushProfile(t, c, url.Values{"service.name": {"hostile"}}, hostileProfile())
	for _, nodes := range []int{20_000, 100_000} {
		name := fmt.Sprintf("nodes-%d", nodes)
		pushProfile(t, c, url.Values{"service.name": {name}}, treeProfile(nodes))
		pushed.large = append(pushed.large, name)
	}
	return pushed
}

func pushProfile(t *testing.T, c *collector, query url.Values, p *profile.Profile) {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, p.Write(&body))
	response, err := client.Post("http://"+c.endpoint+"/v1/pprof?"+query.Encode(), "application/octet-stream", &body)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, response.StatusCode, "%s", answer)
}

// pushStalls pushes an execution trace of three seconds, in each of which several goroutines wait 30 ms for a lock.
func pushStalls(t *testing.T, c *collector) {
	t.Helper()
	var recording bytes.Buffer
	var lock sync.Mutex
	var running sync.WaitGroup
	require.NoError(t, trace.Start(&recording))
	for range 3 {
		lock.Lock()
		for range 4 {
			running.Go(func() {
				lock.Lock()
				defer lock.Unlock()
			})
		}
		time.Sleep(30 * time.Millisecond)
		lock.Unlock()
		running.Wait()
		time.Sleep(970 * time.Millisecond)
	}
	trace.Stop()
	response, err := client.Post("http://"+c.endpoint+"/v1/profiles?service.name=stalls", "application/octet-stream", &recording)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, "%s", answer)
}

// waitForServices returns when the exporter, which has a queue, has stored so many services.
func waitForServices(t *testing.T, address string, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := client.Get("http://" + address + "/api/services")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var list struct{ Services []struct{ Service string } }
		return json.NewDecoder(response.Body).Decode(&list) == nil && len(list.Services) >= want
	}, startTimeout, 100*time.Millisecond)
}

// newCPUProfile returns an empty profile of the CPU, as of now.
func newCPUProfile() *profile.Profile {
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000,
		TimeNanos: time.Now().UnixNano(), DurationNanos: int64(10 * time.Second),
	}
}

func addFunction(p *profile.Profile, name string) *profile.Location {
	id := uint64(len(p.Function) + 1)
	f := &profile.Function{ID: id, Name: name, SystemName: name, Filename: "/src/f.go", StartLine: 1}
	l := &profile.Location{ID: id, Address: 0x1000 + id, Line: []profile.Line{{Function: f, Line: 7}}}
	p.Function, p.Location = append(p.Function, f), append(p.Location, l)
	return l
}

// hostileProfile returns functions whose names are what a page must never take for anything but text.
func hostileProfile() *profile.Profile {
	p := newCPUProfile()
	root := addFunction(p, "main.main")
	for i, name := range []string{
		`<img src=x onerror="owned=1">`, `<script>owned=1</script>`, `"></div><h1>owned</h1>`, "a\x00b\nc\x1b[31m\u202egnp.exe",
		strings.Repeat("N", 1<<20), `javascript:owned=1`, "__proto__", "constructor", "${owned=1}", "'; owned=1; '",
	} {
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{addFunction(p, name), root},
			Value: []int64{1, int64(i+1) * 1e9}, Label: map[string][]string{"<b>key</b>": {"<i>value</i>" + fmt.Sprint(i)}}})
	}
	return p
}

// treeProfile returns a profile whose flame graph has so many nodes, most of them small.
func treeProfile(nodes int) *profile.Profile {
	p := newCPUProfile()
	packages := []string{"net/http", "encoding/json", "example.com/shop/cart", "runtime", "database/sql", "crypto/tls", "strings"}
	for i := range 3000 {
		addFunction(p, fmt.Sprintf("%s.(*T%d).Method%d", packages[i%len(packages)], i/7, i))
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same tree at every run
	type node struct {
		location *profile.Location
		parent   int
		depth    int
		children map[*profile.Location]bool
	}
	tree := []node{{parent: -1, children: map[*profile.Location]bool{}}}
	for len(tree) <= nodes {
		parent := random.IntN(len(tree))
		if random.IntN(10) < 6 {
			parent = len(tree) - 1
		}
		location := p.Location[int(random.Float64()*random.Float64()*float64(len(p.Location)))]
		if tree[parent].depth > 40 || tree[parent].children[location] {
			continue
		}
		tree[parent].children[location] = true
		tree = append(tree, node{location: location, parent: parent, depth: tree[parent].depth + 1, children: map[*profile.Location]bool{}})
	}
	for i := 1; i < len(tree); i++ {
		var stack []*profile.Location
		for n := i; n > 0; n = tree[n].parent {
			stack = append(stack, tree[n].location)
		}
		small := random.Float64()
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{1, 1 + int64(small*small*small*5e7)}})
	}
	return p
}

// pageExpectation is what drive.js expects of the page: values of the CPU in nanoseconds.
type pageExpectation struct {
	Service string           `json:"service"`
	Other   string           `json:"other"`
	Totals  map[string]int64 `json:"totals"`
	Search  struct {
		Query string `json:"query"`
		Value int64  `json:"value"`
	} `json:"search"`
	// Functions is the number of functions of the region eu, TopSelf the largest self value among them.
	Functions int      `json:"functions"`
	TopSelf   int64    `json:"topSelf"`
	Large     []string `json:"large"`
}

func (p pageProfiles) expected() pageExpectation {
	e := pageExpectation{Service: "shop", Other: "other-shop", Totals: map[string]int64{}, Large: p.large}
	e.Search.Query = "mallocgc"
	self, functions := map[string]int64{}, map[string]bool{}
	for region, side := range map[string]*profile.Profile{"eu": p.eu, "us": p.us} {
		for _, s := range side.Sample {
			value := s.Value[1]
			e.Totals[region] += value
			e.Totals["all"] += value
			if region != "eu" {
				continue
			}
			found := false
			for i, l := range s.Location {
				for k, line := range l.Line {
					key := line.Function.Name + "\x00" + line.Function.Filename
					functions[key] = true
					if i == 0 && k == 0 {
						self[key] += value
					}
					found = found || strings.Contains(strings.ToLower(line.Function.Name), e.Search.Query)
				}
			}
			if found {
				e.Search.Value += value
			}
		}
	}
	for _, value := range self {
		e.TopSelf = max(e.TopSelf, value)
	}
	e.Functions = len(functions)
	return e
}

// requireDownloads compares the files that the browser has saved with what was pushed.
func requireDownloads(t *testing.T, folder string, pushed pageProfiles) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "download.pb.gz"))
	require.NoError(t, err)
	got, err := profile.ParseData(data)
	require.NoError(t, err)
	require.NoError(t, profiletest.EqualPprof(pushed.eu, got))

	collapsed, err := os.ReadFile(filepath.Join(folder, "download.collapsed"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^\S.*;\S.* \d+$`, string(collapsed))
	speedscope, err := os.ReadFile(filepath.Join(folder, "download.speedscope.json"))
	require.NoError(t, err)
	var document struct {
		Schema   string `json:"$schema"`
		Profiles []any  `json:"profiles"`
	}
	require.NoError(t, json.Unmarshal(speedscope, &document))
	require.Contains(t, document.Schema, "speedscope")
	require.NotEmpty(t, document.Profiles)
}
