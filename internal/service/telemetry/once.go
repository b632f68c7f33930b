// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "sync"

// maxSenders bounds the senders that a Once remembers.
const maxSenders = 1000

// Once remembers senders, so that each is logged once. Its zero value has none, and it is safe for concurrent use.
type Once[Sender comparable] struct {
	mu    sync.Mutex
	known map[Sender]struct{}
}

// IsNew reports whether a sender has not been seen yet. When there are too many to remember, further ones count as seen.
func (o *Once[Sender]) IsNew(sender Sender) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.known[sender]; known || len(o.known) >= maxSenders {
		return false
	}
	if o.known == nil {
		o.known = map[Sender]struct{}{}
	}
	o.known[sender] = struct{}{}
	return true
}
