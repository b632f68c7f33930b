// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestPage pushes captured, hostile and large profiles to the built binary, and drives the `profile_store` exporter's
// page in Chromium by testdata/page/drive.js. Screenshots go to bin/page.
func TestPage(t *testing.T) {
	t.Parallel()
	ifPossible := collectortest.WantedBy(t, "E2E_PAGE")
	browser, err := findBrowser()
	if err != nil && ifPossible {
		t.Skipf("SKIPPED: the page is driven in Chromium: %v", err)
	}
	require.NoError(t, err)
	driver := installNPM(t, "E2E_PAGE", "page")
	var failed string
	t.Cleanup(func() { // below the collector's log
		if failed != "" {
			t.Logf("what failed first: %.2000s", failed)
		}
	})
	c := launch(t, quickstartConfig)
	pushed := pushForPage(t, c)
	pushStalls(t, c)
	pushVersions(t, c)
	pushProfile(t, c, url.Values{"service.name": {"deep"}}, deepProfile())
	waitForServices(t, c.graphs, 10)

	results, err := filepath.Abs(filepath.Join(repository, "bin", "page"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(results))
	expected := filepath.Join(driver, "expect.json")
	data, err := json.Marshal(pushed.expected())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(expected, data, 0o600))
	format, err := filepath.Abs(filepath.Join(repository, "exporter", "profilestoreexporter", "page", "static",
		"format.js"))
	require.NoError(t, err)
	printed, err := run(driver, []string{"PAGE=http://" + c.graphs + "/", "CHROMIUM=" + browser, "OUT=" + results,
		"EXPECT=" + expected, "FORMAT=" + format}, "node", "drive.js")
	t.Log(printed)
	_, failed, _ = strings.Cut("\n"+printed, "\nFAIL ")
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

// pageProfiles are the profiles that the test of the page pushes.
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
		return profiletest.ParsePprof(t, captured[name])
	}
	pushed.eu, pushed.us = parse("go-build-merged-cpu-large.pb.gz"), parse("go-cpu-labels.pb.gz")
	for region, p := range map[string]*profile.Profile{"eu": pushed.eu, "us": pushed.us} {
		pushProfile(t, c, url.Values{"service.name": {"shop"}, "attr.region": {region}}, p)
	}
	pushProfile(t, c, url.Values{"service.name": {"other-shop"}}, pushed.us)
	pushProfile(t, c, url.Values{"service.name": {"idle"}}, newCPUProfile())
	hostile := hostileProfile()
	pushProfile(t, c, url.Values{"service.name": {"hostile"}}, hostile)
	hostile.SampleType[1] = &profile.ValueType{Type: "__proto__", Unit: "constructor"}
	pushProfile(t, c, url.Values{"service.name": {"hostile-unit"}}, hostile)
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
	requirePost(t, "http://"+c.endpoint+"/v1/pprof?"+query.Encode(), "application/octet-stream", body.Bytes())
}

// pushVersions pushes a profile for each of the last 20 minutes of a service whose version 1.1, which has run for 8
// minutes, takes 0.55 cores, since main.discounted takes 0.35 of them; 1.0 took 0.3, of which main.discounted took 0.1.
func pushVersions(t *testing.T, c *collector) {
	t.Helper()
	now := time.Now()
	for minute := 20; minute > 0; minute-- {
		version, discounted := "1.0", 0.1
		if minute <= 8 {
			version, discounted = "1.1", 0.35
		}
		p := newCPUProfile()
		p.TimeNanos, p.DurationNanos = now.Add(-time.Duration(minute)*time.Minute).UnixNano(), int64(time.Minute)
		root := addFunction(p, "main.main")
		for name, cores := range map[string]float64{"main.render": 0.2, "main.discounted": discounted} {
			p.Sample = append(p.Sample,
				&profile.Sample{Location: []*profile.Location{addFunction(p, name), root},
					Value: []int64{int64(cores * 6000), int64(cores * 60e9)}})
		}
		pushProfile(t, c,
			url.Values{"service.name": {"deployed"}, "service.version": {version},
				"attr.vcs.repository.url.full": {"https://example.com/shop.git"}, "attr.vcs.ref.head.revision": {"0123abc"}}, p)
	}
}

// deepProfile returns a recursion of 3,000 frames, two functions by turns.
func deepProfile() *profile.Profile {
	p := newCPUProfile()
	root, leaf := addFunction(p, "main.main"), addFunction(p, "tree.leaf")
	by := []*profile.Location{addFunction(p, "tree.visit"), addFunction(p, "tree.walk")}
	stack := []*profile.Location{leaf}
	for i := range 3000 {
		stack = append(stack, by[i%2])
	}
	p.Sample = []*profile.Sample{{Location: append(stack, root), Value: []int64{1, 1e9}}}
	return p
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
	requirePost(t, "http://"+c.endpoint+"/v1/profiles?service.name=stalls", "application/octet-stream", recording.Bytes())
}

// waitForServices waits until the page has so many services. The exporter has a queue, so they take a moment.
func waitForServices(t *testing.T, address string, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		body, err := get("http://" + address + "/api/services")
		var list struct{ Services []struct{ Service string } }
		return err == nil && json.Unmarshal([]byte(body), &list) == nil && len(list.Services) >= want
	}, startTimeout, 100*time.Millisecond)
}

// newCPUProfile returns an empty CPU profile that starts now.
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

// hostileProfile returns functions with names that a page must show as text and never interpret.
func hostileProfile() *profile.Profile {
	p := newCPUProfile()
	root := addFunction(p, "main.main")
	for i, name := range []string{
		`<img src=x onerror="owned=1">`, `<script>owned=1</script>`, `"></div><h1>owned</h1>`,
		"a\x00b\nc\x1b[31m\u202egnp.exe",
		strings.Repeat("N", 1<<20), `javascript:owned=1`, "__proto__", "constructor", "${owned=1}", "'; owned=1; '",
	} {
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{addFunction(p, name), root},
			Value: []int64{1, int64(i+1) * 1e9}, Label: map[string][]string{"<b>key</b>": {"<i>value</i>" + fmt.Sprint(i)}}})
	}
	return p
}

// treeProfile returns a profile whose flame graph has this many nodes, most of them small.
func treeProfile(nodes int) *profile.Profile {
	p := newCPUProfile()
	packages := []string{"net/http", "encoding/json", "example.com/shop/cart", "runtime", "database/sql", "crypto/tls",
		"strings"}
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
		tree = append(tree,
			node{location: location, parent: parent, depth: tree[parent].depth + 1, children: map[*profile.Location]bool{}})
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

// pageExpectation is what drive.js expects on the page. Values are nanoseconds of CPU time.
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

// requireDownloads compares the files that the browser saved with the profiles that were pushed.
func requireDownloads(t *testing.T, folder string, pushed pageProfiles) {
	t.Helper()
	data := profiletest.FileBytes(t, filepath.Join(folder, "download.pb.gz"))
	got := profiletest.ParsePprof(t, data)
	require.NoError(t, profiletest.EqualPprof(pushed.eu, got))

	collapsed := profiletest.FileBytes(t, filepath.Join(folder, "download.collapsed"))
	require.Regexp(t, `(?m)^\S.*;\S.* \d+$`, string(collapsed))
	speedscope := profiletest.FileBytes(t, filepath.Join(folder, "download.speedscope.json"))
	var document struct {
		Schema   string `json:"$schema"`
		Profiles []any  `json:"profiles"`
	}
	require.NoError(t, json.Unmarshal(speedscope, &document))
	require.Contains(t, document.Schema, "speedscope")
	require.NotEmpty(t, document.Profiles)
}
