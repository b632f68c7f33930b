// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestEventTime(t *testing.T) {
	const start = 1_700_000_000_000_000_000
	for _, tc := range []struct {
		at    uint64
		time  json.Number
		nanos any
	}{
		{0, "", nil},
		{start, "1700000000.000", nil},
		{start + 120_000_000, "1700000000.120", nil},
		{start + 120_499_999, "1700000000.120", uint64(start + 120_499_999)},
		{start + 120_500_000, "1700000000.121", uint64(start + 120_500_000)},
		{start + 999_999_999, "1700000001.000", uint64(start + 999_999_999)},
	} {
		e := event{Fields: map[string]any{}}
		e.setTime(pcommon.Timestamp(tc.at))
		assert.Equal(t, tc.time, e.Time)
		assert.Equal(t, tc.nanos, e.Fields["source.event.time.unix_nano"])
	}
}
