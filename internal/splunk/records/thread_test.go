// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

func TestParseThread(t *testing.T) {
	const address = 0x00007fde4d00c000
	type attributes map[string]any
	for line, want := range map[string]attributes{
		"": {},
		// The specification's example.
		`"pool-1-thread-30" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x00007fde4d00c000 nid=0xba03 waiting on condition  [0x000070000ba40000]`: {
			keyThreadName: "pool-1-thread-30", keyThreadID: 49, keyPriority: 5, keyOSPriority: 31, keyCPUTime: 120_000,
			keyElapsedTime: 8_500_000_000, keyThreadTID: address, keyThreadOSID: 0xba03,
			keyThreadStatus: "waiting on condition  [0x000070000ba40000]",
		},
		`"Reference Handler" #2 daemon prio=10 os_prio=0 tid=0x00007fde4d00c000 nid=0x7 runnable`: {
			keyThreadName: "Reference Handler", keyThreadID: 2, keyPriority: 10, keyThreadTID: address, keyThreadOSID: 7,
			keyThreadStatus: "runnable",
		},
		// Since Java 19 the native id is decimal, and is also next to the number.
		`"main" #1 [12345] prio=5 os_prio=0 cpu=61.35ms elapsed=1.02s tid=0x1 nid=12345 waiting`: {
			keyThreadName: "main", keyThreadID: 1, keyPriority: 5, keyCPUTime: 61_350_000, keyElapsedTime: 1_020_000_000,
			keyThreadTID: 1, keyThreadOSID: 12345, keyThreadStatus: "waiting",
		},
		`"a "quoted" name #3 of many" #12 nid=0x1f`: {keyThreadName: `a "quoted" name #3 of many`,
			keyThreadID: 12, keyThreadOSID: 0x1f},
		`"of " #3 of many" #12 nid=0x1f`: {keyThreadName: `of " #3 of many`, keyThreadID: 12, keyThreadOSID: 0x1f},
		`"no number"`:                    {keyThreadName: "no number"},
		`"" #5 prio=0 os_prio=0 cpu=0 elapsed=0 tid=0x0 nid=0x2`: {keyThreadID: 5, keyThreadOSID: 2},
		`"VM Thread" os_prio=0 tid=0xffffffffffffffff nid=0x2 runnable`: {
			keyThreadName: "VM Thread", keyThreadTID: -1, keyThreadOSID: 2, keyThreadStatus: "runnable",
		},
		`#7 cpu=1.5us elapsed=2m`: {keyThreadID: 7, keyCPUTime: 1500, keyElapsedTime: 120_000_000_000},
		`"unclosed #7`:            {},
		`"x" #y prio=high cpu=1e400s elapsed=-1s tid=0xzz nid=`: {keyThreadName: "x"},
	} {
		found, wanted := map[string]dictionary.Value{}, map[string]dictionary.Value{}
		parseThread(line, func(key string, value dictionary.Value, unit string) {
			if value != dictionary.IntValue(0) && value != dictionary.StringValue("") {
				assert.NotContains(t, found, key, line)
				found[key] = value
			}
			assert.Equal(t, key == keyCPUTime || key == keyElapsedTime, unit == unitNanoseconds, line)
		})
		for key, value := range want {
			switch v := value.(type) {
			case int:
				wanted[key] = dictionary.IntValue(int64(v))
			case string:
				wanted[key] = dictionary.StringValue(v)
			}
		}
		assert.Equal(t, wanted, found, line)
	}
}
