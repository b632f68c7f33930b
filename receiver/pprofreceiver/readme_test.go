// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// The page on pushing lists the statuses in the code.
func TestPageOfStatuses(t *testing.T) {
	codes := map[string]string{}
	for code := 100; code < 600; code++ {
		codes["Status"+strings.ReplaceAll(http.StatusText(code), " ", "")] = fmt.Sprint(code)
	}
	named := map[string]bool{"429": true} // otlpstatus.ForRetry passes it on from the pipeline
	for _, file := range []string{"internal/push/answer.go", "internal/push/push.go", "internal/push/server.go",
		"../../internal/service/httpserver/body.go", "../../internal/service/httpserver/http.go"} {
		source := profiletest.FileBytes(t, file)
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
