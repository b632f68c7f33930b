// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// While the first totals are delivered, others use up the budget. The totals are not delivered again.
func TestTotalsAreDeliveredOnce(t *testing.T) {
	f := sourcetest.New(t)
	in := f.Ingester("self", "runtime", 0)
	s := New(&Config{}, f.Set, in)
	s.totals = map[string]*totals{"mutex": {baseline: decode.NewBaseline(0)}}
	p := ingest.Payload{
		Format: formats.Pprof, Data: sourcetest.Captured(t, "go-mutex.pb.gz"), Identity: ingest.NewIdentity(),
		ProfileName: "mutex",
	}
	synctest.Test(t, func(t *testing.T) {
		in.Budget = budget.New(4 << 20)
		others := in.Begin()
		f.Next.Err = func(int) error {
			return others.Reserve(t.Context(), 100_000)
		}
		require.NoError(t, s.deliver(t.Context(), p))
		others.Release()
		require.NoError(t, s.deliver(t.Context(), p))
		assert.Equal(t, 1, f.Next.Attempts())
		assert.Zero(t, in.Budget.HeldBytes())
	})
}
