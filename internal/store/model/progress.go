// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"sync/atomic"
)

// Progress counts the blocks on disk that queries have read: once when their profiles are known, and once when their
// samples are summed.
type Progress struct{ done, total atomic.Int64 }

type progressKey struct{}

// WithProgress returns a context whose queries report to p.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// Blocks returns how many blocks have been read, of how many.
func (p *Progress) Blocks() (done, total int64) { return p.done.Load() / 2, p.total.Load() / 2 }

// Begin adds blocks that will be read.
func (p *Progress) Begin(blocks int) {
	if p != nil {
		p.total.Add(2 * int64(blocks))
	}
}

// Read counts n of a block's two steps.
func (p *Progress) Read(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}
