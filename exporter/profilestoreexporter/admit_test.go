// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Thousands of services that come at once are all there afterwards, with the bounds of the configurations that people
// run. With any bounds, what was not kept was refused or evicted, and counted.
func TestManyServices(t *testing.T) {
	const services = 5000
	keep := map[string]any{"max_bytes": 256 << 20}
	for _, file := range []string{"quickstart", "standalone"} {
		text := profiletest.FileBytes(t, "../../config/"+file+".yaml")
		require.Contains(t, string(text), fmt.Sprintf("max_bytes: ${env:PAGE_MAX_BYTES:-%d} # of memory", keep["max_bytes"]),
			file)
		require.NotContains(t, string(text), "max_series", file)
	}
	for name, c := range map[string]struct {
		keep   map[string]any
		onDisk bool
		isKept bool
	}{
		"as shipped":        {keep, true, true},
		"in memory":         {keep, false, true},
		"little memory":     {map[string]any{"max_bytes": 2 << 20}, false, false},
		"a bound of series": {map[string]any{"max_series": 3000}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{"keep": c.keep}
			if c.onDisk {
				config["storage"] = map[string]any{"directory": t.TempDir()}
			}
			f := startExporter(t, config)
			refused := 0
			for i := range services {
				if err := f.ConsumeProfiles(t.Context(), small(fmt.Sprint("service-", i))); err != nil {
					code, delay := otlpstatus.ForRetry(err)
					require.False(t, otlpstatus.IsPermanent(err), "%v", err)
					require.Equal(t, http.StatusServiceUnavailable, code)
					require.Positive(t, delay)
					refused++
				}
			}
			evicted, counted := 0, 0
			stats := f.store.Stats()
			for reason := range model.NumEvicted {
				evicted += stats.Evicted[reason]
			}
			for reason := range model.NumRefused {
				counted += stats.Refused[reason]
			}
			var answer struct{ Services []any }
			f.getJSON("/api/services", &answer)
			assert.Equal(t, refused, counted)
			assert.Equal(t, services, len(answer.Services)+refused+evicted)
			assert.Equal(t, c.isKept, len(answer.Services) == services, "%d", len(answer.Services))
		})
	}
}

// A message that the store can never keep gets a permanent error with its size and the limit.
func TestMessagesThatAreTooLarge(t *testing.T) {
	f := startExporter(t, map[string]any{"keep": map[string]any{"max_bytes": 1 << 20, "max_series": 2}})
	long := small("shop")
	long.Dictionary().StringTable().Append(strings.Repeat("x", 1<<20))
	many := profiletest.New()
	for i := range 3 {
		many.Resource("service.name", strconv.Itoa(i)).Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "leaf"))
	}
	for want, pd := range map[string]pprofile.Profiles{
		"it needs 10": long, "one message may take 18": long, "it has 3 series, and there may be 2": many.Build(),
	} {
		err := f.ConsumeProfiles(t.Context(), pd)
		require.ErrorContains(t, err, want)
		assert.True(t, otlpstatus.IsPermanent(err))
	}
	assert.Zero(t, f.store.Stats().Profiles)
	assert.Equal(t, 2, f.store.Stats().Refused[model.RefusedSize])
	assert.Equal(t, 3, f.store.Stats().Refused[model.RefusedSeries])
}
