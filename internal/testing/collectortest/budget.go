// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// FillBudget takes all that a budget has for bodies, until the function that it returns is called.
func FillBudget(tb testing.TB, process *budget.Budget) (release func()) {
	tb.Helper()
	var reservations []*budget.Reservation
	take := func(n int64) {
		c := process.Begin()
		require.NoError(tb, c.ReserveBody(tb.Context(), n))
		reservations = append(reservations, c)
	}
	take(process.MaxBodyBytes())
	const small = 12 // a small body has a twelfth of a large one, and there is room for four
	for range 4 {
		take(process.MaxBodyBytes() / small)
	}
	return func() {
		for _, c := range reservations {
			c.Release()
		}
	}
}
