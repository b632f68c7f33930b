// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Versions are in the order in which they first appeared, not in that of their names, and a filter by version leaves
// none out.
func TestVersions(t *testing.T) {
	b := profiletest.New()
	for i, v := range []string{"1.9", "1.10", "1.10", "1.9", "1.11"} {
		b.Resource("service.name", "shop", "service.version", v, "service.instance.id", fmt.Sprint(i)).Profile("cpu",
			"nanoseconds").
			Time(uint64(noon.Add(time.Duration(i-10)*time.Minute).UnixNano()), 60e9).Sample(profiletest.Value(1e9, "work"))
	}
	get := serve(t, b.Build())
	for _, filter := range []string{"", "&attr.service.version=1.10"} {
		status, body := get("/api/versions" + query + filter)
		require.Equal(t, http.StatusOK, status, body)
		var answer struct {
			Versions []struct {
				Value       string
				From, Until int64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		require.Len(t, answer.Versions, 3)
		for i, want := range []struct {
			value       string
			from, until int
		}{{"1.9", -10, -6}, {"1.10", -9, -7}, {"1.11", -6, -5}} {
			got := answer.Versions[i]
			assert.Equal(t, want.value, got.Value)
			assert.Equal(t, noon.Add(time.Duration(want.from)*time.Minute).UnixMilli(), got.From)
			assert.Equal(t, noon.Add(time.Duration(want.until)*time.Minute).UnixMilli(), got.Until)
		}
	}
	_, body := get("/api/versions" + query + "&key=service.instance.id")
	assert.Contains(t, body, `"value":"4"`)
	_, body = get("/api/versions" + query + "&key=none")
	assert.Contains(t, body, `"versions":[]`)
}
