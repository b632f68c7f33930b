// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// heaps writes three heap profiles of each of two processes, as the exporter `file` does: 100, 101 and 102 bytes live,
// and 1000, 2000 and 3000 allocated.
func heaps(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for i := range 3 {
		for _, instance := range []string{"a", "b"} {
			at := uint64(1795262400e9 + i*10e9)
			message, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(profiletest.New().
				Resource("service.name", "shop", "service.instance.id", instance).
				Profile("inuse_space", "bytes").Time(at, 0).Sample(profiletest.Value(int64(100+i), "make")).
				Profile("alloc_space", "bytes").Time(at, 0).Sample(profiletest.Value(int64(1000*(i+1)), "make")).
				Profile("cpu", "nanoseconds").Time(at, 10e9).Sample(profiletest.Value(7, "work")).Build())
			require.NoError(t, err)
			lines.Write(append(message, '\n'))
		}
	}
	return write(t, "heaps.jsonl", lines.String())
}

// The states of several times are not added up, nor are totals, which include those before; those of several processes
// are, and so is what happened.
func TestStatesAreNotAddedUp(t *testing.T) {
	path := heaps(t)
	collapsed := func(typ string, paths ...string) string {
		return must(t, append([]string{"convert", "-o", outCollapsed, "--type", typ}, paths...)...)
	}
	assert.Equal(t, "make 204\n", collapsed("inuse_space", path))
	assert.Equal(t, "make 6000\n", collapsed("alloc_space", path))
	assert.Equal(t, "work 42\n", collapsed("cpu", path))
	assert.Contains(t, must(t, "top", "-profile=memory", "-sample_index=inuse_space", path), "204B")
	assert.Contains(t, run(t, nil, "convert", "-o", outCollapsed, "--type", "alloc_space", path).log,
		"4 states and totals were left out")

	// A message has all that was given.
	again := write(t, "again.otlp", must(t, "convert", "-o", outOTLP, path))
	assert.Equal(t, "make 204\n", collapsed("inuse_space", again))
	assert.Contains(t, must(t, "stats", again), "18 profiles")

	// Nothing tells the processes of pprofs apart.
	one := write(t, "a.pb.gz", must(t, "convert", "-o", outPprof, "--profile", "memory", path))
	assert.Equal(t, "make 408\n", collapsed("inuse_space", one, one))
}
