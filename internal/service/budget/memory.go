// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"context"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/confmap"
)

const (
	// processParts of processWhole is the part of the process's memory that received data can take. The pipeline needs
	// the rest: it merges, queues and sends these data, each of which takes as much again.
	processParts, processWhole = 3, 8
	// A budget is not smaller than minProcessBytes: the process would hardly work. Nor is it larger than maxProcessBytes,
	// so that a machine without a limit is not used up.
	minProcessBytes = 16 << 20
	maxProcessBytes = 1 << 30
	// queryWhole is the part of the process's memory that queries can take, in the same bounds.
	queryWhole = 8
)

var (
	processMu        sync.Mutex
	process, queries *Budget
)

// Process returns the budget that all receivers of the process share. Its size follows from the memory that the process
// may take: the least of GOMEMLIMIT, the limits of its control group, and what SetMemoryLimit was told.
func Process() *Budget {
	processMu.Lock()
	defer processMu.Unlock()
	if process == nil {
		setLimit(math.MaxInt64)
	}
	return process
}

// Queries returns the budget of all queries of the process. It is apart from that of Process, so that neither keeps the
// other waiting: who sends profiles does not wait for those who read them. Of a reservation, the profiles are what a
// query computes with, and the body is its answer until the last byte is written. So queries do not wait for readers of
// answers, either.
func Queries() *Budget {
	Process() // sets both
	processMu.Lock()
	defer processMu.Unlock()
	return queries
}

// SetMemoryLimit sizes the budget of the process for limit bytes of memory, unless its other limits are lower. It must
// be called before receivers start.
func SetMemoryLimit(limit int64) {
	processMu.Lock()
	defer processMu.Unlock()
	setLimit(limit)
}

func setLimit(limit int64) {
	limit = min(limit, debug.SetMemoryLimit(-1), processGroupLimit())
	process = New(forMemory(limit))
	bytes := inBounds(limit / queryWhole)
	queries = newParts(bytes/2, bytes-bytes/2)
}

func forMemory(limit int64) int64 { return inBounds(limit / processWhole * processParts) }

func inBounds(n int64) int64 { return min(max(n, minProcessBytes), maxProcessBytes) }

func processGroupLimit() int64 { return groupLimit("/sys/fs/cgroup", "/proc/self/cgroup") }

// groupLimit returns the memory limit of the process's control group, or of one above it; math.MaxInt64 if there is
// none.
func groupLimit(root, membership string) int64 {
	limit := int64(math.MaxInt64)
	text, err := os.ReadFile(membership)
	if err != nil {
		return limit
	}
	read := func(file string) {
		if value, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path; version 2 has hierarchy 0 without controllers.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			switch {
			case fields[1] == "":
				read(path.Join(root, group, "memory.max"))
			case fields[1] == "memory":
				read(path.Join(root, "memory", group, "memory.limit_in_bytes"))
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// machineMemory returns the memory of the machine by its meminfo; math.MaxInt64 where there is no such file, which only
// Linux has.
func machineMemory(meminfo string) int64 {
	text, _ := os.ReadFile(meminfo)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil && 0 < n && n <= math.MaxInt64>>10 {
				return n << 10
			}
		}
	}
	return math.MaxInt64
}

// NewConverterFactory returns a factory of a converter that changes nothing. It reads the limit of the processor
// memory_limiter, which becomes a memory limit of the process: for the budget, and for the garbage collector, unless
// GOMEMLIMIT is set.
func NewConverterFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

type converter struct{}

// Convert is called with the whole configuration, before any component is made.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	limit := limiterBytes(conf, min(processGroupLimit(), machineMemory("/proc/meminfo")))
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit) // also none: the configuration before may have had one
	}
	SetMemoryLimit(limit)
	return nil
}

// limiterBytes returns the smallest limit of all memory_limiters, or math.MaxInt64 if there is none. limit_percentage
// is a share of allMemory: the limit of the control group, or else the memory of the machine. As in memory_limiter,
// limit_mib outranks it.
func limiterBytes(conf *confmap.Conf, allMemory int64) int64 {
	limit := int64(math.MaxInt64)
	processors, _ := conf.Get("processors").(map[string]any)
	for id, section := range processors {
		if kind, _, _ := strings.Cut(id, "/"); kind != "memory_limiter" {
			continue
		}
		keys, _ := section.(map[string]any)
		mib, _ := keys["limit_mib"].(int)
		percentage, _ := keys["limit_percentage"].(int)
		switch {
		case mib > 0:
			limit = min(limit, int64(mib)<<20)
		case 0 < percentage && percentage <= 100 && allMemory < math.MaxInt64:
			limit = min(limit, allMemory/100*int64(percentage))
		}
	}
	return limit
}
