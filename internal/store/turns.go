// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// turns is a mutex that is locked in the order in which it was asked for. With a sync.Mutex, a large message that comes
// next would overtake small ones that wait.
type turns struct{ *semaphore.Weighted }

func newTurns() turns { return turns{semaphore.NewWeighted(1)} }

// Lock waits for its turn.
func (t turns) Lock() { _ = t.Acquire(context.Background(), 1) } // it fails only if its context ends

// Unlock lets the next one go on.
func (t turns) Unlock() { t.Release(1) }
