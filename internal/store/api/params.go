// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// params are the parameters of a query. The methods that read one keep the first error in err, so that a handler checks
// once after it has read all that it needs.
type params struct {
	values url.Values
	used   map[string]bool
	err    error
}

// maxParams bounds how many parameters a query has.
const maxParams = 100

func parseParams(query string) (*params, error) {
	if strings.Count(query, "&") >= maxParams {
		return nil, badRequest(fmt.Sprintf("the query has more than %d parameters", maxParams), "")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequest("the query cannot be read: "+err.Error(), "escape special characters with %")
	}
	return &params{values: values, used: map[string]bool{}}, nil
}

func (p *params) get(key string) string {
	p.used[key] = true
	return p.values.Get(key)
}

// fail keeps the first error.
func (p *params) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// check returns the first error, or that of a key that was not read: a misspelt one would show other profiles than the user expects.
func (p *params) check() error {
	if p.err != nil {
		return p.err
	}
	for key := range p.values {
		if !p.used[key] {
			return badRequest(fmt.Sprintf("unknown parameter %q", store.Shorten(key)), "attributes are filtered by attr.<key>=<value>; see the README for the parameters")
		}
	}
	return nil
}

// intParam reads a whole number.
func (p *params) intParam(key string, def, least, limit int) int {
	text := p.get(key)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > limit {
		p.fail(badRequest(fmt.Sprintf("`%s` must be a number from %d to %d, found %q", key, least, limit, store.Shorten(text)), ""))
	}
	return n
}

// oneOf reads one of several words, the first by default.
func (p *params) oneOf(key string, words ...string) string {
	text := p.get(key)
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		p.fail(badRequest(fmt.Sprintf("`%s` must be one of %s, found %q", key, strings.Join(words, ", "), store.Shorten(text)), ""))
	}
	return text
}

// selection reads which samples the query selects. Keys are read with the prefix; a missing one has the value of
// inherited.
func (p *params) selection(now time.Time, prefix string, inherited *store.Selection) store.Selection {
	sel := store.Selection{}
	if inherited != nil {
		sel = *inherited
	}
	for key, field := range map[string]*string{
		"service": &sel.Service, "profile": &sel.Profile, "type": &sel.Type, "group_by": &sel.GroupBy,
	} {
		if text := p.get(prefix + key); text != "" {
			*field = text
		}
	}
	if inherited != nil && (p.values.Has(prefix+"service") || p.values.Has(prefix+"profile")) && !p.values.Has(prefix+"type") &&
		sel.Profile != inherited.Profile {
		sel.Type = ""
	}
	state := p.oneOf(prefix+"state", "mean", "last")
	sel.LastState = state == "last" || inherited != nil && inherited.LastState && !p.values.Has(prefix+"state")
	p.time(now, prefix, &sel)
	p.attributes(prefix, &sel)
	return sel
}

func (p *params) attributes(prefix string, sel *store.Selection) {
	var found []store.Attribute
	for key, values := range p.values {
		name, is := strings.CutPrefix(key, prefix+"attr.")
		if !is {
			continue
		}
		p.used[key] = true
		if name == "" {
			p.fail(badRequest("an attribute needs a key", "attr.<key>=<value>"))
			return
		}
		for _, value := range values {
			found = append(found, store.Attribute{Key: name, Value: value})
		}
	}
	// Attributes of the base replace those of the selection with the same key.
	kept := slices.DeleteFunc(slices.Clone(sel.Attributes), func(a store.Attribute) bool {
		return slices.ContainsFunc(found, func(b store.Attribute) bool { return a.Key == b.Key })
	})
	sel.Attributes = append(kept, found...)
}

// time reads from and until, or seconds.
func (p *params) time(now time.Time, prefix string, sel *store.Selection) {
	text := p.get(prefix + "seconds")
	if text == "" {
		sel.From = p.moment(prefix+"from", sel.From)
		sel.Until = p.moment(prefix+"until", sel.Until)
		if sel.Until != 0 && sel.Until <= sel.From {
			p.fail(badRequest("`"+prefix+"until` must be after `"+prefix+"from`", ""))
		}
		return
	}
	if p.get(prefix+"from") != "" {
		p.fail(badRequest("`from` and `seconds` do not go together", "leave one of them out"))
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= math.MaxInt32) {
		p.fail(badRequest(fmt.Sprintf("`%sseconds` must be a positive number, found %q", prefix, store.Shorten(text)), ""))
		return
	}
	sel.Until = p.moment(prefix+"until", 0)
	end := sel.Until
	if end == 0 {
		end = now.UnixNano()
	}
	sel.From = max(end-int64(seconds*1e9), 1)
}

// moment reads a time in Unix nanoseconds.
func (p *params) moment(key string, without int64) int64 {
	text := p.get(key)
	if text == "" {
		return without
	}
	t, err := parseTime(key, text)
	if err != nil {
		p.fail(err)
	}
	return t
}

// parseTime reads RFC 3339, or Unix time in seconds, milliseconds, microseconds or nanoseconds, depending on its size.
func parseTime(key, text string) (int64, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < math.MaxInt64 {
		unit := int64(1)
		switch {
		case n < 1e11:
			unit = 1e9
		case n < 1e14:
			unit = 1e6
		case n < 1e17:
			unit = 1e3
		default:
			if exact, err := strconv.ParseInt(text, 10, 64); err == nil {
				return exact, nil
			}
		}
		// A float near today's nanoseconds is a multiple of 256: only the fraction is multiplied as one.
		whole, fraction := math.Modf(n)
		if int64(whole) < math.MaxInt64/unit {
			return int64(whole)*unit + int64(fraction*float64(unit)), nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, badRequest(fmt.Sprintf("`%s` is not a time: %q", key, store.Shorten(text)),
			"write 2026-01-31T12:00:00Z, or Unix time in seconds or milliseconds")
	}
	return t.UnixNano(), nil
}
