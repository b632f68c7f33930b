// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "sync"

// Pool keeps batches for their memory. It keeps nothing of their messages, and no large batches.
type Pool struct{ batches sync.Pool }

// maxPooledBytes is the largest batch whose memory is kept for another.
const maxPooledBytes = 16 << 20

// Get returns an empty batch.
func (p *Pool) Get(options Options) *Batch {
	b, ok := p.batches.Get().(*Batch)
	if !ok {
		b = &Batch{}
	}
	b.Reset(options)
	return b
}

// Put takes a batch back. Parts that came from it stay valid.
func (p *Pool) Put(b *Batch) {
	if b.ApproximateBytes() <= maxPooledBytes {
		b.Reset(b.options)
		p.batches.Put(b)
	}
}
