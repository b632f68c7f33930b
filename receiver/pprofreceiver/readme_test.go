// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// flatten collects a config struct's values by key. It collects the keys of confighttp separately: the README lists
// only those whose defaults are the receiver's own.
func flatten(value reflect.Value, prefix string, own, others map[string]any) {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		inner := value.Field(i)
		if get := inner.Addr().MethodByName("GetOrInsertDefault"); get.IsValid() &&
			strings.Contains(get.Type().Out(0).Elem().PkgPath(), "pprofreceiver") {
			flatten(get.Call(nil)[0].Elem(), prefix+name+".", own, others)
			continue
		}
		switch {
		case options == "squash" && strings.Contains(field.Type.PkgPath(), "collector/config/"):
			flatten(inner, prefix, others, others)
		case options == "squash" ||
			(field.Type.Kind() == reflect.Struct && strings.Contains(field.Type.PkgPath(), "pprofreceiver")):
			if name != "" {
				name += "."
			}
			flatten(inner, prefix+name, own, others)
		default:
			own[prefix+name] = inner.Interface()
		}
	}
}

func inReadme(value any) string {
	switch v := value.(type) {
	case []string:
		if len(v) == 0 {
			return ""
		}
		quoted, _ := json.Marshal(v)
		return strings.ReplaceAll(string(quoted), ",", ", ")
	case *component.ID, map[string]any, []*targets.Config:
		return "" // none by default
	case time.Duration:
		return v.String()
	}
	return fmt.Sprint(value)
}

func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	own, others := map[string]any{}, map[string]any{}
	flatten(reflect.ValueOf(createDefaultConfig()).Elem(), "", own, others)
	for key, value := range own {
		if assert.Contains(t, rows, key) {
			assert.Equal(t, inReadme(value), rows[key][2], key)
		}
	}
	for key, cells := range rows {
		if _, isOwn := own[key]; isOwn {
			continue
		}
		if assert.Contains(t, others, key) {
			assert.Equal(t, inReadme(others[key]), cells[2], key)
		}
	}
	require.Greater(t, len(own), 15)
}

func TestReadmeConfigurationsAreValid(t *testing.T) {
	examples := append(collectortest.ReadmeExamples(t, "README.md"),
		collectortest.ReadmeExamples(t, filepath.Join("docs", "scraping.md"))...)
	require.GreaterOrEqual(t, len(examples), 4)
	for _, example := range examples {
		section, _ := example["receivers"]["pprof"].(map[string]any)
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), section)
		assert.NoError(t, err, example)
	}
}

// The page on pushing lists the statuses in the code.
func TestPageOfStatuses(t *testing.T) {
	codes := map[string]string{}
	for code := 100; code < 600; code++ {
		codes["Status"+strings.ReplaceAll(http.StatusText(code), " ", "")] = fmt.Sprint(code)
	}
	named := map[string]bool{"429": true} // otlpstatus.ForRetry passes it on from the pipeline
	for _, file := range []string{"internal/push/answer.go", "internal/push/push.go", "internal/push/server.go",
		"../../internal/service/httpserver/body.go", "../../internal/service/httpserver/http.go"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`http\.(Status[A-Z]\w+)`).FindAllStringSubmatch(string(source), -1) {
			require.Contains(t, codes, match[1])
			named[codes[match[1]]] = true
		}
	}
	rows := profiletest.ReadmeTable(t, filepath.Join("docs", "push.md"), "| status | when | |")
	assert.ElementsMatch(t, slices.Collect(maps.Keys(named)), slices.Collect(maps.Keys(rows)))
}

// TestMetadata compares the values of attributes in metadata.yaml with those in the code.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	var rejected, dropped, repaired []string
	for _, why := range ingest.Reasons {
		rejected = append(rejected, string(why))
	}
	for i := range scan.NumDropReasons {
		dropped = append(dropped, scan.DropReason(i).String())
	}
	dropped = append(dropped, events.ReasonTooShort, events.ReasonFiltered)
	for i := range scan.NumRepairs {
		repaired = append(repaired, scan.Repair(i).String())
	}
	assert.Equal(t, rejected, declared["reject_reason"].Enum)
	assert.Equal(t, dropped, declared["drop_reason"].Enum)
	assert.Equal(t, repaired, declared["fault"].Enum)
}

func TestReadmeMetrics(t *testing.T) {
	reasons := profiletest.ReadmeTable(t, "README.md", "| `reason` of a rejected payload | |")
	assert.Len(t, reasons, len(ingest.Reasons))
	for _, why := range ingest.Reasons {
		assert.Contains(t, reasons, string(why))
	}
}
