// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Params are the parameters of a query. The methods that read one keep the first error in err, so that a handler checks
// once after it has read all that it needs.
type Params struct {
	values url.Values
	used   map[string]bool
	err    error
}

const maxParams = 100

// ParseParams reads the query of a URL.
func ParseParams(query string) (*Params, error) {
	if strings.Count(query, "&") >= maxParams {
		return nil, BadRequest(fmt.Sprintf("the query has more than %d parameters", maxParams), "")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, BadRequest("the query cannot be read: "+err.Error(), "escape special characters with %")
	}
	p := NewParams()
	p.values = values
	return p, nil
}

// NewParams returns the parameters of a query that came by another protocol, whose arguments Set and Add state.
func NewParams() *Params { return &Params{values: url.Values{}, used: map[string]bool{}} }

// Set sets a parameter, unless the value is empty.
func (p *Params) Set(key, value string) {
	if value != "" {
		p.values.Set(key, value)
	}
}

// Add adds a value to a parameter.
func (p *Params) Add(key, value string) { p.values.Add(key, value) }

// Get returns a parameter, or an empty string. Two values are an error: the answer would be about the first.
func (p *Params) Get(key string) string {
	p.used[key] = true
	values := p.values[key]
	if i := slices.IndexFunc(values, func(value string) bool { return value != values[0] }); i > 0 {
		p.Fail(BadRequest(fmt.Sprintf("`%s` is set more than once: %q and %q", key, model.Shorten(values[0]),
			model.Shorten(values[i])), "ask once for each"))
	}
	return p.values.Get(key)
}

// SetDefault sets a parameter that the query lacks.
func (p *Params) SetDefault(key, value string) {
	if p.values.Get(key) == "" {
		p.values.Set(key, value)
	}
}

// Fail keeps the first error.
func (p *Params) Fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// Check returns the first error, or that of a key that was not read: a misspelt one would show other profiles than the
// user expects.
func (p *Params) Check() error {
	if p.err != nil {
		return p.err
	}
	for key := range p.values {
		if !p.used[key] {
			return BadRequest(fmt.Sprintf("unknown parameter %q", model.Shorten(key)),
				"attributes are filtered by attr.<key>=<value>; see the README for the parameters")
		}
	}
	return nil
}

// Int reads a whole number.
func (p *Params) Int(key string, def, least, limit int) int {
	value := p.Get(key)
	if value == "" {
		return def
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > limit {
		p.Fail(BadRequest(fmt.Sprintf("`%s` must be a number from %d to %d, found %q", key, least, limit,
			model.Shorten(value)), ""))
	}
	return n
}

// OneOf reads one of several words, the first by default.
func (p *Params) OneOf(key string, words ...string) string {
	value := p.Get(key)
	if value == "" {
		return words[0]
	}
	if !slices.Contains(words, value) {
		p.Fail(BadRequest(fmt.Sprintf("`%s` must be one of %s, found %q", key, strings.Join(words, ", "),
			model.Shorten(value)), ""))
	}
	return value
}

// Selection reads which samples the query selects. Keys are read with the prefix; a missing one has the value of
// inherited.
func (p *Params) Selection(now time.Time, prefix string, inherited *model.Selection) model.Selection {
	sel := model.Selection{}
	if inherited != nil {
		sel = *inherited
	}
	for key, field := range map[string]*string{
		"service": &sel.Service, "profile": &sel.Profile, "type": &sel.Type, "group_by": &sel.GroupBy,
	} {
		if value := p.Get(prefix + key); value != "" {
			*field = value
		}
	}
	sel.Service, sel.Profile = kind.CutName(sel.Service), kind.CutName(sel.Profile) // as they are kept
	if inherited != nil && (p.values.Has(prefix+"service") || p.values.Has(prefix+"profile")) &&
		!p.values.Has(prefix+"type") &&
		sel.Profile != inherited.Profile {
		sel.Type = ""
	}
	state := p.OneOf(prefix+"state", "mean", "last")
	sel.LastState = state == "last" || inherited != nil && inherited.LastState && !p.values.Has(prefix+"state")
	p.time(now, prefix, &sel)
	p.attributes(prefix, &sel)
	return sel
}

func (p *Params) attributes(prefix string, sel *model.Selection) {
	var found []model.Attribute
	for key, values := range p.values {
		name, is := strings.CutPrefix(key, prefix+"attr.")
		if !is {
			continue
		}
		p.used[key] = true
		if name == "" {
			p.Fail(BadRequest("an attribute needs a key", "attr.<key>=<value>"))
			return
		}
		for _, value := range values {
			found = append(found, model.Attribute{Key: name, Value: value})
		}
	}
	// Attributes of the base replace those of the selection with the same key.
	kept := slices.DeleteFunc(slices.Clone(sel.Attributes), func(a model.Attribute) bool {
		return slices.ContainsFunc(found, func(b model.Attribute) bool { return a.Key == b.Key })
	})
	sel.Attributes = append(kept, found...)
}

// time reads the selected time. One that begins at a given time ends now unless its end is given, too: a state that was
// there a moment ago holds on, and its mean must not count the future.
func (p *Params) time(now time.Time, prefix string, sel *model.Selection) {
	value := p.Get(prefix + "seconds")
	if value == "" {
		sel.From = p.moment(prefix+"from", now, sel.From)
		if sel.Until = p.moment(prefix+"until", now, sel.Until); sel.Until == 0 && p.Get(prefix+"until") != "" {
			sel.Until = 1 // 0 is no bound
		}
		if sel.Until == 0 && sel.From != 0 && sel.From < now.UnixNano() && p.Get(prefix+"from") != "" {
			sel.Until = now.UnixNano()
		}
		if sel.Until != 0 && sel.Until <= sel.From {
			p.Fail(BadRequest("`"+prefix+"until` must be after `"+prefix+"from`", ""))
		}
		return
	}
	if p.Get(prefix+"from") != "" {
		p.Fail(BadRequest("`from` and `seconds` do not go together", "leave one of them out"))
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || !(seconds > 0 && seconds <= math.MaxInt32) {
		p.Fail(BadRequest(fmt.Sprintf("`%sseconds` must be a positive number up to %d, found %q", prefix, math.MaxInt32,
			model.Shorten(value)), "write 300 for five minutes, or from=now-5m"))
		return
	}
	sel.Until = p.moment(prefix+"until", now, now.UnixNano())
	sel.From = max(sel.Until-int64(seconds*1e9), 1)
}

// moment reads a time in Unix nanoseconds.
func (p *Params) moment(key string, now time.Time, without int64) int64 {
	value := p.Get(key)
	if value == "" {
		return without
	}
	t, err := ParseTime(value, now)
	if err != nil {
		p.Fail(BadRequest(fmt.Sprintf("`%s`: %v", key, err), ""))
	}
	return t
}

// ParseTime reads a time in Unix nanoseconds: RFC 3339, now or now-1h, or Unix time in seconds, milliseconds,
// microseconds or nanoseconds, depending on its size.
func ParseTime(s string, now time.Time) (int64, error) {
	if t, ok := unixTime(s); ok {
		return t, nil
	}
	ago, isRelative := strings.CutPrefix(s, "now-")
	if d, err := parseAgo(ago); s == "now" || isRelative && err == nil && d >= 0 {
		return max(now.Add(-d).UnixNano(), 0), nil
	}
	// A + that is not escaped in a URL is a blank.
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(s, " ", "+", 1)); err == nil && t.Year() >= 1970 && t.Year() <= 2200 {
		return t.UnixNano(), nil
	}
	if isRelative && config.IsTooLong(ago) {
		return 0, fmt.Errorf("%q is too long ago: at most now-%dh", model.Shorten(s), config.MaxHours)
	}
	return 0, fmt.Errorf("%q is not a time: write 2026-01-31T12:00:00Z, now-1h, or Unix time in seconds or milliseconds",
		model.Shorten(s))
}

// parseAgo reads a duration, in days too.
func parseAgo(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok && !config.IsTooLong(s) {
		n, err := strconv.ParseUint(days, 10, 32)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

func unixTime(s string) (nanos int64, ok bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n < math.MaxInt64) {
		return 0, false
	}
	unit := int64(1)
	switch {
	case n < 1e11:
		unit = 1e9
	case n < 1e14:
		unit = 1e6
	case n < 1e17:
		unit = 1e3
	default:
		if exact, err := strconv.ParseInt(s, 10, 64); err == nil {
			return exact, true
		}
	}
	// A float near today's nanoseconds is a multiple of 256: only the fraction is multiplied as one.
	whole, fraction := math.Modf(n)
	return int64(whole)*unit + int64(fraction*float64(unit)), int64(whole) < math.MaxInt64/unit
}
