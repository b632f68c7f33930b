// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package events has what the translators of other producers' formats share: a Builder over the common assembler, which
// repairs strings and keeps the window of each profile, and the Anchor of a clock that is not a wall clock.
package events

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// ErrTooLarge is wrapped by the error for a payload that exceeds a limit of its format.
var ErrTooLarge = errors.New("too large")

// DefaultMaxStringBytes is the longest string by default.
const DefaultMaxStringBytes = 64 << 10

// Anchor ties the clock of a recording to the wall clock if the recording itself does not.
type Anchor struct {
	// EndNanos is when the recording ended, in nanoseconds since the epoch; 0 is unknown.
	EndNanos uint64
	// Guess names what EndNanos was guessed from, for example arrival. It is empty if the sender stated the time.
	Guess string
}

// Options are those of all formats.
type Options struct {
	// MaxStringBytes is the longest string of a frame or attribute; a longer one is cut. 0 means DefaultMaxStringBytes.
	MaxStringBytes int
	// Anchor is when the recording ended.
	Anchor Anchor
	// Meter bounds the work; nil means no bound.
	Meter *size.Meter
}

// AttributeClockGuess is the profile attribute that names what the times of a profile were guessed from.
const AttributeClockGuess = "profile.clock.guess"

// Attributes of samples. The semantic conventions have the first four.
const (
	AttributeThreadID       = "thread.id"
	AttributeThreadName     = "thread.name"
	AttributeCPU            = "cpu.logical_number"
	AttributeProcessID      = "process.pid"
	AttributeGoroutine      = "go.goroutine.id"
	AttributeGoroutineState = "go.goroutine.state"
	AttributeGoProc         = "go.proc.id"
	AttributeThreadState    = "thread.state"
	AttributeGPUDevice      = "gpu.device"
	AttributeGPUStream      = "gpu.stream"
)

// attributeFrameType is what kind of frame a location is, in the semantic conventions' words or a producer's.
const attributeFrameType = "profile.frame.type"

// Why options leave out observations, in metrics.
const (
	ReasonTooShort = "too_short"
	ReasonFiltered = "filtered"
)

// Stats counts what a translator did.
type Stats struct {
	// Events is the number of observations, Dropped that of records that could not be understood.
	Events, Dropped int
	// TooShort and Filtered count the observations that the options leave out: below the minimum, or of a kind that is not
	// wanted.
	TooShort, Filtered int
	// LeftOutAttributes counts the attributes that cannot be understood, repeat another's key, or are beyond a limit.
	LeftOutAttributes int
	// InvalidUTF8 and Truncated count the strings that were repaired.
	InvalidUTF8, Truncated int
	// Unread are the events of a recording that have a stack and are not read, by type: the first maxUnreadTypes types.
	Unread map[string]int
	// GuessedClock reports that times follow from a guess.
	GuessedClock bool
}

// Type is a sample type or period type by name.
type Type struct{ Name, Unit string }

// Nanoseconds returns a type of times.
func Nanoseconds(name string) Type { return Type{name, "nanoseconds"} }

// Bytes returns a type of sizes.
func Bytes(name string) Type { return Type{name, "bytes"} }

// Count returns a type of numbers.
func Count(name string) Type { return Type{name, "count"} }

// Profile describes the samples of a profile.
type Profile struct {
	Sample, Period Type
	Every          int64 // the period
	Shape          compact.Shape
}

// Builder assembles profiles. The strings passed to it may be parts of the payload.
type Builder struct {
	compact.Assembler
	Dict  *dictionary.Dictionary
	Stats Stats

	anchor         Anchor
	maxStringBytes int
	meter          *size.Meter
	// parserBytes is what the translator itself takes, and steps counts the calls of Check.
	parserBytes, steps int
	// windows are those of the profiles with timestamps, by index.
	windows  []window
	profiles map[profileKey]compact.ProfileIndex

	// readable has the names in the source of linkers' names, which take mangledBytes.
	readable     map[dictionary.StringIndex]dictionary.StringIndex
	mangledBytes int

	// Scratch.
	lines      []dictionary.Line
	attributes []int32
}

type profileKey struct {
	scope   compact.ScopeIndex
	profile Profile
}

type window struct {
	isSet       bool
	first, last uint64
}

// Reset empties the builder.
func (b *Builder) Reset(o Options) {
	b.Assembler.Reset()
	b.Dict, b.Stats, b.anchor, b.windows = b.Dictionary(), Stats{}, o.Anchor, b.windows[:0]
	b.meter, b.parserBytes, b.steps, b.profiles = o.Meter, 0, 0, nil
	b.readable, b.mangledBytes = nil, 0
	b.maxStringBytes = o.MaxStringBytes
	if b.maxStringBytes <= 0 {
		b.maxStringBytes = DefaultMaxStringBytes
	}
}

// Run resets the builder, reserves parserBytes, and returns what read adds to it, with the windows of the profiles. If
// the payload, of plainBytes, is far larger than the strings, they share no memory with it afterwards.
func (b *Builder) Run(o Options, parserBytes, plainBytes int, read func() error) (pprofile.Profiles, Stats, error) {
	b.Reset(o)
	err := b.Grow(parserBytes)
	if err == nil {
		err = read()
	}
	if err == nil {
		err = b.Grow(0)
	}
	if err != nil {
		return pprofile.NewProfiles(), b.Stats, err
	}
	for p, w := range b.windows {
		if w.isSet {
			h := b.Header(compact.ProfileIndex(p))
			h.Time, h.DurationNanos = pcommon.Timestamp(w.first), w.last-w.first+1
		}
	}
	if b.Dict.StringBytes()*2 < plainBytes {
		b.Dict.DetachStrings()
	}
	return b.Build(), b.Stats, nil
}

// maxUnreadTypes and maxUnreadTypeBytes bound the names of events that are counted.
const maxUnreadTypes, maxUnreadTypeBytes = 64, 128

// UnreadOther is the name for the types of events that are beyond a limit.
const UnreadOther = "other"

// CountUnread counts an event that has a stack and is not read.
func (b *Builder) CountUnread(eventType string) {
	if b.Stats.Unread == nil {
		b.Stats.Unread = map[string]int{}
	}
	if _, known := b.Stats.Unread[eventType]; !known &&
		(len(b.Stats.Unread) >= maxUnreadTypes || len(eventType) > maxUnreadTypeBytes) {
		eventType = UnreadOther
	}
	b.Stats.Unread[dictionary.ValidUTF8(eventType)]++
}

// Grow reserves n bytes for the translator itself. Translators return its error.
func (b *Builder) Grow(n int) error {
	b.parserBytes += n
	return b.meter.GrowTo(b.parserBytes + b.BuildBytes())
}

// Check is called for each record. After an error the work must end; Check and Run return it again. more is the
// memory in use that Grow does not know about.
func (b *Builder) Check(more int) error {
	const checkEvery = 1 << 8
	if b.steps++; b.steps%checkEvery != 0 {
		return b.meter.Err()
	}
	return b.meter.GrowTo(b.parserBytes + more + b.BuildBytes())
}

// SetClock places the profiles in time. If their times are not Unix times, the last one becomes the anchor, and so does
// the time of a profile that has none.
func (b *Builder) SetClock() {
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, w := range b.windows {
		if w.isSet {
			first, last = min(first, w.first), max(last, w.last)
		}
	}
	end := b.anchor.EndNanos
	isUnix := first >= Year2000*1e9
	if !isUnix && end > last {
		b.Shift(end - last)
	}
	for i, w := range b.windows {
		p := compact.ProfileIndex(i)
		if !w.isSet || !isUnix {
			h := b.Header(p)
			h.Attributes = b.AddAttributes(h.Attributes, b.ClockGuess())
		}
		if !w.isSet && end > 0 {
			b.SetWindow(p, end, end)
		}
	}
}

// ClockGuess returns the attribute of a profile whose time follows from the anchor: 0 if that is not a guess.
func (b *Builder) ClockGuess() int32 {
	b.Stats.GuessedClock = b.Stats.GuessedClock || b.anchor.Guess != ""
	return b.TextAttribute(AttributeClockGuess, b.anchor.Guess)
}

// NewScope adds a scope without a name to a resource without attributes.
func (b *Builder) NewScope() compact.ScopeIndex {
	return b.Scope(b.Resource(pcommon.NewResource(), ""), pcommon.NewInstrumentationScope(), "")
}

// InternProfile returns the profile of a scope, which it adds the first time.
func (b *Builder) InternProfile(scope compact.ScopeIndex, profile Profile) compact.ProfileIndex {
	key := profileKey{scope, profile}
	p, isKnown := b.profiles[key]
	if !isKnown {
		if b.profiles == nil {
			b.profiles = map[profileKey]compact.ProfileIndex{}
		}
		p = b.NewProfile(scope, profile)
		b.profiles[key] = p
	}
	return p
}

// NewProfile adds a profile to a scope.
func (b *Builder) NewProfile(scope compact.ScopeIndex, p Profile) compact.ProfileIndex {
	header := compact.Header{Period: p.Every}
	header.SampleType = compact.ValueType{Type: b.Dict.Strings.Intern(p.Sample.Name),
		Unit: b.Dict.Strings.Intern(p.Sample.Unit)}
	header.PeriodType = compact.ValueType{Type: b.Dict.Strings.Intern(p.Period.Name),
		Unit: b.Dict.Strings.Intern(p.Period.Unit)}
	b.windows = append(b.windows, window{})
	return b.Profile(scope, p.Shape, header)
}

// SetWindow sets the times of a profile's first and last moment. Event widens the window if an observation lies
// outside.
func (b *Builder) SetWindow(p compact.ProfileIndex, first, last uint64) {
	b.windows[p] = window{isSet: true, first: first, last: last}
}

// Widen widens the window of a profile so that it contains first and last.
func (b *Builder) Widen(p compact.ProfileIndex, first, last uint64) {
	if w := &b.windows[p]; w.isSet {
		first, last = min(first, w.first), max(last, w.last)
	}
	b.SetWindow(p, first, last)
}

// Event adds an observation, and widens the window of its profile so that it contains the timestamp.
func (b *Builder) Event(p compact.ProfileIndex, id compact.Identity, o compact.Observation) {
	b.Stats.Events++
	b.Observe(p, id, o)
	b.Widen(p, o.Timestamp, o.Timestamp)
}

// Shift moves all timestamps and windows, for clocks whose beginning is known only at the end.
func (b *Builder) Shift(nanos uint64) {
	b.ShiftTimestamps(nanos)
	for p := range b.windows {
		b.windows[p].first += nanos
		b.windows[p].last += nanos
	}
}

// CleanString returns a string of the payload as valid UTF-8, cut at the limit.
func (b *Builder) CleanString(s string) string {
	if len(s) > b.maxStringBytes {
		b.Stats.Truncated++
		s = dictionary.CutUTF8(s, b.maxStringBytes)
	}
	if !utf8.ValidString(s) {
		b.Stats.InvalidUTF8++
		return dictionary.CutUTF8(dictionary.ValidUTF8(s), b.maxStringBytes) // U+FFFD is longer than a byte
	}
	return s
}

// InternString interns a string of the payload.
func (b *Builder) InternString(s string) dictionary.StringIndex {
	return b.Dict.Strings.Intern(b.CleanString(s))
}

// maxMangledBytes bounds the names of a payload that are demangled, of which a byte takes up to a microsecond.
const maxMangledBytes = 4 << 20

// Function returns the function of an interned name. If that is a linker's name, which a profiler has not demangled, it
// becomes the system name.
func (b *Builder) Function(name dictionary.StringIndex) dictionary.Function {
	s := b.Dict.Strings.At(name)
	if !symbols.NeedsDemangling(s) {
		return dictionary.Function{Name: name}
	}
	readable, ok := b.readable[name]
	if !ok {
		readable = name
		if b.mangledBytes += len(s); b.mangledBytes <= maxMangledBytes {
			readable = b.InternString(symbols.Readable(s))
		}
		if b.readable == nil {
			b.readable = map[dictionary.StringIndex]dictionary.StringIndex{}
		}
		b.readable[name] = readable
	}
	if readable == name {
		return dictionary.Function{Name: name}
	}
	return dictionary.Function{Name: readable, SystemName: name}
}

// Frame interns a location of one line. Its strings must be valid.
func (b *Builder) Frame(f dictionary.Function, line, column int64) int32 {
	return b.frame(dictionary.Location{}, f, line, column)
}

// TypedFrame interns a location of one line with its profile.frame.type, if that is known. Its strings must be valid.
func (b *Builder) TypedFrame(f dictionary.Function, line int64, typ string) int32 {
	set := b.AddAttributes(0, b.TextAttribute(attributeFrameType, typ))
	return b.frame(dictionary.Location{Attributes: set}, f, line, 0)
}

func (b *Builder) frame(l dictionary.Location, f dictionary.Function, line, column int64) int32 {
	b.lines = append(b.lines[:0],
		dictionary.Line{Function: b.Dict.Functions.Intern(f), Line: max(line, 0), Column: max(column, 0)})
	return int32(b.Dict.Locations.Intern(l, b.lines))
}

// Attribute interns an attribute, whose strings must be valid.
func (b *Builder) Attribute(key string, value dictionary.Value) int32 {
	return int32(b.Dict.Attributes.Intern(dictionary.Attribute{Key: b.Dict.Strings.Intern(key), Value: value}))
}

// NumberAttribute interns an attribute with a number, if it is known. 0 is no attribute.
func (b *Builder) NumberAttribute(key string, value int64, isKnown bool) int32 {
	if !isKnown {
		return 0
	}
	return b.Attribute(key, dictionary.IntValue(value))
}

// TextAttribute interns an attribute with a string of the payload, if there is one. 0 is no attribute.
func (b *Builder) TextAttribute(key, value string) int32 {
	if value == "" {
		return 0
	}
	return b.Attribute(key, dictionary.StringValue(b.CleanString(value)))
}

// AddAttributes interns a set and more attributes. Those that are 0 are left out.
func (b *Builder) AddAttributes(set dictionary.AttributeSetIndex, more ...int32) dictionary.AttributeSetIndex {
	b.attributes = append(b.attributes[:0], b.Dict.AttributeSets.At(set)...)
	for _, attribute := range more {
		if attribute != 0 {
			b.attributes = append(b.attributes, attribute)
		}
	}
	return b.Dict.AttributeSets.Intern(b.attributes)
}

// CutLast cuts the last word off a line of text, and the blanks around it.
func CutLast(s string) (before, last string) {
	s = strings.TrimRight(s, " \t")
	at := strings.LastIndexAny(s, " \t") + 1
	return strings.TrimRight(s[:at], " \t"), s[at:]
}

// TraceParent returns the link that a traceparent of W3C Trace Context names: version-trace-span-flags.
func TraceParent(s string) (dictionary.Link, bool) {
	parts := strings.SplitN(strings.TrimSpace(s), "-", 5)
	if len(s) > 512 || len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || len(parts[1]) != 32 ||
		len(parts[2]) != 16 {
		return dictionary.Link{}, false
	}
	return dictionary.ParseLink(parts[1], parts[2])
}

// Unix times in seconds: a number outside of them is not a timestamp.
const (
	Year2000 = 946684800
	Year2100 = 4102444800
)

// UnixNanos converts a Unix time in seconds, milliseconds, microseconds or nanoseconds to nanoseconds. It returns 0 if
// v is not a time from 2000 to 2100 in any of these units.
func UnixNanos(v int64) uint64 {
	for unit := int64(1e9); unit >= 1; unit /= 1000 {
		if perSecond := int64(1e9) / unit; v >= Year2000*perSecond && v < Year2100*perSecond {
			return uint64(v * unit)
		}
	}
	return 0
}

// ParseDecimal parses a number that may have a sign and a fraction, of which nine digits count: 12, 12.5, 12., -3. It
// is exact, which a float64 is not for a Unix time with its nanoseconds.
func ParseDecimal[T string | []byte](s T) (whole, nanos int64, ok bool) {
	sign := int64(1)
	if len(s) > 0 && s[0] == '-' {
		s, sign = s[1:], -1
	}
	at, unit := 0, int64(1e9)
	for ; at < len(s) && isDigit(s[at]); at++ {
		if whole > math.MaxInt64/10 {
			return 0, 0, false
		}
		if whole = 10*whole + int64(s[at]-'0'); whole < 0 {
			return 0, 0, false
		}
	}
	if ok = at > 0; at < len(s) && s[at] == '.' {
		for at++; at < len(s) && isDigit(s[at]); at++ {
			unit /= 10
			nanos += unit * int64(s[at]-'0')
		}
	}
	return sign * whole, sign * nanos, ok && at == len(s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Scaled returns v × factor, rounded, as exactly as v is: the product of a Unix time is beyond the integers of a
// float64. It is false if the product is not a positive int64.
func Scaled(v float64, factor int64) (int64, bool) {
	whole, fraction := math.Modf(v)
	if !(v >= 0 && v < math.MaxInt64/float64(factor)) {
		return 0, false
	}
	scaled := int64(whole)*factor + int64(math.Round(fraction*float64(factor)))
	return scaled, scaled >= 0
}

// ShortError returns err, or if its message is long, the beginning of the first line: a parser's error can list whole
// tables.
func ShortError(err error) error {
	const longest = 300
	line, _, _ := strings.Cut(dictionary.ValidUTF8(err.Error()), "\n")
	line = dictionary.CutUTF8(line, longest)
	if line == err.Error() {
		return err
	}
	return errors.New(line)
}
