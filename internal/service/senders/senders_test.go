// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package senders

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecent(t *testing.T) {
	var l Log
	start := time.Unix(1_800_000_000, 0)
	ok := Request{"10.0.0.1", "POST /v1/pprof", 204}
	bad := Request{"10.0.0.2", "POST /v1/pprof", 400}
	l.Note(ok, "", start)
	l.Note(bad, "not a pprof", start)
	l.Note(bad, "\x08\x03\x12\x05not\tgzip\xff", start.Add(time.Minute))
	l.Note(ok, "", start.Add(2*time.Minute))
	list := l.Recent(start.Add(3 * time.Minute))
	require.Len(t, list, 2)
	assert.Equal(t, Outcome{bad, "not gzip", 2, start.Add(time.Minute)}, list[0], "who was refused comes first")
	assert.Equal(t, 2, list[1].Count)
	assert.Len(t, l.Recent(start.Add(2*time.Minute+Kept)), 1)
	assert.Empty(t, l.Recent(start.Add(3*time.Minute+Kept)))
	l.Note(bad, "again", start.Add(time.Hour))
	assert.Equal(t, 1, l.Recent(start.Add(time.Hour))[0].Count, "what was long ago does not count")
}

// Strangers can neither fill the memory nor hide the latest sender.
func TestBounds(t *testing.T) {
	var l Log
	start := time.Unix(1_800_000_000, 0)
	long := strings.Repeat("/p", 1<<16)
	for i := range 10_000 {
		l.Note(Request{fmt.Sprint(i), long, 400}, long, start.Add(time.Duration(i)*time.Millisecond))
	}
	list := l.Recent(start.Add(10 * time.Second))
	assert.Len(t, list, maxOutcomes)
	assert.Equal(t, "9999", list[0].Address)
	assert.LessOrEqual(t, len(list[0].Endpoint)+len(list[0].Reason), 2*maxText)
	assert.True(t, strings.HasSuffix(list[0].Reason, "…"), "a reader sees that it is cut")
}
