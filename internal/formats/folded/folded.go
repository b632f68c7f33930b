// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package folded reads folded stacks: a line for each stack, root first, with a value at the end.
//
//	main;work;alloc 12
//	main;work 200 region=eu,trace_id=0102…,span_id=99… 1687841528000000
//
// The second line has what OTEP 239 (profiles data model, Example Payloads) adds: attributes and a timestamp, whose
// unit follows from its number of digits. A survey finds what the last numbers of the lines mean. Then Decode reads
// lines into the common assembler. Values with a timestamp become a profile of their own, since all samples of a
// profile have the same shape.
package folded

import (
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
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
	// indexBytes is the worst case of an entry of a stack: one in the slice after growth, one in the table.
	indexBytes = 3 * 4
)

// ErrNotFolded is the error for text without a line that is a stack with a value.
var ErrNotFolded = errors.New("no line is a stack with a value, such as main;work 12")

// Decode returns the profiles of folded stacks: one resource and scope without attributes, a profile of the values
// without timestamps, and one of those with. Events counts the lines that were read, Dropped those that have no value
// or no stack. No lines at all make no profiles. The fractions of values are summed for each stack, and the sums
// rounded.
func Decode(data []byte, options Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{options: options, fractions: map[compact.Identity]int64{}}
	return d.Run(options.Options, parserFactor*len(data), len(data), func() error {
		text := strings.TrimPrefix(string(data), "\ufeff")
		if err := d.survey(text); err != nil {
			return err
		}
		d.scope = d.NewScope()
		for line := range strings.Lines(text) {
			if err := d.Check(d.scratchBytes()); err != nil {
				return err
			}
			if line = strings.TrimSpace(line); line != "" && !IsComment(line) {
				d.line(line)
			}
		}
		if d.Stats.Events == 0 && d.Stats.Dropped > 0 {
			return ErrNotFolded
		}
		return nil
	})
}

// IsComment reports whether a line, without blanks around it, is a comment. A name can begin with the same sign:
// #<Class:Cart>.
func IsComment(line string) bool {
	return line[0] == '#' && (len(line) == 1 || strings.IndexByte(" \t#!", line[1]) >= 0)
}

type decoder struct {
	events.Builder
	options Options
	columns columns
	scope   compact.ScopeIndex
	// timed and untimed are the profiles of values with and without timestamps; nil until the first of them.
	timed, untimed *compact.ProfileIndex

	// frames has two locations of each string, as a function of the program and of the kernel, or 0.
	frames []int32
	// fractions has, by stack, the sum of the fractions of values without timestamps.
	fractions map[compact.Identity]int64

	// Scratch.
	stack, attributes []int32
}

// scratchBytes is the memory of the decoder's own tables.
func (d *decoder) scratchBytes() int {
	const fractionBytes = 64 // an entry of the map, which may just have grown
	return indexBytes*len(d.frames) + fractionBytes*len(d.fractions)
}

// survey finds what the last numbers of the lines mean, and the sample type.
func (d *decoder) survey(text string) (err error) {
	o := &d.options
	s := survey{seed: maphash.MakeSeed(), stacks: map[uint64]struct{}{}}
	austin := columns{}
	for line := range strings.Lines(text) {
		if err := d.Check(0); err != nil {
			return err
		}
		switch line = strings.TrimSpace(line); {
		case line == "" || o.WithoutValues:
		case !IsComment(line):
			s.add(line)
		case austin.sampleType == "":
			austin.readMode(line)
		}
	}
	if d.columns, err = s.columns(kind.IsTime(o.Unit)); err != nil {
		return err
	}
	d.columns.scale = 1
	switch {
	case o.SampleType != "":
	case austin.sampleType != "":
		o.SampleType, o.Unit, d.columns.scale = austin.sampleType, austin.unit, austin.scale
	default:
		o.SampleType, o.Unit = "samples", "count"
	}
	return nil
}

// record is what follows a stack.
type record struct {
	value      value
	attributes string
	timestamp  uint64
}

// split splits a line: stack value [attributes] [timestamp]. Frames can have spaces in them, so it reads from the end.
func (c *columns) split(line string) (stack string, r record, ok bool) {
	if stack, r, isAttributed := splitAttributed(line); isAttributed {
		return stack, r, true
	}
	rest, last := events.CutLast(line)
	if _, _, isAttributed := splitAttributed(rest); isAttributed { // the last number is not a time
		return "", record{}, false
	}
	if c.isTimed {
		return rest, record{value: value{whole: 1}, timestamp: timestampOf(last)}, rest != ""
	}
	if c.timestamps {
		r.timestamp = timestampOf(last)
		rest, last = events.CutLast(rest)
	}
	r.value, ok = parseValue(last)
	return rest, r, ok && rest != ""
}

// splitAttributed splits stack value attributes [timestamp].
func splitAttributed(line string) (stack string, r record, ok bool) {
	rest, list := events.CutLast(line)
	if r.timestamp = timestampOf(list); r.timestamp != 0 {
		rest, list = events.CutLast(rest)
	}
	if !strings.Contains(list, "=") {
		return "", record{}, false
	}
	stack, number := events.CutLast(rest)
	r.value, ok = parseValue(number)
	r.attributes = list
	return stack, r, ok && stack != ""
}

func (d *decoder) line(line string) {
	stack, r, ok := line, record{value: value{whole: 1}}, true
	if !d.options.WithoutValues {
		stack, r, ok = d.columns.split(line)
	}
	if most := math.MaxInt64 / d.columns.scale; !ok || r.value.whole > most || r.value.whole < -most {
		d.Stats.Dropped++
		return
	}
	id := compact.Identity{Stack: d.stackOf(stack)}
	d.attributes = d.attributes[:0]
	if r.attributes != "" {
		id.Link = d.readAttributes(r.attributes)
		id.Attributes = d.AddAttributes(0, d.attributes...)
	}
	if r.timestamp == 0 {
		d.Stats.Events++
		d.Observe(d.untimedProfile(), id, compact.Observation{Value: d.whole(id, r.value)})
		return
	}
	if d.timed == nil {
		d.timed = new(d.profile(compact.Shape{Timestamps: true, Values: true}))
	}
	at := r.value.whole*d.columns.scale + rounded(r.value.nanos*d.columns.scale)
	d.Event(*d.timed, id, compact.Observation{Timestamp: r.timestamp, Value: at})
}

// whole returns a value as a whole number. The numbers of a stack add up to the rounded sum of its values.
func (d *decoder) whole(id compact.Identity, v value) int64 {
	n := v.whole * d.columns.scale
	if v.nanos == 0 {
		return n
	}
	before := d.fractions[id]
	after := before + v.nanos*d.columns.scale
	d.fractions[id] = after
	return n + rounded(after) - rounded(before)
}

// untimedProfile returns the profile of values without timestamps.
func (d *decoder) untimedProfile() compact.ProfileIndex {
	if d.untimed != nil {
		return *d.untimed
	}
	time, attributes := d.options.TimeNanos, dictionary.AttributeSetIndex(0)
	if time == 0 && d.options.Anchor.EndNanos != 0 {
		time, attributes = d.options.Anchor.EndNanos, d.AddAttributes(0, d.ClockGuess())
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

// stackOf interns a stack, which is written root first. One line can have as many frames as a whole file has lines, so
// it ends when the work must.
func (d *decoder) stackOf(stack string) dictionary.StackIndex {
	d.stack = d.stack[:0]
	for frame := range strings.SplitSeq(stack, ";") {
		if d.Check(indexBytes*len(d.stack)+d.scratchBytes()) != nil {
			return 0
		}
		if frame = strings.TrimSpace(frame); d.columns.isTimed {
			frame = addressed.ReplaceAllLiteralString(frame, "") // another one in each process
		}
		if frame != "" {
			d.stack = append(d.stack, d.frame(frame))
		}
	}
	slices.Reverse(d.stack)
	return d.Dict.Stacks.Intern(d.stack)
}

// annotations are what stackcollapse-perf.pl and async-profiler write behind a name: a function of the kernel, compiled
// at run time, inlined, of a waker, interpreted or compiled by C1. Programs that draw flame graphs leave them out.
var annotations = []string{"_[k]", "_[j]", "_[i]", "_[w]", "_[0]", "_[1]"}

// frame interns the location of a frame.
func (d *decoder) frame(text string) int32 {
	plain, end := text, max(len(text)-len("_[k]"), 0)
	if end > 0 && slices.Contains(annotations, text[end:]) {
		plain = text[:end]
	}
	name := d.Dict.Strings.Intern(d.CleanString(plain))
	if len(d.frames) <= 2*int(name)+1 {
		d.frames = append(d.frames, make([]int32, 2*d.Dict.Strings.Len()-len(d.frames))...)
	}
	known := &d.frames[2*name]
	isKernel := text[len(plain):] == annotations[0]
	if isKernel {
		known = &d.frames[2*name+1]
	}
	switch {
	case *known != 0:
	case isKernel:
		*known = d.TypedFrame(d.Function(name), 0, "kernel")
	default:
		*known = d.Frame(d.Function(name), 0, 0)
	}
	return *known
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
			d.attributes = append(d.attributes, d.Attribute(key, dictionary.StringValue(d.CleanString(value))))
		}
	}
	if link, ok := dictionary.ParseLink(strings.TrimPrefix(trace, "0x"), strings.TrimPrefix(span, "0x")); ok {
		return d.Dict.Links.Intern(link)
	}
	d.attributes = append(d.attributes, d.TextAttribute("trace_id", trace), d.TextAttribute("span_id", span))
	return 0
}
