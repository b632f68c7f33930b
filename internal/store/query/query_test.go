// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// Queries that take much memory or much time leave slots to small ones, and no more of them go on at once than there
// are slots.
func TestSmallQueriesPassLargeOnes(t *testing.T) {
	defer func(before [len(shortTimes)]time.Duration) { shortTimes = before }(shortTimes)
	shortTimes[1] = 300 * time.Millisecond
	for name, grow := range map[string]func(*size.Meter) error{
		"memory": func(m *size.Meter) error { return m.Grow(4 << 20) },
		"time": func(m *size.Meter) error {
			time.Sleep(2 * shortTimes[1])
			return m.Check()
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := New(Limits{MaxConcurrent: 1, Timeout: time.Minute, Budget: budget.New(256 << 20)})
			if name == "memory" {
				q.Budget = budget.New(64 << 20)
			}
			finish, running := make(chan struct{}), make(chan struct{}, 4)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					reservation := q.Begin()
					defer reservation.Release()
					assert.NoError(t, q.Run(t.Context(), reservation, "large", func(_ context.Context, m *size.Meter) (int, error) {
						if err := grow(m); err != nil {
							return 0, err
						}
						running <- struct{}{}
						<-finish
						return 0, nil
					}))
				})
			}
			<-running
			for i := range 20 {
				reservation := q.Begin()
				busy := i == 0
				require.NoError(t, q.Run(t.Context(), reservation, "small", func(_ context.Context, m *size.Meter) (int, error) {
					if busy { // the machine is, the first time
						busy = false
						time.Sleep(2 * shortTimes[0])
					}
					return 1, m.Grow(1)
				}))
				reservation.Release()
			}
			assert.Empty(t, running, "the others wait")
			close(finish)
			all.Wait()
			assert.Empty(t, q.short)
			assert.Empty(t, q.long)
		})
	}
}
