// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// clock decides whether a reading of the wall clock may be used to delete what is old, or to make it coarser. A clock
// can be wrong for a while, as after the start of a machine, before its first answer of a time server.
type clock struct {
	// maxLeap is how far ahead a reading may be of the one before. One that is further ahead is believed after this time.
	maxLeap time.Duration
	last    time.Time
	// doubted is the first of the readings that were ahead of last by more than maxLeap and agree with each other, latest
	// the last of them.
	doubted, latest time.Time
}

// maxLeap is that of a directory.
const maxLeap = time.Hour

// start makes the clock at least as late as a time in Unix nanoseconds that is known to have passed.
func (c *clock) start(nanos int64) {
	if t := time.Unix(0, nanos); t.After(c.last) {
		c.last = t
	}
}

// trusted returns the time from which ages are counted.
func (c *clock) trusted(now time.Time) time.Time {
	limit := c.last.Add(c.maxLeap)
	if !c.last.IsZero() && now.After(limit) {
		if c.doubted.IsZero() || now.Before(c.doubted) || now.After(c.latest.Add(c.maxLeap)) {
			c.doubted = now
		}
		c.latest = now
		if now.Sub(c.doubted) < c.maxLeap {
			return limit
		}
	}
	c.last, c.doubted, c.latest = now, time.Time{}, time.Time{}
	return now
}
