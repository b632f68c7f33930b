// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/wal"
)

// What is known of series is what the first record of the last block has. The records after the first one of a block do
// not describe their fields again: most messages are smaller than that.
func TestRecords(t *testing.T) {
	known := NewKnown()
	for _, id := range []model.SeriesID{{1}, {2}} {
		e, r := New(time.Unix(1e9, 0)), Replay{Known: known}
		read := func(record []byte, err error) int {
			require.NoError(t, err)
			require.NoError(t, r.Record(record[wal.HeaderBytes:]))
			return len(record)
		}
		first := read(e.RecordBegin(map[model.SeriesID]*Use{id: {}}))
		require.Len(t, known.Series, 1)
		require.Contains(t, known.Series, id)
		require.Less(t, read(e.RecordAdded(nil)), first/4)
	}
}
