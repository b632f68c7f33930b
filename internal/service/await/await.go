// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package await waits until a function returns or a context ends.
package await

import "context"

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
