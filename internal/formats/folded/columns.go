// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package folded

import (
	"errors"
	"hash/maphash"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// Errors for texts that look like folded stacks with one value, and have others.
var (
	ErrDifference = errors.New("every line ends in two numbers, as difffolded.pl writes them: " +
		"send one of the two profiles, not their difference " +
		"(if the first number belongs to a name, end the name with a semicolon)")
	ErrMetrics = errors.New("every line ends in three numbers, Austin's time, idle state and memory: " +
		"record with one of them, without -f or --full")
)

// columns is what the last numbers of a text's lines mean.
type columns struct {
	// timestamps means that a value is followed by a timestamp on the lines that have no attributes.
	timestamps bool
	// isTimed means that the values are times themselves, each of one sample, as Swift's profiler writes them.
	isTimed bool
	// sampleType, unit and scale are those that Austin writes in a comment, if it did. scale is 1 or what values are
	// multiplied by.
	sampleType, unit string
	scale            int64
}

// readMode reads the comment in which Austin states what it has measured: # mode: wall. Times are in microseconds.
func (c *columns) readMode(comment string) {
	mode, ok := strings.CutPrefix(comment, "# mode: ")
	switch {
	case !ok:
	case mode == "wall", mode == "cpu":
		c.sampleType, c.unit, c.scale = mode, "nanoseconds", 1000
	case mode == "memory":
		c.sampleType, c.unit, c.scale = "alloc_space", "bytes", 1
	}
}

// survey counts the lines of a text by their last words. Only all lines together show what two numbers at the end of a
// line are.
type survey struct {
	lines, pairs, timestamps, metrics int
	// times are the values that are a Unix time in nanoseconds, behind frames with addresses.
	times int
	// digits, first and last describe the timestamps.
	digits      int
	first, last uint64
	// stacks are those in front of pairs. A stack that repeats is part of a name: each line of difffolded.pl has another.
	seed       maphash.Seed
	stacks     map[uint64]struct{}
	isRepeated bool
}

const (
	// maxStacks bounds the stacks that are compared.
	maxStacks = 4096
	// maxSpan is the longest time between two timestamps of a text.
	maxSpan = 366 * 24 * 3600 * 1e9
)

// addressed matches a stack whose leaf has its address, as Swift's profiler writes it: work<7f3c1c0a>.
var addressed = regexp.MustCompile(`<[0-9a-f]+>$`)

func (s *survey) add(line string) {
	rest, last := events.CutLast(line)
	before, middle := events.CutLast(rest)
	if strings.Contains(last, "=") || strings.Contains(middle, "=") {
		if _, _, isAttributed := splitAttributed(line); isAttributed {
			return
		}
	}
	s.lines++
	if isMetrics(last) {
		s.metrics++
	}
	if timestampOf(last) != 0 && len(last) == len("1687841528000000000") && addressed.MatchString(rest) {
		s.times++
	}
	if _, ok := parseValue(middle); !ok || before == "" || len(middle) > 1 && middle[0] == '0' && middle[1] != '.' {
		return
	}
	if _, ok := parseValue(last); !ok {
		return
	}
	s.pairs++
	if at := timestampOf(last); at != 0 && (s.timestamps == 0 || len(last) == s.digits) {
		if s.timestamps++; s.timestamps == 1 {
			s.digits, s.first, s.last = len(last), at, at
		}
		s.first, s.last = min(s.first, at), max(s.last, at)
	}
	if s.isRepeated || len(s.stacks) == maxStacks {
		return
	}
	hash := maphash.String(s.seed, before)
	_, s.isRepeated = s.stacks[hash]
	s.stacks[hash] = struct{}{}
}

// columns returns what the last numbers of most lines mean, or the error for a text that has several values. The number
// at the end of a single line is a value if values are a time.
func (s *survey) columns(isTime bool) (c columns, err error) {
	switch {
	case s.lines == 0:
	case s.timestamps == s.lines && s.last-s.first <= maxSpan && (s.lines > 1 || !isTime):
		c.timestamps = true
	case s.times == s.lines:
		c.isTimed = true
	case s.pairs == s.lines && s.lines > 1 && !s.isRepeated:
		return c, ErrDifference
	case 2*s.metrics > s.lines:
		return c, ErrMetrics
	}
	return c, nil
}

// isMetrics reports whether a word is what Austin writes in full mode: microseconds, whether the thread is idle, and
// bytes.
func isMetrics(word string) bool {
	micros, others, _ := strings.Cut(word, ",")
	idle, bytes, ok := strings.Cut(others, ",")
	return ok && isDigits(micros) && (idle == "0" || idle == "1") && isDigits(strings.TrimPrefix(bytes, "-"))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// timestampOf returns the time in nanoseconds that a word is, or 0.
func timestampOf(word string) uint64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0
	}
	return events.UnixNanos(n)
}

// nanoUnits are the units of a fraction of a value.
const nanoUnits = 1e9

// value is a number with a fraction, which has the sign of the number.
type value struct{ whole, nanos int64 }

// exponential is a number as awk prints a large one.
var exponential = regexp.MustCompile(`^\d(\.\d+)?e\+?\d+$`)

// parseValue parses a decimal number: 12, 12.5, 12., -3, 2.5e+09.
func parseValue(word string) (v value, ok bool) {
	if exponential.MatchString(word) {
		n, err := strconv.ParseFloat(word, 64)
		return value{whole: int64(n)}, err == nil && n < math.MaxInt64
	}
	v.whole, v.nanos, ok = events.ParseDecimal(word)
	return v, ok
}

// rounded returns a sum of nanos as whole units.
func rounded(nanos int64) int64 { return int64(math.Round(float64(nanos) / nanoUnits)) }
