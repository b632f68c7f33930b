// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package perfscript reads the text of perf script: samples, each a line comm pid/tid [cpu] time: period event: with its
// stack below, leaf first, in lines of address symbol+offset (file).
//
// Decode reads line after line: parseHeader parses a sample's first line, decoder.frame interns a frame, and decoder.sample adds
// the observation at an empty line. Times are of the machine's monotonic clock. A line "# reference time" (perf record -k)
// ties it to the wall clock; otherwise the anchor does.
package perfscript

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// parserFactor is the memory of the text itself, and of the processes in it.
const parserFactor = 2

// maxProfiles is the largest number of events of all processes. The samples of others are dropped.
const maxProfiles = 10_000

// ErrNotPerf is the error for text without a sample.
var ErrNotPerf = errors.New("no line is a sample, such as: comm 12/14 99.000001: 250000 cpu-clock: (as perf script prints it)")

// maxDepth is the largest number of frames of a stack. The kernel records 127 by default.
const maxDepth = 4096

// Decode returns the profiles of a text: a resource for each process, and in it one profile for each event. All samples have a
// timestamp and a value.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{profiles: map[profileKey]compact.ProfileIndex{}, scopes: map[int64]compact.ScopeIndex{}}
	return d.b.Run(options, parserFactor*len(data), len(data), func() error {
		for line := range strings.Lines(string(data)) {
			if err := d.b.Step(0); err != nil {
				return err
			}
			d.line(strings.TrimRight(line, " \t\r\n"))
		}
		d.sample()
		if d.b.Stats.Events == 0 {
			return ErrNotPerf
		}
		d.putMainFirst()
		d.setClock(options.Anchor)
		return nil
	})
}

type decoder struct {
	b        events.Builder
	profiles map[profileKey]compact.ProfileIndex
	scopes   map[int64]compact.ScopeIndex // by process

	// reference is the wall-clock time at which the clock was 0, if the text states it.
	reference    int64
	hasReference bool
	first, last  uint64 // of all samples

	// main is the main binary, which readers of pprof expect to be the first mapping: the outermost file of the first stack that has one. A
	// stack begins with its leaf, hence often with the kernel or a library. root is that of the current sample.
	main, root dictionary.MappingIndex

	// The current sample.
	head     header
	inSample bool
	isDeep   bool
	stack    []int32
	inlined  []dictionary.Line
	set      []int32
}

// profileKey identifies a profile: an event of a process.
type profileKey struct {
	process int64
	event   string
}

// header is a sample's first line.
type header struct {
	comm                 string
	process, thread, cpu int64  // unknown if they are not in it
	timestamp            uint64 // of the machine's clock, in nanoseconds
	period               int64
	hasPeriod            bool
	event                string
}

func (d *decoder) line(line string) {
	switch {
	case line == "":
		d.sample()
	case line[0] == '#':
		d.comment(line)
	case d.inSample && (line[0] == ' ' || line[0] == '\t') && d.frame(strings.TrimLeft(line, " \t")):
	default:
		h, ok := parseHeader(line)
		if !ok {
			if !d.inSample { // otherwise it is a line of source below a frame
				d.b.Stats.Dropped++
			}
			return
		}
		d.sample()
		d.head, d.inSample = h, true
	}
}

// referenceTime ties the clock to the wall clock: # reference time: … = <unix> (TOD) = <clock> (monotonic).
var referenceTime = regexp.MustCompile(`^# reference time: .* = (\d+)\.(\d{1,9}) \(TOD\) = (\d+)\.(\d{1,9}) \(`)

func (d *decoder) comment(line string) {
	if m := referenceTime.FindStringSubmatch(line); m != nil {
		wall, ok := seconds(m[1], m[2])
		clock, ok2 := seconds(m[3], m[4])
		if ok && ok2 && wall >= clock {
			d.reference, d.hasReference = int64(wall-clock), true
		}
	}
}

// seconds returns whole.fraction seconds in nanoseconds.
func seconds(whole, fraction string) (uint64, bool) {
	const most = 1 << 33
	s, err := strconv.ParseUint(whole, 10, 64)
	if err != nil || s >= most || len(fraction) == 0 || len(fraction) > 9 {
		return 0, false
	}
	f, err := strconv.ParseUint(fraction, 10, 64)
	for range 9 - len(fraction) {
		f *= 10
	}
	return s*1e9 + f, err == nil
}

// parseHeader parses a sample's first line. The comm may have spaces in it, so parseHeader looks for the time.
func parseHeader(line string) (h header, ok bool) {
	const longest = 4096 // a tracepoint's fields follow the event
	line = line[:min(len(line), longest)]
	for rest := line; rest != ""; {
		at := len(line) - len(rest)
		var word string
		word, rest = cutFirst(rest)
		if stamp, isTime := parseTime(word); isTime {
			if h, ok = parseBefore(line[:at]); ok && parseEvent(rest, &h) {
				h.timestamp = stamp
				return h, true
			}
		}
	}
	return h, false
}

// cutFirst cuts off the first word and the spaces after it.
func cutFirst(s string) (word, rest string) {
	word, rest, _ = strings.Cut(s, " ")
	return word, strings.TrimLeft(rest, " ")
}

func parseTime(word string) (uint64, bool) {
	stamp, isStamp := strings.CutSuffix(word, ":")
	whole, fraction, isFraction := strings.Cut(stamp, ".")
	if !isStamp || !isFraction {
		return 0, false
	}
	return seconds(whole, fraction)
}

// parseBefore reads comm pid/tid [cpu], from the end.
func parseBefore(s string) (h header, ok bool) {
	rest, word := events.CutLast(s)
	h.cpu, h.process = unknown, unknown
	if cpu, isCPU := strings.CutPrefix(word, "["); isCPU {
		h.cpu = number(strings.TrimSuffix(cpu, "]"))
		rest, word = events.CutLast(rest)
	}
	thread := word
	if process, after, both := strings.Cut(word, "/"); both {
		if h.process, thread = number(process), after; h.process == unknown {
			return h, false
		}
	}
	h.comm, h.thread = strings.TrimSpace(rest), number(thread)
	return h, h.comm != "" && h.thread != unknown
}

const unknown = -1

// number returns unknown for what is not a number of at most ten digits.
func number(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || len(s) > 10 {
		return unknown
	}
	return int64(n)
}

// parseEvent reads [period] event: and ignores what a tracepoint has after it.
func parseEvent(s string, h *header) bool {
	word, rest := cutFirst(s)
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		h.period, h.hasPeriod = n, true
		word, _ = cutFirst(rest)
	}
	event, ok := strings.CutSuffix(word, ":")
	if at := strings.LastIndexByte(event, ':'); at > 0 && strings.Trim(event[at+1:], "ukhHGpPSDWe") == "" {
		event = event[:at] // modifiers: who was counted
	}
	h.event = event
	return ok && event != ""
}

// frame interns a frame of the form: address symbol+offset (file). It returns false if line has another form.
func (d *decoder) frame(line string) bool {
	address, rest, _ := strings.Cut(line, " ")
	ip, err := strconv.ParseUint(address, 16, 64)
	if err != nil {
		return false
	}
	symbol, file := strings.TrimSpace(rest), ""
	if at := strings.LastIndex(symbol, " ("); at >= 0 && strings.HasSuffix(symbol, ")") {
		symbol, file = symbol[:at], symbol[at+2:len(symbol)-1]
	} else if strings.HasPrefix(symbol, "(") && strings.HasSuffix(symbol, ")") {
		symbol, file = "", symbol[1:len(symbol)-1]
	}
	if at := strings.LastIndex(symbol, "+0x"); at > 0 {
		symbol = symbol[:at]
	}
	if symbol != "" && symbol != "[unknown]" {
		function := d.b.Dict.Functions.Intern(dictionary.Function{Name: d.b.Dict.Strings.Intern(d.b.CleanString(symbol))})
		d.inlined = append(d.inlined, dictionary.Line{Function: function})
	}
	if file != "inlined" { // otherwise the frame that it is inlined into follows
		d.push(ip, file)
	}
	return true
}

// push adds a location with the lines that were inlined into it, innermost first.
func (d *decoder) push(ip uint64, file string) {
	if d.isDeep = d.isDeep || len(d.stack) == maxDepth; d.isDeep {
		d.inlined = d.inlined[:0]
		return
	}
	l := dictionary.Location{Address: ip}
	if file != "" && file != "[unknown]" {
		l.Mapping = d.b.Dict.Mappings.Intern(dictionary.Mapping{Filename: d.b.Dict.Strings.Intern(d.b.CleanString(file))})
		if otlp.CanBeMainBinary(file) {
			d.root = l.Mapping
		}
	}
	d.stack = append(d.stack, int32(d.b.Dict.Locations.Intern(l, d.inlined)))
	d.inlined = d.inlined[:0]
}

// putMainFirst makes the main binary the first mapping.
func (d *decoder) putMainFirst() {
	remap := make([]dictionary.MappingIndex, d.b.Dict.Mappings.Len())
	for i := range remap {
		if remap[i] = dictionary.MappingIndex(i); i > 0 && remap[i] < d.main {
			remap[i]++
		}
	}
	if d.main > 1 {
		remap[d.main] = 1
		d.b.Dict.OrderMappings(remap)
	}
}

func (d *decoder) sample() {
	if !d.inSample {
		return
	}
	if len(d.inlined) > 0 {
		d.push(0, "") // its frame is missing
	}
	h := &d.head
	kind, state := kindOf(h)
	value := h.period
	if !h.hasPeriod {
		value = 1
	}
	d.main = cmp.Or(d.main, d.root)
	p, known := d.profiles[profileKey{process: h.process, event: kind.Name}]
	switch {
	case d.isDeep, !known && len(d.profiles) == maxProfiles:
		d.b.Stats.Dropped++
	default:
		d.set = append(d.set[:0], d.b.StringAttribute(events.AttributeThreadName, h.comm), d.b.IntAttribute(events.AttributeThreadID, h.thread))
		if h.cpu != unknown {
			d.set = append(d.set, d.b.IntAttribute(events.AttributeCPU, h.cpu))
		}
		if state != "" {
			d.set = append(d.set, d.b.Attribute(events.AttributeThreadState, dictionary.StringValue(state)))
		}
		if d.b.Stats.Events == 0 {
			d.first = h.timestamp
		}
		d.first, d.last = min(d.first, h.timestamp), max(d.last, h.timestamp)
		if !known {
			p = d.newProfile(h, kind)
		}
		d.b.Event(p, compact.Identity{
			Stack: d.b.Dict.Stacks.Intern(d.stack), Attributes: d.b.Dict.AttributeSets.Intern(d.set),
		}, compact.Observation{Timestamp: h.timestamp, Value: value})
	}
	d.stack, d.inlined, d.inSample, d.isDeep, d.root = d.stack[:0], d.inlined[:0], false, false, 0
}

var (
	cpuTime = events.Type{Name: "cpu", Unit: "nanoseconds"}
	offCPU  = events.Type{Name: "off_cpu", Unit: "nanoseconds"}
)

// kindOf returns the sample type of an event, and the state of the thread if the event states it. The periods of clocks are
// times, and so are those of the scheduler's statistics, and of switches if perf inject has added them.
func kindOf(h *header) (kind events.Type, state string) {
	stat, isStat := strings.CutPrefix(h.event, "sched:sched_stat_")
	switch {
	case isStat && stat != "runtime" && h.hasPeriod:
		if stat == "wait" {
			stat = "runnable"
		}
		return offCPU, dictionary.ValidUTF8(stat)
	case h.event == "sched:sched_switch" && h.period > 1:
		return offCPU, ""
	case (h.event == "cpu-clock" || h.event == "task-clock") && h.hasPeriod:
		return cpuTime, ""
	default:
		return events.Type{Name: h.event, Unit: "count"}, ""
	}
}

// newProfile adds the profile of an event of a process.
func (d *decoder) newProfile(h *header, kind events.Type) compact.ProfileIndex {
	key := profileKey{process: h.process, event: kind.Name}
	scope, known := d.scopes[h.process]
	if !known {
		resource := pcommon.NewResource()
		if h.process != unknown {
			resource.Attributes().PutInt(events.AttributeProcessID, h.process)
			if h.process == h.thread {
				resource.Attributes().PutStr("process.executable.name", d.b.CleanString(h.comm))
			}
		}
		scope = d.b.Scope(d.b.Resource(resource, ""), pcommon.NewInstrumentationScope(), "")
		d.scopes[h.process] = scope
	}
	kind.Name = d.b.CleanString(kind.Name)
	period := events.Type{}
	if kind == cpuTime {
		period = cpuTime
	}
	p := d.b.NewProfile(scope, events.Profile{Sample: kind, Period: period, Shape: compact.Shape{Timestamps: true, Values: true}})
	d.profiles[key] = p
	return p
}

// setClock moves all times to the wall clock.
func (d *decoder) setClock(anchor events.Anchor) {
	switch {
	case d.hasReference:
		d.b.Shift(uint64(d.reference))
	case d.first < events.Year2000*1e9: // else it is a Unix time
		d.b.GuessClock()
		if anchor.EndNanos > d.last {
			d.b.Shift(anchor.EndNanos - d.last)
		}
	}
}
