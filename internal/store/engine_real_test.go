// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/clickhousetest"
)

// TestClickHouseBlocks is TestBlocksConform for the table of a real engine.
func TestClickHouseBlocks(t *testing.T) {
	t.Chdir("clickhouse") // the repository is found from the folders of packages at that depth
	app := clickhousetest.Install(t)
	table := clickhousetest.NewTable(t, clickhousetest.Start(t, clickhousetest.StartEngine(t, app, app)), "blocks")
	s := store.New(store.MemoryConfig())
	var last time.Time
	store.EachKind(func(pd pprofile.Profiles, arrived time.Time, isLate bool) {
		require.Zero(t, s.Add(pd, arrived).Refused)
		if last = arrived; !isLate {
			table.Add(t, pd)
		}
	})
	table.Insert(t)
	_, want := store.DescribedStore(t, s)
	require.Equal(t, want, store.DescribedEngine(t, table.Source(t, last.Add(time.Minute))))
}
