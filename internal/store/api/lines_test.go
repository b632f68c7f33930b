// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// What an answer names can be asked for, however long it is, and so can what was sent.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("long", 400)
	leaf := profiletest.Location{Lines: []profiletest.Line{
		{Function: profiletest.Function{Name: long + "()", File: long + ".go"}, Line: 7},
	}}
	pd := profiletest.New().Resource("service.name", long, "host.name", long).Profile("cpu", "nanoseconds").
		Time(uint64(noon.UnixNano()), 1e9).
		Sample(profiletest.Sample{Stack: []profiletest.Location{leaf}, Values: []int64{3}}).Build()
	get := serve(t, pd)
	var answer struct {
		Services []struct{ Service string }
		Groups   []struct{ Name string }
		Frames   struct{ Name, File []string }
		Lines    []struct{ Line, Self int }
		Total    int
	}
	ask := func(path string, query ...string) {
		values := url.Values{}
		for i := 0; i < len(query); i += 2 {
			values.Set(query[i], query[i+1])
		}
		status, body := get(path + "?" + values.Encode())
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
	}
	ask("/api/services")
	for _, service := range []string{answer.Services[0].Service, long} {
		of := []string{"service", service, "profile", "process_cpu"}
		ask("/api/timeline", append(of, "group_by", "host.name")...)
		for _, host := range []string{answer.Groups[0].Name, long} {
			ask("/api/flamegraph", append(of, "attr.host.name", host)...)
			require.Equal(t, 3, answer.Total)
		}
		for _, names := range [][2]string{{answer.Frames.Name[0], answer.Frames.File[0]}, {long + "()", long + ".go"}} {
			answer.Lines = nil
			ask("/api/lines", append(of, "function", names[0], "file", names[1])...)
			require.Len(t, answer.Lines, 1)
			require.Equal(t, 7, answer.Lines[0].Line)
		}
		status, body := get("/profiles/" + service + "/process_cpu")
		require.Equal(t, http.StatusOK, status, body)
	}
}
