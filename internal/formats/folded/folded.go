// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package folded reads folded stacks: a line for each stack, root first, with a value at the end.
//
//	main;work;alloc 12
//	main;work 200 region=eu,trace_id=0102…,span_id=99… 1687841528000000
//
// The second line has what OTEP 239 (profiles data model, Example Payloads) adds: attributes and a timestamp, whose unit
// its number of digits tells. Decode reads lines into the common assembler; what has a timestamp becomes a profile of its
// own, since all samples of a profile have one shape.
package folded

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Options say what the values are, which the format itself does not. Text fields that are empty take the defaults.
type Options struct {
	// SampleType and Unit are those of the values: samples and count by default.
	SampleType, Unit string
	// PeriodType, PeriodUnit and Period are set together or not at all.
	PeriodType, PeriodUnit string
	Period                 int64
	// TimeNanos and DurationNanos are the profile's, for values without timestamps.
	TimeNanos, DurationNanos uint64
	// Anchor is the time of values without timestamps where there is no TimeNanos.
	Anchor events.Anchor
	// WithoutValues reads every line as a stack of value 1.
	WithoutValues bool
	// MaxTextBytes is the longest text of a frame or attribute; a longer one is cut. 0 is 64 KiB.
	MaxTextBytes int
}

// Stats counts what Decode did.
type Stats struct {
	// Samples is the number of lines that were read, Dropped of those that have no value or no stack.
	Samples, Dropped int
	// InvalidUTF8 and Truncated count the texts that were put right.
	InvalidUTF8, Truncated int
	// GuessedClock reports that a time is a guess: the Anchor's.
	GuessedClock bool
}

// ErrNotFolded is the error for text of which no line is a stack with a value.
var ErrNotFolded = errors.New("no line is a stack with a value, such as main;work 12")

// Decode returns the profiles of folded stacks: one resource and scope without attributes, a profile of the values without
// timestamps, and one of those with. No lines at all make no profiles.
func Decode(data []byte, options Options) (pprofile.Profiles, Stats, error) {
	if options.SampleType == "" {
		options.SampleType, options.Unit = "samples", "count"
	}
	if options.MaxTextBytes <= 0 {
		options.MaxTextBytes = 64 << 10
	}
	d := decoder{options: options, isValid: utf8.Valid(data)}
	d.assembler.Reset()
	d.dict = d.assembler.Dictionary()
	text := string(data)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			d.line(line)
		}
	}
	if d.stats.Samples == 0 && d.stats.Dropped > 0 {
		return pprofile.NewProfiles(), d.stats, ErrNotFolded
	}
	if d.dict.StringBytes()*2 < len(text) {
		d.dict.DetachStrings()
	}
	return d.assembler.Build(), d.stats, nil
}

type decoder struct {
	options   Options
	stats     Stats
	isValid   bool // all of the text is UTF-8
	assembler compact.Assembler
	dict      *profiledict.Dictionary

	// profiles are those of values without and with timestamps, once there is one of them.
	profiles    [2]compact.ProfileIndex
	has         [2]bool
	scope       compact.ScopeIndex
	first, last uint64 // of all timestamps

	// Scratch.
	stack, attributes []int32
}

// record is what stands behind a stack.
type record struct {
	value      int64
	attributes string
	timestamp  uint64
}

// split takes a line apart: stack value [attributes] [timestamp]. Frames can have spaces in them, so it reads from the
// end.
func split(line string) (stack string, r record, ok bool) {
	rest, last := cutLast(line)
	if value, err := strconv.ParseInt(last, 10, 64); err == nil {
		before, middle := cutLast(rest)
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

// splitAttributes takes stack value apart, which stand in front of attributes.
func splitAttributes(rest, attributes string) (stack string, r record, ok bool) {
	stack, last := cutLast(rest)
	value, err := strconv.ParseInt(last, 10, 64)
	return stack, record{value: value, attributes: attributes}, err == nil && stack != ""
}

func cutLast(s string) (before, last string) {
	s = strings.TrimRight(s, " \t")
	if i := strings.LastIndexAny(s, " \t"); i >= 0 {
		return strings.TrimRight(s[:i], " \t"), s[i+1:]
	}
	return "", s
}

func (d *decoder) line(line string) {
	stack, r, ok := line, record{value: 1}, true
	if !d.options.WithoutValues {
		stack, r, ok = split(line)
	}
	if !ok {
		d.stats.Dropped++
		return
	}
	id := compact.Identity{Stack: d.stackOf(stack)}
	d.attributes = d.attributes[:0]
	if r.attributes != "" {
		id.Link = d.readAttributes(r.attributes)
		id.Attributes = d.dict.AttributeSets.Intern(d.attributes)
	}
	which := 0
	if r.timestamp != 0 {
		which = 1
	}
	p := d.profile(which)
	d.assembler.Observe(p, id, compact.Observation{Timestamp: r.timestamp, Value: r.value})
	d.stats.Samples++
	if which == 1 {
		if d.first == 0 {
			d.first = r.timestamp
		}
		d.first, d.last = min(d.first, r.timestamp), max(d.last, r.timestamp)
		h := d.assembler.Header(p)
		h.Time, h.DurationNanos = pcommon.Timestamp(d.first), d.last-d.first+1
	}
}

// profile returns the profile of values without timestamps (0) or with (1).
func (d *decoder) profile(which int) compact.ProfileIndex {
	if !d.has[which] {
		if !d.has[0] && !d.has[1] {
			d.scope = d.assembler.Scope(d.assembler.Resource(pcommon.NewResource(), ""), pcommon.NewInstrumentationScope(), "")
		}
		o := &d.options
		intern := d.dict.Strings.Intern
		header := compact.Header{Time: pcommon.Timestamp(o.TimeNanos), DurationNanos: o.DurationNanos, Period: o.Period}
		if a := &o.Anchor; which == 0 && o.TimeNanos == 0 && a.EndNanos != 0 {
			header.Time = pcommon.Timestamp(a.EndNanos)
			if a.Guess != "" {
				d.stats.GuessedClock = true
				header.Attributes = d.dict.AttributeSets.Intern([]int32{int32(d.dict.Attributes.Intern(profiledict.Attribute{
					Key: intern(events.AttributeClockGuess), Value: profiledict.StringValue(a.Guess),
				}))})
			}
		}
		header.SampleType.Type, header.SampleType.Unit = intern(o.SampleType), intern(o.Unit)
		header.PeriodType.Type, header.PeriodType.Unit = intern(o.PeriodType), intern(o.PeriodUnit)
		d.profiles[which] = d.assembler.Profile(d.scope, compact.Shape{Timestamps: which == 1, Values: true}, header)
		d.has[which] = true
	}
	return d.profiles[which]
}

// stackOf interns a stack, which is written root first.
func (d *decoder) stackOf(stack string) profiledict.StackIndex {
	d.stack = d.stack[:0]
	for frame := range strings.SplitSeq(stack, ";") {
		if frame = strings.TrimSpace(frame); frame != "" {
			function := d.dict.Functions.Intern(profiledict.Function{Name: d.dict.Strings.Intern(d.text(frame))})
			location := d.dict.Locations.Intern(profiledict.Location{}, []profiledict.Line{{Function: function}})
			d.stack = append(d.stack, int32(location))
		}
	}
	slices.Reverse(d.stack)
	return d.dict.Stacks.Intern(d.stack)
}

// text makes a part of a line valid.
func (d *decoder) text(s string) string {
	if len(s) > d.options.MaxTextBytes {
		d.stats.Truncated++
		cut := d.options.MaxTextBytes
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	if !d.isValid && !utf8.ValidString(s) {
		d.stats.InvalidUTF8++
		return profiledict.ValidUTF8(s)
	}
	return s
}

// readAttributes appends the attributes of key=value,key=value to d.attributes and returns the link that trace_id and
// span_id make.
func (d *decoder) readAttributes(list string) profiledict.LinkIndex {
	var trace, span string
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" || seen[key] {
			continue
		}
		seen[key] = true
		switch key {
		case "trace_id":
			trace = value
		case "span_id":
			span = value
		default:
			d.addAttribute(key, value)
		}
	}
	if link, ok := profiledict.ParseLink(strings.TrimPrefix(trace, "0x"), strings.TrimPrefix(span, "0x")); ok {
		return d.dict.Links.Intern(link)
	}
	if trace != "" {
		d.addAttribute("trace_id", trace)
	}
	if span != "" {
		d.addAttribute("span_id", span)
	}
	return 0
}

func (d *decoder) addAttribute(key, value string) {
	d.attributes = append(d.attributes, int32(d.dict.Attributes.Intern(profiledict.Attribute{
		Key: d.dict.Strings.Intern(d.text(key)), Value: profiledict.StringValue(d.text(value)),
	})))
}
