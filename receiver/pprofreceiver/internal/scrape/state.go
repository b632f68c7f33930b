// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// scrapedTarget is a target with what is known of its endpoints. The schedule's mutex guards it.
type scrapedTarget struct {
	target    *targets.Target
	identity  ingest.Identity
	endpoints []*scrapedEndpoint
}

// scrapedEndpoint is one kind of profile of one target: scraped once at a time.
type scrapedEndpoint struct {
	owner *scrapedTarget
	job   *scrapeJob
	targets.Endpoint
	shown string // the URL without secrets

	// The schedule's mutex guards what follows.
	due      time.Time
	position int // in the schedule's heap; notWaiting while it is scraped or gone
	// cancel breaks off the request under way, and gone says that nobody wants another one.
	cancel context.CancelFunc
	gone   bool
	// unserved counts the answers in a row that say that there is no such profile.
	unserved int
	last     scrapeResult

	// delta belongs to the scrape under way.
	delta deltaState
}

// notWaiting is the position of an endpoint that is not in the heap.
const notWaiting = -1

// The states of an endpoint, as the status page and the metrics name them.
const (
	stateUnknown   = "unknown"    // not scraped yet
	stateUp        = "up"         // the last scrape returned a profile, which may be empty
	stateDown      = "down"       // it returned none
	stateBackedOff = "backed_off" // the target does not serve this kind, and is asked less often
)

var allStates = []string{stateUp, stateDown, stateBackedOff, stateUnknown}

// The outcomes of a scrape that returned a profile; others are named by their reason.
const (
	outcomeDelivered = "delivered"
	outcomeNoSamples = "no_samples"
	outcomeRefused   = "refused"
)

// scrapeResult is the result of one scrape.
type scrapeResult struct {
	began     time.Time
	took      time.Duration // until the answer was there; decoding and delivery come on top
	bodyBytes int
	samples   int
	outcome   string // empty: not scraped yet, or broken off
	// err is a *ingest.Rejection, or the pipeline's refusal.
	err error
}

// brokenOff reports that the scrape was cancelled: its target is gone, or the receiver stops.
func (r *scrapeResult) brokenOff() bool { return r.outcome == "" }

func (e *scrapedEndpoint) state() string {
	switch {
	case e.last.outcome == "":
		return stateUnknown
	case e.unserved > 0:
		return stateBackedOff
	case e.last.outcome == outcomeDelivered, e.last.outcome == outcomeNoSamples, e.last.outcome == outcomeRefused:
		return stateUp
	}
	return stateDown
}

// state is up if any kind returns profiles, and down if none does.
func (t *scrapedTarget) state() string {
	found := map[string]bool{}
	for _, e := range t.endpoints {
		found[e.state()] = true
	}
	for _, state := range allStates {
		if found[state] {
			return state
		}
	}
	return stateUnknown
}

// reason returns why the last scrape failed, as coarsely as the log says it; empty if it did not.
func (e *scrapedEndpoint) reason() string {
	if e.last.err == nil {
		return ""
	}
	return ingest.StateOf(e.last.err)
}

// othersHave reports whether another endpoint of the same target failed for the same reason.
func (e *scrapedEndpoint) othersHave(reason string) bool {
	for _, other := range e.owner.endpoints {
		if other != e && other.reason() == reason {
			return true
		}
	}
	return false
}

// maxBackoff bounds the time between two requests for a profile that is not served.
const maxBackoff = 10 * time.Minute

// backoffTicks is after how many intervals a profile that was not served n times in a row is asked for again.
func backoffTicks(n int, interval time.Duration) int64 {
	const enough = 20 // 2^20 of even the shortest interval is longer than the longest wait
	return min(int64(1)<<min(n, enough), max(1, int64(maxBackoff/interval)))
}

// isUnserved reports an answer that will be the same next time: the target has no such profile, or
// its answer is no profile. Asking as often as ever would cost both sides for nothing.
func isUnserved(err error) bool {
	var rejected *ingest.Rejection
	if !errors.As(err, &rejected) {
		return false
	}
	var status ingest.StatusError
	switch rejected.Reason {
	case ingest.HTTPStatus:
		return errors.As(err, &status) && slices.Contains(unservedStatuses, int(status))
	case ingest.ContentType, ingest.Encoding, ingest.NotPprof, ingest.TooLarge:
		return true
	}
	return false
}

// unservedStatuses say of a path that it will not be there next time either.
var unservedStatuses = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented}

// offsetOf returns the fixed place of an endpoint within its interval. It depends on nothing but the
// endpoint and seed, so that it stays over updates and restarts, and differs between collectors.
func offsetOf(seed, key, kind string, interval time.Duration) time.Duration {
	var digest xxhash.Digest
	digest.Reset()
	for _, part := range []string{seed, key, kind} {
		_, _ = digest.WriteString(part)
		_, _ = digest.Write([]byte{0})
	}
	return time.Duration(digest.Sum64() % uint64(interval))
}

// untilTick is the time from now to the next moment that lies offset behind a whole number of
// intervals since 1970, which no two endpoints need to agree on.
func untilTick(now time.Time, offset, interval time.Duration) time.Duration {
	since := (now.UnixNano() - int64(offset)) % int64(interval)
	if since < 0 {
		since += int64(interval)
	}
	return interval - time.Duration(since)
}

func newScrapedTarget(t *targets.Target) *scrapedTarget {
	return &scrapedTarget{target: t, identity: ingest.Identity{Derived: t.Resource, Stated: pcommon.NewMap()}}
}
