// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"sync"
	"time"
)

// knownResources bounds how many resources there are over time. A resource without samples for the TTL is forgotten.
type knownResources struct {
	limit int
	ttl   time.Duration
	now   func() time.Time

	mu       sync.Mutex
	lastSeen map[[32]byte]time.Time
	swept    time.Time
}

func newKnownResources(limit int, ttl time.Duration) *knownResources {
	return &knownResources{limit: limit, ttl: ttl, now: time.Now, lastSeen: map[[32]byte]time.Time{}}
}

// admit reports whether a resource of that content is known or there is room for it.
func (k *knownResources) admit(content [32]byte) bool {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.lastSeen[content]; !ok && len(k.lastSeen) >= k.limit {
		k.sweep(now)
		if len(k.lastSeen) >= k.limit {
			return false
		}
	}
	k.lastSeen[content] = now
	return true
}

// sweep forgets old resources, at most once in a part of the TTL.
func (k *knownResources) sweep(now time.Time) {
	const sweepInterval = 10 * time.Second
	if now.Sub(k.swept) < min(k.ttl, sweepInterval) {
		return
	}
	k.swept = now
	for content, seen := range k.lastSeen {
		if now.Sub(seen) >= k.ttl {
			delete(k.lastSeen, content)
		}
	}
}

func (k *knownResources) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep(k.now())
	return len(k.lastSeen)
}
