// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"math"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// thread is what the first line of a text stack says:
//
//	"pool-1-thread-30" #49 daemon prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x7fde nid=0xba03 waiting on condition
//
// A number of 0 is not known.
type thread struct {
	name                 string
	id, osID, tid        int64
	priority, osPriority int64
	cpuNanos, wallNanos  int64
	status               string
}

func parseThread(line string) (t thread) {
	line = strings.TrimSpace(line)
	t.name, line = cutName(line)
	for line != "" {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimLeft(rest, " ")
		key, value, _ := strings.Cut(word, "=")
		switch {
		case word[0] == '#':
			t.id, _ = digitsOf(word[1:])
		case key == "prio":
			t.priority = integer(value)
		case key == "os_prio":
			t.osPriority = integer(value)
		case key == "cpu":
			t.cpuNanos = nanos(value)
		case key == "elapsed":
			t.wallNanos = nanos(value)
		case key == "tid":
			t.tid = integer(value)
		case key == "nid":
			// The rest is free text.
			t.osID, t.status = integer(value), rest
			return t
		}
		line = rest
	}
	return t
}

// cutName cuts the quoted name off the line. Names can have quotes themselves: the one that ends it stands before the
// thread's number, or last in the line.
func cutName(line string) (name, rest string) {
	if line == "" || line[0] != '"' {
		return "", line
	}
	end := strings.LastIndex(line, "\" #")
	if end <= 0 {
		end = strings.LastIndexByte(line, '"')
	}
	if end <= 0 {
		return "", ""
	}
	return line[1:end], strings.TrimLeft(line[end+1:], " ")
}

// integer reads a decimal or, after 0x, hexadecimal number. Addresses take all of 64 bits.
func integer(text string) int64 {
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return 0
		}
		return int64(n)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// nanos reads a duration such as 0.12ms; a number without a unit is no duration.
func nanos(text string) int64 {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}[text[end:]]
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || !known || n < 0 || n*unit > math.MaxInt64/2 {
		return 0
	}
	return int64(math.Round(n * unit))
}

// statePrefix is what a JVM writes before the state.
const statePrefix = "java.lang.Thread.State: "

// textAttributes interns the attributes of a text stack's sample.
func (t *translator) textAttributes(line, state string) profiledict.AttributeSetIndex {
	th := parseThread(line)
	list := t.beginSet()
	list = t.appendText(list, keyThreadName, th.name)
	list = t.appendInt(list, keyThreadID, th.id, "")
	list = t.appendInt(list, keyThreadOSID, th.osID, "")
	list = t.appendText(list, keyThreadState, strings.TrimPrefix(state, statePrefix))
	if t.opts.FullThreadMetadata {
		list = t.appendInt(list, keyPriority, th.priority, "")
		list = t.appendInt(list, keyOSPriority, th.osPriority, "")
		list = t.appendInt(list, keyCPUTime, th.cpuNanos, unitNanoseconds)
		list = t.appendInt(list, keyElapsedTime, th.wallNanos, unitNanoseconds)
		list = t.appendInt(list, keyThreadTID, th.tid, "")
		list = t.appendText(list, keyThreadStatus, th.status)
	}
	for key, value := range t.record.log.Attributes().All() {
		if t.record.isOfSample(key) {
			list = t.appendAttribute(list, key, value)
		}
	}
	t.scratch = list
	return t.dict.AttributeSets.Intern(list)
}

func (t *translator) appendText(list []int32, key, value string) []int32 {
	if value == "" {
		return list
	}
	return t.appendEntry(list, profiledict.Attribute{
		Key: t.dict.Strings.Intern(key), Value: profiledict.StringValue(value),
	})
}

func (t *translator) appendInt(list []int32, key string, value int64, unit string) []int32 {
	if value == 0 {
		return list
	}
	return t.appendEntry(list, profiledict.Attribute{
		Key: t.dict.Strings.Intern(key), Unit: t.dict.Strings.Intern(unit), Value: profiledict.IntValue(value),
	})
}
