// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are those of the recorder's settings that matter here. 0 means that the recording does not state it. They
// hold for a chunk: a second recording that begins while the first runs changes them. async-profiler writes them in its
// first chunk alone.
type settings struct {
	event      string // what async-profiler samples by: cpu, wall, itimer, page-faults, shop.Cart.add …
	cpu, wall  int64
	throttle   int64
	datadogCPU int64
	// datadogWall is the time between two samples of the wall clock by Datadog's profiler.
	datadogWall                  int64
	interval, allocation, malloc int64
}

// read reads one setting of a class of events: async-profiler's (interval=10000000), or the JDK's (period=20 ms).
func (s *settings) read(class, name, value string) {
	number, _ := strconv.ParseInt(value, 10, 64)
	number = max(number, 0)
	switch class + " " + name {
	case "jdk.ExecutionSample interval":
		s.interval = number
	case "jdk.ExecutionSample wall":
		s.wall = cmp.Or(number, int64(defaultWallPeriod))
	case "jdk.ExecutionSample period":
		s.cpu = parsePeriod(value)
	case "jdk.CPUTimeSample throttle": // a period, unless it is a rate such as 500/s
		s.throttle = parsePeriod(value)
	case "datadog.ExecutionSample interval":
		s.datadogCPU = number
	case "datadog.MethodSample interval":
		s.datadogWall = number
	case "jdk.ObjectAllocationInNewTLAB alloc":
		s.allocation = number
	default:
		switch name {
		case "event":
			s.event = value
		case "nativemem":
			s.malloc = number
		}
	}
}

func parsePeriod(value string) int64 {
	d, err := time.ParseDuration(strings.ReplaceAll(value, " ", ""))
	if err != nil {
		return 0
	}
	return int64(max(d, 0))
}

// async-profiler's own periods.
const defaultPeriod, defaultWallPeriod = 10 * time.Millisecond, 50 * time.Millisecond

// period returns the time between two samples of the CPU. unstated is what else is known about it, or 0.
func (s *settings) period(unstated time.Duration) int64 {
	if s.event == eventWall {
		return cmp.Or(s.interval, int64(unstated), int64(defaultWallPeriod))
	}
	return cmp.Or(s.cpu, s.interval, int64(unstated), int64(defaultPeriod))
}

// wallPeriod returns the time between two samples of the wall clock.
func (s *settings) wallPeriod(unstated time.Duration) int64 {
	if s.event != eventWall && s.wall > 0 {
		return s.wall
	}
	return s.period(unstated)
}

// eventWall is the setting `event` of a recording of wall clock time alone.
const eventWall = "wall"

// timers are the settings `event` with which async-profiler samples by time. The JDK has no such setting.
var timers = []string{"", "cpu", "cpu-clock", "task-clock", "itimer", "ctimer", eventWall}

// countedEvent returns what async-profiler samples by if that is not time, such as page faults or calls of a method,
// and how many of them lie between two samples.
func (s *settings) countedEvent() (name string, interval int64) {
	if slices.Contains(timers, s.event) {
		return "", 0
	}
	return s.event, cmp.Or(s.interval, defaultInterval(s.event))
}

// defaultInterval is async-profiler's own.
func defaultInterval(event string) int64 {
	switch event {
	case "cycles", "instructions", "cache-references", "branch-instructions", "bus-cycles", "ref-cycles",
		"L1-dcache-load-misses":
		return 1_000_000
	case "cache-misses", "branch-misses", "LLC-load-misses", "dTLB-load-misses":
		return 1000
	case "context-switches":
		return 2
	}
	isRegister := len(event) > 1 && event[0] == 'r' && strings.Trim(event[1:], "0123456789abcdefABCDEF") == ""
	if isRegister || strings.HasSuffix(event, "/") { // a register, or pmu/descriptor/
		return 1000
	}
	return 1
}
