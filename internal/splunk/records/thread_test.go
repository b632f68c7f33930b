// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseThread(t *testing.T) {
	const address = 0x00007fde4d00c000
	for line, want := range map[string]thread{
		"": {},
		// The specification's example.
		`"pool-1-thread-30" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x00007fde4d00c000 nid=0xba03 waiting on condition  [0x000070000ba40000]`: {
			name: "pool-1-thread-30", id: 49, priority: 5, osPriority: 31, cpuNanos: 120_000, wallNanos: 8_500_000_000,
			tid: address, osID: 0xba03, status: "waiting on condition  [0x000070000ba40000]",
		},
		`"Reference Handler" #2 daemon prio=10 os_prio=0 tid=0x00007fde4d00c000 nid=0x7 runnable`: {
			name: "Reference Handler", id: 2, priority: 10, tid: address, osID: 7, status: "runnable",
		},
		// Since Java 19 the native id is decimal, and is also next to the number.
		`"main" #1 [12345] prio=5 os_prio=0 cpu=61.35ms elapsed=1.02s tid=0x1 nid=12345 waiting`: {
			name: "main", id: 1, priority: 5, cpuNanos: 61_350_000, wallNanos: 1_020_000_000, tid: 1, osID: 12345, status: "waiting",
		},
		`"a "quoted" name #3 of many" #12 nid=0x1f`:              {name: `a "quoted" name #3 of many`, id: 12, osID: 0x1f},
		`"of " #3 of many" #12 nid=0x1f`:                         {name: `of " #3 of many`, id: 12, osID: 0x1f},
		`"no number"`:                                            {name: "no number"},
		`"" #5 prio=0 os_prio=0 cpu=0 elapsed=0 tid=0x0 nid=0x2`: {id: 5, osID: 2},
		`"VM Thread" os_prio=0 tid=0xffffffffffffffff nid=0x2 runnable`: {
			name: "VM Thread", tid: -1, osID: 2, status: "runnable",
		},
		`#7 cpu=1.5us elapsed=2m`: {id: 7, cpuNanos: 1500, wallNanos: 120_000_000_000},
		`"unclosed #7`:            {},
		`"x" #y prio=high cpu=1e400s elapsed=-1s tid=0xzz nid=`: {name: "x"},
	} {
		assert.Equal(t, want, parseThread(line), line)
	}
}
