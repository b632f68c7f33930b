// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

// Alternates is the log line about totals of which Alternation.Note has returned true.
const Alternates = "totals of one resource fall and rise again and again, so that their differences are wrong: several " +
	"processes seem to send with the same attributes; give each its own `service.instance.id`"

// Alternation notices that the totals of one identity are of several processes: they fall, and within a few profiles
// exceed what they were before, again and again. The totals of a process that restarts take as long to come back as
// they took to grow.
type Alternation struct {
	last  int64
	peak  int64 // the total before the last fall
	since uint8 // the profiles from that fall on, up to maxSince
	falls uint8 // those of totals that had come back, each soon after another fall
}

const (
	maxSince = 3
	minFalls = 2
)

// Note notes the next total, and whether it is that of a process that has restarted. It returns true at each fall
// that shows several processes.
func (a *Alternation) Note(total int64, hasRestarted bool) bool {
	defer func() { a.last = total }()
	if !hasRestarted {
		a.since = min(a.since+1, maxSince)
		return false
	}
	isBack := a.peak > 0 && a.last >= a.peak
	if a.since == maxSince {
		a.falls = 0
	} else if isBack {
		a.falls = min(a.falls+1, minFalls)
	}
	a.peak, a.since = a.last, 0
	return a.falls == minFalls
}
