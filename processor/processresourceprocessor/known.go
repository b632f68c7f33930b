// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// knownResources bounds how many resources there are over time. A resource without samples for the TTL is forgotten.
type knownResources struct {
	limit int
	ttl   time.Duration
	now   func() time.Time

	mu       sync.Mutex
	lastSeen *simplelru.LRU[[32]byte, time.Time]
}

func newKnownResources(limit int, ttl time.Duration) *knownResources {
	lastSeen, _ := simplelru.NewLRU[[32]byte, time.Time](max(1, limit), nil) // a size below 1 is the only error
	return &knownResources{limit: limit, ttl: ttl, now: time.Now, lastSeen: lastSeen}
}

// admit reports whether a resource of that content is known or there is room for it.
func (k *knownResources) admit(content [32]byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if !k.lastSeen.Contains(content) && k.forget(now) >= k.limit {
		return false
	}
	k.lastSeen.Add(content, now)
	return true
}

// forget forgets old resources, and returns how many there are.
func (k *knownResources) forget(now time.Time) int {
	for {
		content, seen, ok := k.lastSeen.GetOldest()
		if !ok || now.Sub(seen) < k.ttl {
			return k.lastSeen.Len()
		}
		k.lastSeen.Remove(content)
	}
}

func (k *knownResources) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.forget(k.now())
}
