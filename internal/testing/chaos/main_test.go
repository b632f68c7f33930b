// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// scenario is what a test knows of the run: its length, and its source of randomness.
type scenario struct {
	*rand.Rand
	short bool
}

type level int

const (
	// alsoShort scenarios also run with CHAOS=short, with smaller sizes.
	alsoShort level = iota
	fullOnly
)

// newScenario skips the test unless CHAOS asks for it. CHAOS_SEED repeats the random choices of an earlier run.
func newScenario(t *testing.T, wanted level) *scenario {
	t.Helper()
	run := os.Getenv("CHAOS")
	switch {
	case run == "":
		t.Skip("`make chaos` runs this")
	case run == "short" && wanted == fullOnly:
		t.Skip("`make chaos` without CHAOS=short runs this")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
	}
	t.Logf("CHAOS_SEED=%d", seed)
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return &scenario{Rand: rand.New(&lockedSource{source: rand.NewPCG(seed, name.Sum64())}), short: run == "short"}
}

// lockedSource is a source that several goroutines can use.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

// Uint64 returns the next random number.
func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// size returns the number for the length of the run.
func (s *scenario) size(short, full int) int {
	if s.short {
		return short
	}
	return full
}

// between returns a random time.
func (s *scenario) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.Int64N(int64(most-least)))
}
