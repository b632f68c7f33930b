// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The lines of a function: where samples end, and what passes through, a recursion once.
func TestLines(t *testing.T) {
	at := func(name, file string, line int64) profiletest.Location {
		return profiletest.Location{Lines: []profiletest.Line{{Function: profiletest.Function{Name: name, File: file},
			Line: line}}}
	}
	sample := func(value int64, stack ...profiletest.Location) profiletest.Sample {
		return profiletest.Sample{Stack: stack, Values: []int64{value}}
	}
	main := at("main.main", "main.go", 5)
	inlined := profiletest.Location{Lines: slices.Concat(at("work", "w.go", 12).Lines,
		at("main.main", "main.go", 6).Lines)}
	pd := profiletest.New().
		Resource("service.name", "shop", "vcs.repository.url.full", "https://example.com/shop.git", "vcs.ref.head.revision",
			"abc").
		Profile("cpu", "nanoseconds").Time(uint64(noon.UnixNano()), 1e9).Sample(
		sample(3, at("work", "w.go", 10), main), sample(5, at("work", "w.go", 12), main),
		sample(7, at("leaf", "l.go", 1), at("work", "w.go", 10), main),
		sample(11, at("work", "w.go", 12), at("work", "w.go", 12), main), sample(13, inlined),
		sample(17, at("work", "other.go", 3), main)).Build()
	get := serve(t, pd)
	type line struct {
		File              string
		Line, Self, Total int64
	}
	type answer struct {
		Repository, Revision string
		More                 int
		Lines                []line
	}
	ask := func(query string) (a answer) {
		status, body := get("/api/lines?service=shop&profile=process_cpu" + query)
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		return a
	}
	a := ask("&function=work")
	assert.Equal(t, []line{{File: "w.go", Line: 12, Self: 29, Total: 29}, {File: "other.go", Line: 3, Self: 17, Total: 17},
		{File: "w.go", Line: 10, Self: 3, Total: 10}}, a.Lines)
	assert.Equal(t, "https://example.com/shop.git abc", a.Repository+" "+a.Revision)
	assert.Equal(t, []line{{File: "other.go", Line: 3, Self: 17, Total: 17}}, ask("&function=work&file=other.go").Lines)
	assert.Equal(t, []line{{File: "main.go", Line: 5, Self: 0, Total: 43}, {File: "main.go", Line: 6, Self: 0, Total: 13}},
		ask("&function=main.main").Lines)
	assert.Equal(t, 2, ask("&function=work&limit=1").More)
	assert.Empty(t, ask("&function=none").Lines)
	status, body := get("/api/lines?service=shop&profile=process_cpu")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "`function` must be given")
}
