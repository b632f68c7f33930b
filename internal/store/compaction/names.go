// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of blocks begin with their time (UTC), by which they are joined: an hour, 20261121T20, if nothing was
// joined; or a quarter of a day, of which 20261121Q1 is the first; or a day. A number follows that no other block of
// the directory has.
const (
	dayLayout    = "20060102"
	hourLayout   = dayLayout + "T15"
	quarterHours = 6
)

// HourOf returns the beginning of the name of a block of the hour that has a time in Unix nanoseconds.
func HourOf(nanos int64) string { return time.Unix(0, nanos).UTC().Format(hourLayout) }

// Name returns the name of a block.
func Name(time string, number uint64) string { return fmt.Sprintf("%s-%08x", time, number) }

// NumberOf returns the number of a name, or 0.
func NumberOf(name string) uint64 {
	_, number, _ := strings.Cut(name, "-")
	number, _, _ = strings.Cut(number, "-")
	n, _ := strconv.ParseUint(number, 16, 64)
	return n
}

// IsHour reports whether nothing was joined for a block.
func IsHour(name string) bool {
	hour, _, _ := strings.Cut(name, "-")
	_, err := time.Parse(hourLayout, hour)
	return err == nil
}

// timeOf returns the day of a name, and its quarter unless it is that of a day.
func timeOf(name string) (day, quarter string) {
	name, _, _ = strings.Cut(name, "-")
	day = name[:min(len(name), len(dayLayout))]
	if hour, err := time.Parse(hourLayout, name); err == nil {
		return day, fmt.Sprintf("%sQ%d", day, 1+hour.Hour()/quarterHours)
	}
	if _, _, ok := quarterOf(name); ok {
		return day, name
	}
	return day, ""
}

// quarterOf returns the start of the day of a quarter, and its number from 1 on.
func quarterOf(name string) (day time.Time, n int, ok bool) {
	date, number, _ := strings.Cut(name, "Q")
	n, _ = strconv.Atoi(number)
	day, err := time.Parse(dayLayout, date)
	return day, n, err == nil && n > 0 && n <= 24/quarterHours
}
