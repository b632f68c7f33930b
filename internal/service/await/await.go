// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package await waits until a function returns, some time has passed, or a context ends.
package await

import (
	"context"
	"time"
)

// Return calls fn in a goroutine and returns nil as soon as fn has returned. If ctx ends first, it returns the error of
// ctx, and fn continues.
func Return(ctx context.Context, fn func()) error {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		fn()
	}()
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sleep waits for d, and returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}
