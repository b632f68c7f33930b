// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package perfscript reads the text of perf script: samples, each a line comm pid/tid [cpu] time: period event: with
// its stack below, leaf first, in lines of address symbol+offset (file), or with a single frame at the end of the line
// if there is no call chain. The options of perf script decide which of these fields there are.
//
// A survey finds the layout of the text. Then Decode reads line after line: layout.parseHeader parses a sample's first
// line, layout.parseFrame a frame, and decoder.sample adds the observation at the end of a sample. Times are of the
// machine's monotonic clock. A line "# reference time" (perf record -k) ties it to the wall clock; otherwise the anchor
// does.
package perfscript

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// parserFactor is the memory of the text itself, and of the processes in it.
const parserFactor = 2

// byteOrderMark is what some editors and shells put in front of a text.
const byteOrderMark = "\ufeff"

// maxProfiles is the largest number of events of all processes. The samples of others are dropped.
const maxProfiles = 10_000

// ErrNotPerf is the error for text without a sample, and ErrReport for that of perf report.
var (
	ErrNotPerf = errors.New("no line is a sample, as perf script prints it without -F, " +
		"or with -F comm,pid,tid,time,period,event,ip,sym,dso")
	ErrReport = errors.New("this is what perf report prints: send what perf script prints")
)

// maxDepth is the largest number of frames of a stack. The kernel records 127 by default.
const maxDepth = 4096

// Decode returns the profiles of a text: a resource for each process, and in it one profile for each event. All samples
// have a value, and a timestamp if the text has times.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{
		profiles: map[profileKey]compact.ProfileIndex{}, scopes: map[int64]compact.ScopeIndex{},
	}
	return d.b.Run(options, parserFactor*len(data), len(data), func() error {
		text := strings.TrimPrefix(string(data), byteOrderMark)
		if err := d.survey(text); err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if err := d.b.Check(0); err != nil {
				return err
			}
			d.line(trimLine(line))
		}
		d.sample()
		switch {
		case d.b.Stats.Events > 0:
		case strings.Contains(text, "\n# Samples: "):
			return ErrReport
		default:
			return ErrNotPerf
		}
		d.putMainFirst()
		if d.layout.anchor == byTime {
			d.b.Shift(d.reference)
		}
		d.b.SetClock()
		return nil
	})
}

type decoder struct {
	b        events.Builder
	layout   layout
	profiles map[profileKey]compact.ProfileIndex
	scopes   map[int64]compact.ScopeIndex // by process

	// reference is the wall-clock time at which the clock was 0, if the text states it.
	reference uint64

	// main is the main binary, which readers of pprof expect to be the first mapping: the outermost file of the first
	// stack that has one. A stack begins with its leaf, hence often with the kernel or a library. root is that of the
	// current sample.
	main, root dictionary.MappingIndex

	// isSkipping means that the lines up to the next sample have been counted, or are known to be none.
	isSkipping bool

	// The current sample.
	head     header
	inSample bool
	isDeep   bool
	stack    []int32
	// frame is the last one, which the next line can belong to, and hasChain means that it is of a call chain.
	frame              frame
	hasFrame, hasChain bool
	// inlined are the lines of frames that are inlined at an address.
	inlined   []dictionary.Line
	inlinedAt uint64
}

// profileKey identifies a profile: an event of a process.
type profileKey struct {
	process int64
	event   string
}

// survey finds the layout of a text.
func (d *decoder) survey(text string) error {
	var s survey
	for line := range strings.Lines(text) {
		if err := d.b.Check(0); err != nil {
			return err
		}
		if s.add(trimLine(line)); s.isEnough() {
			break
		}
	}
	d.layout, _, _ = s.layout()
	return nil
}

func (d *decoder) line(line string) {
	switch {
	case line == "":
		if d.layout.anchor == byPlace || d.hasFrame || len(d.stack) > 0 { // otherwise its call chain can follow
			d.sample()
		}
		d.isSkipping = false
	case line[0] == '#':
		d.comment(line)
	case d.layout.hasTabs && line[0] == '\t':
		d.chain(line)
	case isRecord(line):
		d.sample()
		d.isSkipping = true
	case d.layout.anchor == byPlace && d.layout.hasChains && d.layout.isChainLine(line):
		d.chain(line)
	case d.layout.anchor == byPlace && d.layout.hasChains && d.inSample: // an empty line ends it
		d.below(line)
	case d.begin(line):
	case !d.layout.hasTabs && d.layout.isChainLine(line):
		d.chain(line)
	default:
		d.below(line)
	}
}

// referenceTime ties the clock to the wall clock: # reference time: … = <unix> (TOD) = <clock> (monotonic).
var referenceTime = regexp.MustCompile(`^# reference time: .* = (\d+\.\d{1,9}) \(TOD\) = (\d+\.\d{1,9}) \(`)

func (d *decoder) comment(line string) {
	if m := referenceTime.FindStringSubmatch(line); m != nil {
		wall, ok := seconds(m[1])
		clock, ok2 := seconds(m[2])
		if ok && ok2 && wall >= clock {
			d.reference = wall - clock
		}
	}
}

// begin begins a sample if line is the first line of one.
func (d *decoder) begin(line string) bool {
	h, ok := d.layout.parseHeader(line)
	if !ok {
		return false
	}
	d.sample()
	d.head, d.inSample, d.isSkipping = h, true, false
	if h.frame != "" {
		d.frame, d.hasFrame = d.layout.parseFrame(d.layout.cutOthers(h.frame))
	}
	return true
}

// chain reads a frame of a call chain. It replaces the frame of the sample's first line, which is an address that was
// accessed.
func (d *decoder) chain(line string) {
	if !d.inSample {
		if d.layout.anchor != byPlace || !d.layout.hasChains { // nothing precedes the chain if nothing else is printed
			d.skip()
			return
		}
		d.head, d.inSample = header{process: unknown, thread: unknown, cpu: unknown}, true
	}
	if !d.layout.isChainLine(line) {
		return
	}
	if f, ok := d.layout.parseFrame(line); ok {
		if d.hasChain {
			d.addFrame()
		}
		d.frame, d.hasFrame, d.hasChain = f, true, true
	}
}

// below reads a line below a frame, or another that is no sample.
func (d *decoder) below(line string) {
	switch {
	case !d.inSample:
		d.skip()
	case d.hasFrame && d.frame.source == "" && strings.HasPrefix(line, "  "):
		source, number, isInlined := sourceLine(line)
		d.frame.source, d.frame.line = source, number
		d.frame.isInlined = d.frame.isInlined || isInlined
	}
}

// skip counts lines that cannot be understood, once up to the next sample.
func (d *decoder) skip() {
	if !d.isSkipping {
		d.b.Stats.Dropped++
	}
	d.isSkipping = true
}

// addFrame adds the last frame to the stack.
func (d *decoder) addFrame() {
	f := &d.frame
	d.hasFrame = false
	if len(d.inlined) > 0 && d.inlinedAt != f.address {
		d.push(d.inlinedAt, "") // the frame that it is inlined into is missing
	}
	if f.symbol != "" {
		function := d.b.Function(d.b.InternString(f.symbol))
		if f.source != "" {
			function.Filename = d.b.InternString(f.source)
		}
		d.inlined = append(d.inlined, dictionary.Line{Function: d.b.Dict.Functions.Intern(function), Line: f.line})
	}
	if d.inlinedAt = f.address; !f.isInlined {
		d.push(f.address, f.file)
	}
}

// push adds a location with the lines that were inlined into it, innermost first.
func (d *decoder) push(ip uint64, file string) {
	if d.isDeep = d.isDeep || len(d.stack) == maxDepth; d.isDeep {
		d.inlined = d.inlined[:0]
		return
	}
	l := dictionary.Location{Address: ip}
	if file != "" {
		l.Mapping = d.b.Dict.Mappings.Intern(dictionary.Mapping{Filename: d.b.InternString(file)})
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

// sample ends the current sample.
func (d *decoder) sample() {
	if !d.inSample {
		return
	}
	if d.hasFrame {
		d.addFrame()
	}
	if len(d.inlined) > 0 {
		d.push(d.inlinedAt, "") // the frame that it is inlined into is missing
	}
	d.main = cmp.Or(d.main, d.root)
	d.observe()
	d.stack, d.inlined, d.inSample, d.isDeep, d.root, d.hasChain = d.stack[:0], d.inlined[:0], false, false, 0, false
}
