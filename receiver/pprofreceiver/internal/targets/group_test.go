// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDuplicates(t *testing.T) {
	const a, b = "__address__", "h:1"
	for name, tc := range map[string]struct {
		config  string
		targets [][]string
		want    []string
		dropped [NumDropReasons]int
	}{
		"the same twice": {"", [][]string{{a, b}, {a, b}}, []string{"memory http://h:1/debug/pprof/allocs"},
			[NumDropReasons]int{DropDuplicate: 1}},
		"other public labels": {
			"", [][]string{{a, b, "x", "1"}, {a, b, "x", "2"}},
			[]string{"memory http://h:1/debug/pprof/allocs", "memory http://h:1/debug/pprof/allocs"}, [NumDropReasons]int{},
		},
		"other meta labels": {"", [][]string{{a, b, "__meta_x", "1"}, {a, b, "__meta_x", "2"}},
			[]string{"memory http://h:1/debug/pprof/allocs"}, [NumDropReasons]int{DropDuplicate: 1}},
		"other paths of the same kind": {
			"", [][]string{{a, b, "__profile_path__", "/1"}, {a, b, "__profile_path__", "/2"}}, []string{"memory http://h:1/1"},
			[NumDropReasons]int{DropDuplicate: 1},
		},
		"two kinds at one URL": {
			"profiles: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}",
			[][]string{{a, b, "__profile_path__", "/p"}}, []string{"memory http://h:1/p"},
			[NumDropReasons]int{DropDuplicate: 1}},
		"relabelled away": {"relabel_configs: [{action: drop, source_labels: [x], regex: '1'}]",
			[][]string{{a, b, "x", "1"}, {a, "i:1"}}, []string{"memory http://i:1/debug/pprof/allocs"},
			[NumDropReasons]int{DropRelabelled: 1}},
		"some of all": {
			"relabel_configs: [{action: drop, source_labels: [x], regex: '1'}]",
			[][]string{{a, b, "x", "1"}, {a, ""}, {a, "i:1"}, {a, "i:1"}},
			[]string{"memory http://i:1/debug/pprof/allocs"},
			[NumDropReasons]int{DropRelabelled: 1, DropInvalid: 1, DropDuplicate: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := onlyMemory
			if strings.HasPrefix(tc.config, "profiles:") {
				config, _, _ = strings.Cut(onlyMemory, "profiles:")
			}
			targets, report := mustLoad(t, config+tc.config).group(found(tc.targets...), newMemo())
			assert.Equal(t, tc.want, urls(Update{Targets: targets}))
			assert.Equal(t, tc.dropped, report.Dropped)
			keys := map[string]bool{}
			for _, target := range targets {
				keys[target.Key] = true
			}
			assert.Len(t, keys, len(targets))
		})
	}
}

// oneKindEach are rules that keep only the kind that a discovered target names.
const oneKindEach = `
job_name: j
static_configs: [{targets: [replaced]}]
relabel_configs:
  - {source_labels: [__profile_name__, __meta_only], regex: "(memory|goroutine);(memory|goroutine)", target_label: __tmp, replacement: "$1=$2"}
  - {action: keep, source_labels: [__tmp], regex: "memory=memory|goroutine=goroutine"}
`

// Kinds of one address that are discovered separately become one target, in the order of the configuration.
func TestKindsAreGrouped(t *testing.T) {
	update := func(labels ...string) *Target {
		goroutine := append([]string{"__address__", "h:1", "__meta_only", "goroutine"}, labels...)
		targets, report := mustLoad(t, oneKindEach).
			group(found([]string{"__address__", "h:1", "__meta_only", "memory"}, goroutine), newMemo())
		require.Len(t, targets, 1)
		assert.Equal(t, [NumDropReasons]int{}, report.Dropped)
		return targets[0]
	}
	before := update()
	assert.Equal(t, []string{"memory http://h:1/debug/pprof/allocs", "goroutine http://h:1/debug/pprof/goroutine"},
		urls(Update{Targets: []*Target{before}}))

	// A change of one is noticed, although the target is shown with the labels of the other.
	assert.True(t, update().Equal(before))
	for _, label := range []string{"__profile_path__", "__scrape_timeout__"} {
		changed := update(label, "9s")
		assert.Equal(t, before.Discovered, changed.Discovered)
		assert.False(t, changed.Equal(before), label)
	}
	reversed, _ := mustLoad(t, oneKindEach).group(found(
		[]string{"__address__", "h:1", "__meta_only", "goroutine"}, []string{"__address__", "h:1", "__meta_only", "memory"},
	), newMemo())
	assert.Equal(t, urls(Update{Targets: []*Target{before}}), urls(Update{Targets: reversed}))
}

// The order of discovery's groups, which it keeps in a map, changes nothing.
func TestOrder(t *testing.T) {
	job := mustLoad(t, "job_name: j\nstatic_configs: [{targets: [replaced]}]")
	var groups []*targetgroup.Group
	for _, name := range []string{"b", "a", "c"} {
		groups = append(groups, &targetgroup.Group{Source: name, Targets: []model.LabelSet{
			{"__address__": model.LabelValue(name + ":1"), "__meta_x": model.LabelValue(name)},
			{"__address__": "same:1", "__meta_x": model.LabelValue(name)},
		}})
	}
	first, firstReport := job.group(groups, newMemo())
	slices.Reverse(groups)
	second, secondReport := job.group(groups, newMemo())
	require.Len(t, first, 4)
	require.Len(t, second, 4)
	for i := range first {
		assert.Equal(t, first[i].Key, second[i].Key)
		assert.True(t, first[i].Equal(second[i]))
	}
	assert.Equal(t, firstReport, secondReport)
	assert.Equal(t, []string{"a:1", "b:1", "c:1", "same:1"}, []string{
		first[0].Endpoints[0].URL.Host, first[1].Endpoints[0].URL.Host, first[2].Endpoints[0].URL.Host,
		first[3].Endpoints[0].URL.Host,
	})
}

// A key is carried over what does not change who is scraped, and changes with what does.
func TestKeys(t *testing.T) {
	key := func(config string, labels ...string) string {
		targets, report := mustLoad(t, onlyMemory+config).group(found(append([]string{"__address__", "h:1"}, labels...)),
			newMemo())
		require.Len(t, targets, 1, report.Examples)
		return targets[0].Key
	}
	plain := key("")
	assert.Len(t, plain, 32)
	assert.Equal(t, plain, key("", "__meta_x", "y"))
	assert.Equal(t, plain, key("", "__profile_path__", "/x"))
	assert.Equal(t, plain, key("scrape_timeout: 1s"))
	for _, other := range []string{key("", "x", "y"), key("", "__address__", "h:2"), key("scheme: https"),
		key("scrape_interval: 1m")} {
		assert.NotEqual(t, plain, other)
	}
}

func TestExamplesAreBounded(t *testing.T) {
	var many [][]string
	for range 500 {
		many = append(many, []string{"__address__", ""})
	}
	_, report := mustLoad(t, onlyMemory).group(found(many...), newMemo())
	assert.Equal(t, 500, report.Dropped[DropInvalid])
	assert.Len(t, report.Examples, maxExamples)
}

// Rules run once for a target that stays, and what is gone is forgotten.
func TestMemo(t *testing.T) {
	job, m := mustLoad(t, onlyMemory), newMemo()
	a, b := []string{"__address__", "a:1"}, []string{"__address__", "b:1"}
	first, _ := job.group(found(a, b), m)
	second, _ := job.group(found(b, a), m)
	require.Len(t, second, 2)
	assert.Same(t, first[0].Endpoints[0].URL, second[0].Endpoints[0].URL)
	assert.Same(t, first[1].Endpoints[0].URL, second[1].Endpoints[0].URL)
	job.group(found(a), m)
	assert.Len(t, m.last, 1)
	assert.Empty(t, m.next)
	third, _ := job.group(found(a, b), m)
	assert.Same(t, first[0].Endpoints[0].URL, third[0].Endpoints[0].URL)
	assert.NotSame(t, first[1].Endpoints[0].URL, third[1].Endpoints[0].URL)
}

func TestEqual(t *testing.T) {
	base := []string{"__address__", "h:1", "__meta_kubernetes_pod_container_name", "c"}
	only := func(config string, targets ...[]string) *Target {
		found, _ := mustLoad(t, onlyMemory+config).group(found(targets...), newMemo())
		require.Len(t, found, 1)
		return found[0]
	}
	before := only("", base)
	for name, tc := range map[string]struct {
		now  *Target
		same bool
	}{
		"nothing":   {only("", base), true},
		"a path":    {only("", append(base, "__profile_path__", "/x")), false},
		"a timeout": {only("", append(base, "__scrape_timeout__", "1s")), false},
		"metadata":  {only("", append(base, "__meta_x", "y")), false},
	} {
		assert.Equal(t, before.Key, tc.now.Key, name)
		assert.Equal(t, tc.same, tc.now.Equal(before), name)
	}

	// The identity of a target may change while it is the same one that discovery shows first.
	ambiguous :=
		"relabel_configs: [{target_label: __address__, replacement: 'h:2'}, {target_label: instance, replacement: x}]"
	alone := only(ambiguous, base)
	both := only(ambiguous, base, []string{"__address__", "h:3", "__meta_kubernetes_pod_container_name", "d"})
	assert.Equal(t, alone.Discovered, both.Discovered)
	assert.NotEqual(t, alone.Resource.AsRaw(), both.Resource.AsRaw())
	assert.False(t, both.Equal(alone))
}
