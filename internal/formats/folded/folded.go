// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package folded reads folded stacks: a line for each stack, root first, with a value at the end.
//
//	main;work;alloc 12
//	main;work 200 region=eu,trace_id=0102…,span_id=99… 1687841528000000
//
// The second line has what OTEP 239 (profiles data model, Example Payloads) adds: attributes and a timestamp, whose unit
// follows from its number of digits. Decode reads lines into the common assembler. Values with a timestamp become a profile of
// their own, since all samples of a profile have the same shape.
package folded

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Options describe the values, which the format itself does not. Empty strings have the defaults.
type Options struct {
	// Options has the Anchor, which is the time of values without timestamps if there is no TimeNanos.
	events.Options
	// SampleType and Unit are those of the values: samples and count by default.
	SampleType, Unit string
	// PeriodType, PeriodUnit and Period are set together or not at all.
	PeriodType, PeriodUnit string
	Period                 int64
	// TimeNanos and DurationNanos are the profile's, for values without timestamps.
	TimeNanos, DurationNanos uint64
	// WithoutValues reads every line as a stack of value 1.
	WithoutValues bool
}

const (
	// parserFactor is the memory of the text itself.
	parserFactor = 1
	// indexBytes is what an entry of a list takes that may just have grown; of a stack, with that of the table.
	indexBytes = 3 * 4
)

// ErrNotFolded is the error for text without a line that is a stack with a value.
var ErrNotFolded = errors.New("no line is a stack with a value, such as main;work 12")

// Decode returns the profiles of folded stacks: one resource and scope without attributes, a profile of the values without
// timestamps, and one of those with. Events counts the lines that were read, Dropped those that have no value or no stack.
// No lines at all make no profiles.
func Decode(data []byte, options Options) (pprofile.Profiles, events.Stats, error) {
	if options.SampleType == "" {
		options.SampleType, options.Unit = "samples", "count"
	}
	d := decoder{options: options}
	return d.Run(options.Options, parserFactor*len(data), len(data), func() error {
		d.scope = d.NewScope()
		for line := range strings.Lines(string(data)) {
			if err := d.Step(indexBytes * len(d.frames)); err != nil {
				return err
			}
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				d.line(line)
			}
		}
		if d.Stats.Events == 0 && d.Stats.Dropped > 0 {
			return ErrNotFolded
		}
		return nil
	})
}

type decoder struct {
	events.Builder
	options Options
	scope   compact.ScopeIndex
	// timed and untimed are the profiles of values with and without timestamps; nil until the first of them.
	timed, untimed *compact.ProfileIndex

	// frames has the location of each string that is a frame, or 0.
	frames []int32

	// Scratch.
	stack, attributes []int32
}

// record is what follows a stack.
type record struct {
	value      int64
	attributes string
	timestamp  uint64
}

// split splits a line: stack value [attributes] [timestamp]. Frames can have spaces in them, so it reads from the end.
func split(line string) (stack string, r record, ok bool) {
	rest, last := events.CutLast(line)
	if value, err := strconv.ParseInt(last, 10, 64); err == nil {
		before, middle := events.CutLast(rest)
		if strings.Contains(middle, "=") {
			if stack, r, ok := splitAttributes(before, middle); ok {
				r.timestamp = events.UnixNanos(value)
				return stack, r, r.timestamp != 0
			}
		}
		if v, err := strconv.ParseInt(middle, 10, 64); err == nil && before != "" && events.UnixNanos(value) != 0 {
			return before, record{value: v, timestamp: events.UnixNanos(value)}, true
		}
		return rest, record{value: value}, rest != ""
	}
	if strings.Contains(last, "=") {
		return splitAttributes(rest, last)
	}
	return "", record{}, false
}

// splitAttributes splits stack value, which precedes attributes.
func splitAttributes(rest, attributes string) (stack string, r record, ok bool) {
	stack, last := events.CutLast(rest)
	value, err := strconv.ParseInt(last, 10, 64)
	return stack, record{value: value, attributes: attributes}, err == nil && stack != ""
}

func (d *decoder) line(line string) {
	stack, r, ok := line, record{value: 1}, true
	if !d.options.WithoutValues {
		stack, r, ok = split(line)
	}
	if !ok {
		d.Stats.Dropped++
		return
	}
	id := compact.Identity{Stack: d.stackOf(stack)}
	d.attributes = d.attributes[:0]
	if r.attributes != "" {
		id.Link = d.readAttributes(r.attributes)
		id.Attributes = d.Dict.AttributeSets.Intern(d.attributes)
	}
	if r.timestamp == 0 {
		d.Stats.Events++
		d.Observe(d.untimedProfile(), id, compact.Observation{Value: r.value})
		return
	}
	if d.timed == nil {
		d.timed = new(d.profile(compact.Shape{Timestamps: true, Values: true}))
	}
	d.Event(*d.timed, id, compact.Observation{Timestamp: r.timestamp, Value: r.value})
}

// untimedProfile returns the profile of values without timestamps.
func (d *decoder) untimedProfile() compact.ProfileIndex {
	if d.untimed != nil {
		return *d.untimed
	}
	time, attributes := d.options.TimeNanos, dictionary.AttributeSetIndex(0)
	if time == 0 && d.options.Anchor.EndNanos != 0 {
		time, attributes = d.options.Anchor.EndNanos, d.ClockGuess()
	}
	p := d.profile(compact.Shape{Values: true})
	h := d.Header(p)
	h.Time, h.DurationNanos, h.Attributes = pcommon.Timestamp(time), d.options.DurationNanos, attributes
	d.untimed = &p
	return p
}

func (d *decoder) profile(shape compact.Shape) compact.ProfileIndex {
	o := &d.options
	return d.NewProfile(d.scope, events.Profile{
		Sample: events.Type{Name: o.SampleType, Unit: o.Unit},
		Period: events.Type{Name: o.PeriodType, Unit: o.PeriodUnit}, Every: o.Period, Shape: shape,
	})
}

// stackOf interns a stack, which is written root first. One line can have as many frames as a whole file has lines, so it ends when the
// work must.
func (d *decoder) stackOf(stack string) dictionary.StackIndex {
	d.stack = d.stack[:0]
	for frame := range strings.SplitSeq(stack, ";") {
		if d.Step(indexBytes*(len(d.stack)+len(d.frames))) != nil {
			return 0
		}
		if frame = strings.TrimSpace(frame); frame != "" {
			d.stack = append(d.stack, d.frame(d.Dict.Strings.Intern(d.CleanString(frame))))
		}
	}
	slices.Reverse(d.stack)
	return d.Dict.Stacks.Intern(d.stack)
}

// frame interns the location of a frame.
func (d *decoder) frame(name dictionary.StringIndex) int32 {
	if int(name) >= len(d.frames) {
		d.frames = append(d.frames, make([]int32, d.Dict.Strings.Len()-len(d.frames))...)
	}
	if d.frames[name] == 0 {
		d.frames[name] = d.Frame(dictionary.Function{Name: name}, 0, 0)
	}
	return d.frames[name]
}

// readAttributes appends the attributes of key=value,key=value to d.attributes and returns the link that trace_id and
// span_id make.
func (d *decoder) readAttributes(list string) dictionary.LinkIndex {
	var trace, span string
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if key = d.CleanString(key); !ok || key == "" || seen[key] { // what is cleaned can be equal
			d.Stats.LeftOutAttributes++
			continue
		}
		seen[key] = true
		switch key {
		case "trace_id":
			trace = value
		case "span_id":
			span = value
		default:
			d.attributes = append(d.attributes, d.StringAttribute(key, value))
		}
	}
	if link, ok := dictionary.ParseLink(strings.TrimPrefix(trace, "0x"), strings.TrimPrefix(span, "0x")); ok {
		return d.Dict.Links.Intern(link)
	}
	if trace != "" {
		d.attributes = append(d.attributes, d.StringAttribute("trace_id", trace))
	}
	if span != "" {
		d.attributes = append(d.attributes, d.StringAttribute("span_id", span))
	}
	return 0
}
