// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// request is one use of pools. It looks at end wherever it may end.
type request struct {
	testing.TB
	sender string
	kind   string
	end    *end
}

// meter is a Meter that looks at the request's end at each step.
func (r *request) meter() *size.Meter { return &size.Meter{Context: r.context()} }

func (r *request) context() context.Context { return lookingContext{r.Context(), r.end} }

type lookingContext struct {
	context.Context
	end *end
}

func (c lookingContext) Err() error { return c.end.look() }

// end ends a request after a number of looks, with an error or with a panic.
type end struct {
	allowed, looks int
	panics         bool
}

var errEnded = errors.New("the request has ended")

func (e *end) hasEnded() bool { return e.looks > e.allowed }

func (e *end) look() error {
	if e.looks++; !e.hasEnded() {
		return nil
	}
	if e.panics {
		panic(errEnded)
	}
	return errEnded
}

const (
	another = "another-sender"
	shop    = "the-shop"
	// maxLooks bounds the ends of one kind of request.
	maxLooks = 40
	// longBytes is the length of a name that shows in the heap.
	longBytes = 4 << 20
)

// run uses a pool for a request, and reports whether that ended early. The output is empty if it panicked.
func (u *use) run(t testing.TB, sender, kind string, e *end) (output string, ended bool) {
	defer func() {
		if r := recover(); r != nil && r != any(errEnded) {
			panic(r)
		}
		ended = e.hasEnded()
	}()
	return u.do(&request{t, sender, kind, e}), false
}

func never() *end { return &end{allowed: 1 << 30} }

// Whatever a sender sends, and wherever and however its request ends, the next sender's output is what it is without
// that request, and has nothing of it.
func TestNothingOfOneSenderReachesTheNext(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			expected := map[string]string{}
			for _, kind := range u.kinds {
				expected[kind], _ = u.run(t, shop, kind, never())
				require.Contains(t, expected[kind]+u.hidden, shop, "a test that sees no sender sees no other either")
			}
			kinds := slices.Sorted(maps.Keys(expected))
			turn := 0
			for _, kind := range kinds {
				for allowed, ended := 0, true; ended && allowed < maxLooks; allowed++ {
					ended = false
					for _, panics := range []bool{false, true} {
						_, early := u.run(t, another, kind, &end{allowed: allowed, panics: panics})
						ended = ended || early
						for range min(2, len(kinds)) {
							next := kinds[turn%len(kinds)]
							turn++
							output, _ := u.run(t, shop, next, never())
							after := fmt.Sprintf("%s after %s, ended after %d looks: %t, by panic: %t", next, kind, allowed, early, panics)
							require.NotContains(t, output, another, after)
							require.Equal(t, expected[next], output, after)
						}
					}
				}
			}
		})
	}
}

// No pool keeps the bytes of a request, whether it ended early or not: a sender's name of megabytes shows in the heap.
func TestPoolsKeepNoRequests(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			const chance = longBytes * 3 / 4 // a table of lz4 can be new, too
			for _, kind := range u.kinds {
				u.run(t, shop, kind, never())
				for _, allowed := range []int{2, 1 << 30} {
					before := heapInUse()
					u.run(t, strings.Repeat("x", longBytes), kind, &end{allowed: allowed})
					grown := heapInUse() - before
					require.LessOrEqual(t, grown, chance+u.buffers*longBytes, "%s, ended after %d looks", kind, allowed)
				}
			}
		})
	}
}

// Requests of ever new senders leave each pool as it was: the next output is what it was before, and of several rounds
// there is one after which no more memory is held. Chance may add buffers in some of them.
func TestPoolsDoNotGrow(t *testing.T) {
	const rounds, requests, chance = 4, 100, 256 << 10
	filler := strings.Repeat("x", 8<<10)
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			for _, kind := range u.kinds {
				expected, _ := u.run(t, shop, kind, never())
				least, before := math.MaxInt, heapInUse()
				for i := range rounds * requests {
					sender := fmt.Sprint(filler, i)
					if u.hidden != "" {
						sender = u.hidden
					}
					u.run(t, sender, kind, never())
					if i%requests == requests-1 {
						now := heapInUse()
						least, before = min(least, now-before), now
					}
				}
				require.LessOrEqual(t, least, chance, kind)
				output, _ := u.run(t, shop, kind, never())
				require.Equal(t, expected, output, kind)
			}
		})
	}
}

// heapInUse collects garbage once: what is in a sync.Pool survives that.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
