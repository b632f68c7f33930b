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

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/targets"
)

// scrapedTarget is a target with the state of its endpoints. The schedule's mutex guards it.
type scrapedTarget struct {
	target    *targets.Target
	identity  ingest.Identity
	endpoints []*scrapedEndpoint
}

// scrapedEndpoint is one kind of profile of one target. It is scraped at most once at a time.
type scrapedEndpoint struct {
	owner *scrapedTarget
	job   *scrapeJob
	targets.Endpoint
	shown string // the URL without secrets

	// The schedule's mutex guards the fields below.
	due   time.Time
	timer *time.Timer // of the next scrape
	// cancel cancels the scrape in progress, if there is one. gone means that the endpoint has vanished.
	cancel context.CancelFunc
	gone   bool
	// unserved counts the last answers in a row by which the target does not serve this profile.
	unserved int
	last     scrapeResult

	// baselineBytes is the memory of the baseline when the last scrape was done.
	baselineBytes int

	// baseline is the last payload of a kind with `delta`. It belongs to the scrape in progress.
	baseline *decode.Baseline
	// restarts has a bit for each of the last payloads that were compared with the one before, the newest first: 1 for
	// one that does not continue it. It belongs to the scrape in progress.
	restarts uint8
}

// The states of an endpoint, as the status page and the metrics name them.
const (
	stateUnknown   = "unknown"    // not scraped yet
	stateUp        = "up"         // the last scrape returned a profile, which may be empty
	stateDown      = "down"       // the last scrape returned none
	stateBackedOff = "backed_off" // the target does not serve this kind, which is scraped less often
)

var allStates = []string{stateUp, stateDown, stateBackedOff, stateUnknown}

// The outcomes of a scrape that returned a profile; other outcomes are the reasons of rejections.
const (
	outcomeDelivered = "delivered"
	outcomeNoSamples = "no_samples"
	outcomeRefused   = "refused"
)

type scrapeResult struct {
	began     time.Time
	took      time.Duration // until the answer had arrived, without decoding and delivery
	bodyBytes int
	samples   int
	outcome   string // empty: not scraped yet, or cancelled
	// err is a *ingest.Rejection, or the pipeline's refusal.
	err error
}

// isCancelled reports that the scrape was cancelled: its target has vanished, or the receiver stops.
func (r *scrapeResult) isCancelled() bool { return r.outcome == "" }

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

// state returns up if any kind is up; otherwise down, backed off or unknown, in this order.
func (t *scrapedTarget) state() string {
	for _, state := range allStates {
		if slices.ContainsFunc(t.endpoints, func(e *scrapedEndpoint) bool { return e.state() == state }) {
			return state
		}
	}
	return stateUnknown
}

// reason returns why the last scrape failed, as the log names it, or "" if it did not fail.
func (e *scrapedEndpoint) reason() string {
	if e.last.err == nil {
		return ""
	}
	return ingest.StateOf(e.last.err)
}

// othersHave reports whether another endpoint of the same target failed for the same reason.
func (e *scrapedEndpoint) othersHave(reason string) bool {
	return slices.ContainsFunc(e.owner.endpoints, func(other *scrapedEndpoint) bool {
		return other != e && other.reason() == reason
	})
}

// maxBackoff bounds the time between two scrapes of a profile that is not served.
const maxBackoff = 10 * time.Minute

// backoffTicks returns after how many intervals a profile that was not served n times in a row is scraped again.
func backoffTicks(n int, interval time.Duration) int64 {
	const maxShift = 20 // 2^20 of even the shortest interval are longer than maxBackoff
	return min(int64(1)<<min(n, maxShift), max(1, int64(maxBackoff/interval)))
}

// isUnserved reports whether the answer will probably be the same next time: the target has no such profile, or its
// answer is not a profile. Scraping it at every interval would waste the time of both sides.
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

// unservedStatuses mean that a path does not exist, and probably will not at the next scrape.
var unservedStatuses = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone,
	http.StatusNotImplemented}

// grain divides an interval into the places at which scrapes begin, so that several begin together. Waking up for each
// of 160 scrapes a second takes nearly half of their processor time.
const grain = 50 * time.Millisecond

// offsetOf returns the fixed place of an endpoint within its interval. It depends only on the endpoint and on seed, so
// that updates and restarts do not change it, and it differs between collectors.
func offsetOf(seed, key, kind string, interval time.Duration) time.Duration {
	var digest xxhash.Digest
	digest.Reset()
	for _, part := range []string{seed, key, kind} {
		_, _ = digest.WriteString(part)
		_, _ = digest.Write([]byte{0})
	}
	return time.Duration(digest.Sum64() % uint64(interval)).Truncate(grain)
}

// untilTick returns the time from now to the next moment that is offset after a whole number of intervals since 1970.
func untilTick(now time.Time, offset, interval time.Duration) time.Duration {
	since := (now.UnixNano() - int64(offset)) % int64(interval)
	if since < 0 {
		since += int64(interval)
	}
	return interval - time.Duration(since)
}
