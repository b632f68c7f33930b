// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package events is what the translators of other producers' formats share: a Builder over the common assembler, which
// repairs texts and keeps the window of each profile, and the Anchor of a clock that is not a wall clock.
package events

import (
	"errors"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// ErrTooLarge is wrapped by the error for a payload that exceeds a limit of its format.
var ErrTooLarge = errors.New("too large")

// DefaultMaxTextBytes is the longest text by default.
const DefaultMaxTextBytes = 64 << 10

// Anchor ties the clock of a recording to the wall clock, where the recording itself does not.
type Anchor struct {
	// EndNanos is when the recording ended, in nanoseconds since the epoch; 0 is unknown.
	EndNanos uint64
	// Guess says whence EndNanos was guessed, for example arrival. It is empty where the sender stated the time.
	Guess string
}

// Options are what all formats with a clock of their own are read by.
type Options struct {
	// MaxTextBytes is the longest text; a longer one is cut. 0 is the default.
	MaxTextBytes int
	// Anchor is when the recording ended.
	Anchor Anchor
}

// AttributeClockGuess is the profile attribute that says whence the times of a profile were guessed.
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
)

// Stats counts what a translator did.
type Stats struct {
	// Events is the number of observations, Dropped of records that could not be understood.
	Events, Dropped int
	// InvalidUTF8 and Truncated count the texts that were put right.
	InvalidUTF8, Truncated int
	// GuessedClock reports that times were anchored at a guess.
	GuessedClock bool
}

// Type is a sample type or period type by name.
type Type struct{ Name, Unit string }

// Profile says what the samples of a profile are.
type Profile struct {
	Sample, Period Type
	Every          int64 // the period
	Shape          compact.Shape
}

// Builder assembles profiles. Strings that it is given may be parts of the payload.
type Builder struct {
	compact.Assembler
	Dict  *profiledict.Dictionary
	Stats Stats

	anchor       Anchor
	maxTextBytes int
	// windows are those of the profiles with timestamps, by index.
	windows []window

	lines []profiledict.Line
}

type window struct {
	isSet       bool
	first, last uint64
}

// Reset empties the builder.
func (b *Builder) Reset(o Options) {
	b.Assembler.Reset()
	b.Dict, b.Stats, b.anchor, b.windows = b.Dictionary(), Stats{}, o.Anchor, b.windows[:0]
	b.maxTextBytes = o.MaxTextBytes
	if b.maxTextBytes <= 0 {
		b.maxTextBytes = DefaultMaxTextBytes
	}
}

// GuessClock notes that the times of all profiles follow from the anchor.
func (b *Builder) GuessClock() {
	if b.anchor.Guess != "" {
		b.Stats.GuessedClock = true
		set := b.Dict.AttributeSets.Intern([]int32{b.Attribute(AttributeClockGuess, profiledict.StringValue(b.anchor.Guess))})
		for p := range b.windows {
			b.Header(compact.ProfileIndex(p)).Attributes = set
		}
	}
}

// NewScope adds a scope without a name to a resource without attributes.
func (b *Builder) NewScope() compact.ScopeIndex {
	return b.Scope(b.Resource(pcommon.NewResource(), ""), pcommon.NewInstrumentationScope(), "")
}

// NewProfile adds a profile to a scope.
func (b *Builder) NewProfile(scope compact.ScopeIndex, p Profile) compact.ProfileIndex {
	header := compact.Header{Period: p.Every}
	header.SampleType = compact.ValueType{Type: b.Dict.Strings.Intern(p.Sample.Name), Unit: b.Dict.Strings.Intern(p.Sample.Unit)}
	header.PeriodType = compact.ValueType{Type: b.Dict.Strings.Intern(p.Period.Name), Unit: b.Dict.Strings.Intern(p.Period.Unit)}
	b.windows = append(b.windows, window{})
	return b.Profile(scope, p.Shape, header)
}

// SetWindow sets a profile's time and duration, to be widened by Event where an observation lies outside.
func (b *Builder) SetWindow(p compact.ProfileIndex, first, last uint64) {
	b.windows[p] = window{isSet: true, first: first, last: last}
}

// Widen makes the window of a profile contain first and last.
func (b *Builder) Widen(p compact.ProfileIndex, first, last uint64) {
	if w := &b.windows[p]; w.isSet {
		first, last = min(first, w.first), max(last, w.last)
	}
	b.SetWindow(p, first, last)
}

// Event adds an observation, and makes the window of its profile contain it.
func (b *Builder) Event(p compact.ProfileIndex, id compact.Identity, o compact.Observation) {
	b.Stats.Events++
	b.Observe(p, id, o)
	b.Widen(p, o.Timestamp, o.Timestamp)
}

// Shift moves all timestamps and windows, for clocks whose beginning is known at the end only.
func (b *Builder) Shift(nanos uint64) {
	b.ShiftTimestamps(nanos)
	for p := range b.windows {
		b.windows[p].first += nanos
		b.windows[p].last += nanos
	}
}

// Finish writes the windows and returns what was added. Strings share no memory with the payload afterwards if plainBytes,
// its size, is far more than they are.
func (b *Builder) Finish(plainBytes int) pprofile.Profiles {
	for p, w := range b.windows {
		if !w.isSet {
			continue
		}
		h := b.Header(compact.ProfileIndex(p))
		h.Time, h.DurationNanos = pcommon.Timestamp(w.first), w.last-w.first+1
	}
	if b.Dict.StringBytes()*2 < plainBytes {
		b.Dict.DetachStrings()
	}
	return b.Build()
}

// Text makes a text of the payload valid: it is cut at the limit, and made UTF-8.
func (b *Builder) Text(s string) string {
	if len(s) > b.maxTextBytes {
		b.Stats.Truncated++
		cut := b.maxTextBytes
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	if !utf8.ValidString(s) {
		b.Stats.InvalidUTF8++
		return profiledict.ValidUTF8(s)
	}
	return s
}

// Frame interns a location of one line. Its texts must be valid.
func (b *Builder) Frame(f profiledict.Function, line, column int64) int32 {
	b.lines = append(b.lines[:0], profiledict.Line{Function: b.Dict.Functions.Intern(f), Line: max(line, 0), Column: max(column, 0)})
	return int32(b.Dict.Locations.Intern(profiledict.Location{}, b.lines))
}

// Attribute interns an attribute, whose texts must be valid.
func (b *Builder) Attribute(key string, value profiledict.Value) int32 {
	return int32(b.Dict.Attributes.Intern(profiledict.Attribute{Key: b.Dict.Strings.Intern(key), Value: value}))
}

// IntAttribute interns an attribute with a number.
func (b *Builder) IntAttribute(key string, value int64) int32 {
	return b.Attribute(key, profiledict.IntValue(value))
}

// TextAttribute interns an attribute with a text of the payload.
func (b *Builder) TextAttribute(key, value string) int32 {
	return b.Attribute(key, profiledict.StringValue(b.Text(value)))
}

// TraceParent returns the link that a traceparent of W3C Trace Context names: version-trace-span-flags.
func TraceParent(text string) (profiledict.Link, bool) {
	parts := strings.SplitN(strings.TrimSpace(text), "-", 5)
	if len(text) > 512 || len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return profiledict.Link{}, false
	}
	return profiledict.ParseLink(parts[1], parts[2])
}

// The Unix times of 2000 and 2100, in seconds: a number outside of them is no timestamp.
const year2000, year2100 = 946684800, 4102444800

// UnixNanos converts a Unix time in seconds, milliseconds, microseconds or nanoseconds to nanoseconds. It returns 0 if v is not
// a time from 2000 to 2100 in any of these units.
func UnixNanos(v int64) uint64 {
	for unit := int64(1e9); unit >= 1; unit /= 1000 {
		if perSecond := int64(1e9) / unit; v >= year2000*perSecond && v < year2100*perSecond {
			return uint64(v * unit)
		}
	}
	return 0
}
