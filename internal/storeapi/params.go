// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package storeapi

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

// params are the parameters of a query, and which of them somebody has asked for.
type params struct {
	values url.Values
	asked  map[string]bool
}

// maxParams bounds how many parameters a query has.
const maxParams = 100

func parseParams(query string) (params, error) {
	if strings.Count(query, "&") >= maxParams {
		return params{}, badRequest(fmt.Sprintf("the query has more than %d parameters", maxParams), "")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return params{}, badRequest("the query cannot be read: "+err.Error(), "escape special characters with %")
	}
	return params{values: values, asked: map[string]bool{}}, nil
}

func (p params) get(key string) string {
	p.asked[key] = true
	return p.values.Get(key)
}

// unused returns an error where the query has a key that nobody asked for.
func (p params) unused() error {
	for key := range p.values {
		if !p.asked[key] {
			return badRequest(fmt.Sprintf("unknown parameter %q", shorten(key)), "attributes are filtered by attr.<key>=<value>; see the README for the parameters")
		}
	}
	return nil
}

func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// number reads a whole number.
func (p params) number(key string, without, least, most int) (int, error) {
	text := p.get(key)
	if text == "" {
		return without, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badRequest(fmt.Sprintf("`%s` must be a number from %d to %d, found %q", key, least, most, shorten(text)), "")
	}
	return n, nil
}

// oneOf reads one of several words, the first by default.
func (p params) oneOf(key string, words ...string) (string, error) {
	text := p.get(key)
	if text == "" {
		return words[0], nil
	}
	if !slices.Contains(words, text) {
		return "", badRequest(fmt.Sprintf("`%s` must be one of %s, found %q", key, strings.Join(words, ", "), shorten(text)), "")
	}
	return text, nil
}

// selection reads what the query is about. Keys are read with the prefix; what is not there is taken from inherited.
func (p params) selection(now time.Time, prefix string, inherited *store.Selection) (store.Selection, error) {
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
	state, err := p.oneOf(prefix+"state", "mean", "last")
	if err != nil {
		return sel, err
	}
	sel.LastState = state == "last" || inherited != nil && inherited.LastState && !p.values.Has(prefix+"state")
	if err := p.time(now, prefix, &sel); err != nil {
		return sel, err
	}
	return sel, p.attributes(prefix, &sel)
}

func (p params) attributes(prefix string, sel *store.Selection) error {
	var found []store.Attribute
	for key, values := range p.values {
		name, is := strings.CutPrefix(key, prefix+"attr.")
		if !is {
			continue
		}
		p.asked[key] = true
		if name == "" {
			return badRequest("an attribute needs a key", "attr.<key>=<value>")
		}
		for _, value := range values {
			found = append(found, store.Attribute{Key: name, Value: value})
		}
	}
	// Those that the base names replace the selection's of the same key.
	kept := slices.DeleteFunc(slices.Clone(sel.Attributes), func(a store.Attribute) bool {
		return slices.ContainsFunc(found, func(b store.Attribute) bool { return a.Key == b.Key })
	})
	sel.Attributes = append(kept, found...)
	return nil
}

// time reads from and until, or seconds.
func (p params) time(now time.Time, prefix string, sel *store.Selection) error {
	from, until, seconds := p.get(prefix+"from"), p.get(prefix+"until"), p.get(prefix+"seconds")
	if seconds != "" {
		if from != "" {
			return badRequest("`from` and `seconds` do not go together", "leave one of them out")
		}
		n, err := strconv.ParseFloat(seconds, 64)
		if err != nil || !(n > 0 && n <= math.MaxInt32) {
			return badRequest(fmt.Sprintf("`%sseconds` must be a positive number, found %q", prefix, shorten(seconds)), "")
		}
		end := now.UnixNano()
		sel.Until = 0
		if until != "" {
			if end, err = parseTime(prefix+"until", until); err != nil {
				return err
			}
			sel.Until = end
		}
		sel.From = max(end-int64(n*1e9), 1)
		return nil
	}
	var err error
	if from != "" {
		if sel.From, err = parseTime(prefix+"from", from); err != nil {
			return err
		}
	}
	if until != "" {
		if sel.Until, err = parseTime(prefix+"until", until); err != nil {
			return err
		}
	}
	if sel.Until != 0 && sel.Until <= sel.From {
		return badRequest("`"+prefix+"until` must be after `"+prefix+"from`", "")
	}
	return nil
}

// parseTime reads RFC 3339, or Unix time in seconds, milliseconds, microseconds or nanoseconds, told by its digits.
func parseTime(key, text string) (int64, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < math.MaxInt64 {
		switch {
		case n < 1e11:
			return int64(n * 1e9), nil
		case n < 1e14:
			return int64(n * 1e6), nil
		case n < 1e17:
			return int64(n) * 1000, nil
		}
		if exact, err := strconv.ParseInt(text, 10, 64); err == nil {
			return exact, nil
		}
		return int64(n), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, badRequest(fmt.Sprintf("`%s` is not a time: %q", key, shorten(text)),
			"write 2026-01-31T12:00:00Z, or Unix time in seconds or milliseconds")
	}
	return t.UnixNano(), nil
}
