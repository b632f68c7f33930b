// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
)

func yamlKeys(section reflect.Type) []string {
	var keys []string
	for field := range section.Fields() {
		switch name, options, _ := strings.Cut(field.Tag.Get("yaml"), ","); {
		case options == "inline":
			keys = append(keys, yamlKeys(field.Type)...)
		case name != "-" && name != "":
			keys = append(keys, name)
		}
	}
	return keys
}

func TestReadmeJobs(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "../../docs/scraping.md", "| key of a job | type | default | bound | meaning |")
	httpKeys := yamlKeys(reflect.TypeFor[config.HTTPClientConfig]())
	var own []string
	for _, key := range yamlKeys(reflect.TypeFor[yamlConfig]()) {
		if !slices.Contains(httpKeys, key) {
			own = append(own, key)
		}
	}
	for _, key := range discoveryKeys() {
		own = append(own, strings.Trim(key, "`"))
	}
	assert.ElementsMatch(t, own, slices.Collect(maps.Keys(rows)))

	cfg := mustLoad(t, "job_name: a"+someDiscovery)
	assert.Equal(t, cfg.ScrapeInterval.String(), rows["scrape_interval"][2])
	assert.Equal(t, cfg.ScrapeTimeout, cfg.ScrapeInterval)
	assert.Equal(t, cfg.Scheme, rows["scheme"][2])
	assert.Equal(t, fmt.Sprint(cfg.TargetLimit), rows["target_limit"][2])

	text := profiletest.FileBytes(t, "../../docs/scraping.md")
	for _, key := range httpKeys {
		assert.Contains(t, string(text), "`"+key+"`")
	}
	assert.Contains(t, string(text),
		fmt.Sprintf("and %d s more; it may be above the interval", fetch.TransferTime/time.Second))
}

func TestReadmeKinds(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "../../docs/scraping.md", "| kind | `enabled` | `path` | `seconds` | `delta` |")
	kinds := mustLoad(t, "job_name: a"+someDiscovery).Profiles
	assert.Len(t, rows, len(kinds))
	for _, p := range kinds {
		assert.Equal(t, []string{p.Name, fmt.Sprint(p.Enabled), p.Path, fmt.Sprint(p.Seconds), fmt.Sprint(p.Delta)},
			rows[p.Name])
	}
}

// The README lists the labels that a target has before the rules.
func TestReadmeLabels(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "../../docs/scraping.md", "| label | at first | what it decides |")
	targets, _ := mustLoad(t, onlyMemory+`
path_prefix: /p
params: {x: [y]}
relabel_configs: [{action: labelmap, regex: (.+), replacement: "seen_$1"}]
`).group(found([]string{"__address__", "h:1"}), newMemo())
	require.Len(t, targets, 1)
	seen := []string{"instance"} // set last
	targets[0].Labels.Range(func(l labels.Label) {
		if name, isSeen := strings.CutPrefix(l.Name, "seen_"); isSeen {
			seen = append(seen, strings.Replace(name, "__param_x", "__param_<name>", 1))
		}
	})
	assert.ElementsMatch(t, seen, slices.Collect(maps.Keys(rows)))
}
