// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Values is a converter that changes nothing, and remembers the configuration: the Collector's error for a duration or
// a number of bytes that it cannot read names neither the value nor how it is written. It refuses durations without a
// unit, which the Collector takes for nanoseconds, and numbers that are too large.
type Values struct {
	mu   sync.Mutex
	last *confmap.Conf
}

// Factory returns the factory of the converter.
func (v *Values) Factory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return v })
}

// Convert remembers the configuration.
func (v *Values) Convert(_ context.Context, conf *confmap.Conf) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = conf
	return misread(conf)
}

// durationKey matches the keys of components that are durations. Those of `service` are milliseconds.
var durationKey = regexp.MustCompile(`^(receivers|processors|exporters|connectors|extensions)::.*(::|_)` +
	`(interval|timeout|delay|wait|duration|elapsed_time|retention|expiry|ttl|wait_threshold|period)$`)

// extensionKey matches the keys of components that name an extension.
var extensionKey = regexp.MustCompile(
	`^(?:receivers|processors|exporters|connectors|extensions)::([^:]+)::.*(?:auth::authenticator|sending_queue::storage|file::storage)$`)

// headerKey matches the keys of components that become headers of HTTP.
var headerKey = regexp.MustCompile(
	`^(receivers|processors|exporters|connectors|extensions)::.*::(headers::[^:]+|(\w+_)?token)$`)

// listenerKey matches the keys of addresses to listen on, with the component of a pipeline or the extension.
var listenerKey = regexp.MustCompile(`^(?:(?:receivers|exporters)::([^:]+)::(?:.*::)?(?:server|status|protocols::\w+)|` +
	`extensions::((?:health_check|zpages|pprof)(?:/[^:]+)?))::endpoint$`)

// sharedAddresses returns an error for each server whose address is that of another one: validate starts none of them.
func sharedAddresses(conf *confmap.Conf, used, extensions []any) (errs []error) {
	type listener struct{ key, host, port string }
	var known []listener
	for _, key := range slices.Sorted(slices.Values(conf.AllKeys())) {
		name := listenerKey.FindStringSubmatch(key)
		if name == nil || !slices.Contains(used, any(name[1])) && !slices.Contains(extensions, any(name[2])) {
			continue
		}
		address, _ := conf.Get(key).(string)
		host, port, err := net.SplitHostPort(strings.Replace(address, "localhost:", "127.0.0.1:", 1))
		if err != nil || port == "0" {
			continue
		}
		isAny := func(host string) bool { return slices.Contains([]string{"", "0.0.0.0", "::"}, host) }
		shown := strings.ReplaceAll(key, confmap.KeyDelimiter, ".")
		for _, other := range known {
			if port == other.port && (host == other.host || isAny(host) || isAny(other.host)) {
				errs = append(errs, fmt.Errorf("`%s`: %s listens on %s already: choose another port", shown, other.key, address))
			}
		}
		known = append(known, listener{shown, host, port})
	}
	return errs
}

// misread returns an error for each extension that a component of a pipeline names and the service does not have, for
// each address that two servers have, for each header with a line break, for each duration that is a small number, as
// nobody means so few nanoseconds, and for each number that is too large: the Collector takes it for the most negative
// one.
func misread(conf *confmap.Conf) error {
	var errs []error
	extensions, _ := conf.Get("service::extensions").([]any)
	used := slices.Clone(extensions)
	for _, key := range conf.AllKeys() {
		if list, ok := conf.Get(key).([]any); ok && strings.HasPrefix(key, "service::pipelines::") {
			used = append(used, list...)
		}
	}
	errs = append(errs, sharedAddresses(conf, used, extensions)...)
	for _, key := range conf.AllKeys() {
		shown := strings.ReplaceAll(key, confmap.KeyDelimiter, ".")
		switch value := conf.Get(key).(type) {
		case string: // validate does not start what looks the extension up
			name := extensionKey.FindStringSubmatch(key)
			if strings.ContainsAny(value, "\r\n") && headerKey.MatchString(key) {
				errs = append(errs, fmt.Errorf("`%s` must not have a line break, which HTTP refuses: remove it from the file or the "+
					"environment variable", shown))
			}
			if value != "" && name != nil && slices.Contains(used, any(name[1])) && !slices.Contains(extensions, any(value)) {
				errs = append(errs, fmt.Errorf("`%s`: add the extension %q to `service.extensions`", shown, value))
			}
		case int:
			if 0 < value && value < int(time.Millisecond) && durationKey.MatchString(key) {
				errs = append(errs, fmt.Errorf("`%s`: %d has no unit, and would be nanoseconds: write %ds", shown, value, value))
			}
		case float64:
			if math.Abs(value) >= math.MaxInt64 {
				errs = append(errs, fmt.Errorf("`%s`: %g is too large: at most %d", shown, value, math.MaxInt64))
			}
		case uint64: // which YAML has only above that
			errs = append(errs, fmt.Errorf("`%s`: %d is too large: at most %d", shown, value, math.MaxInt64))
		}
	}
	return errors.Join(errs...)
}

// valueFault matches the part of an error about a duration, a whole number, a list, a string or a truth value, with the
// end of its key.
var valueFault = regexp.MustCompile(
	`'([^']+)' (?:time: (?:invalid duration|unknown unit|missing unit)|` +
		`expected type '(u?int)\d*', got unconvertible type 'string'|source data must be an (array) or slice, got string|` +
		`expected type '(string)', got unconvertible type 'int'|` +
		`expected type '(bool)', got unconvertible type 'string')`)

// keyIn turns a key of an error, such as pipelines[profiles].exporters, into that of a configuration.
var keyIn = strings.NewReplacer(".", confmap.KeyDelimiter, "[", confmap.KeyDelimiter, "]", "")

// Explain returns a line for each duration, number, list and truth value that an error is about: key, value, and how it
// is written.
func (v *Values) Explain(message string) (lines []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		return nil
	}
	keys := v.last.AllKeys()
	slices.Sort(keys)
	for _, fault := range valueFault.FindAllStringSubmatch(message, -1) {
		explain := explainDuration
		switch {
		case fault[2] != "":
			explain = func(value string) string { return explainNumber(value, unitOf(fault[1])) }
		case fault[3] != "":
			explain = func(value string) string { return fmt.Sprintf("not a list: write [%s]", value) }
		case fault[4] != "" && strings.HasSuffix(fault[1], "endpoint"):
			explain = func(value string) string { return fmt.Sprintf("a port without a host: write localhost:%s", value) }
		case fault[5] != "":
			explain = explainBool
		case fault[4] != "":
			explain = func(value string) string { return "a number: write it in quotes" }
		}
		suffix := confmap.KeyDelimiter + keyIn.Replace(fault[1])
		for _, key := range keys {
			value, ok := v.last.Get(key).(string)
			if number, isNumber := v.last.Get(key).(int); isNumber && fault[4] != "" {
				value, ok = strconv.Itoa(number), true
			}
			if !ok || !strings.HasSuffix(confmap.KeyDelimiter+key, suffix) {
				continue
			}
			if how := explain(value); how != "" {
				lines = append(lines, fmt.Sprintf("`%s`: %q is %s", strings.ReplaceAll(key, confmap.KeyDelimiter, "."), value, how))
			}
		}
	}
	return lines
}

// These match durations as Go writes them, days and weeks, and numbers of bytes with a unit.
var (
	inGo    = regexp.MustCompile(`^((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)
	inDays  = regexp.MustCompile(`^(\d+) ?(d|w|days?|weeks?)$`)
	inUnits = regexp.MustCompile(`^(\d+) ?([kmgt])(i?b?)$`)
)

// MaxHours is the longest duration.
const MaxHours = math.MaxInt64 / int64(time.Hour)

// IsTooLong reports whether a text is a duration, or days or weeks, and longer than MaxHours.
func IsTooLong(text string) bool {
	_, err := time.ParseDuration(text)
	return err != nil && inGo.MatchString(text) || hoursOfDays(text) > float64(MaxHours)
}

// hoursOfDays returns the hours of days or weeks, or 0 if a text is neither.
func hoursOfDays(text string) float64 {
	match := inDays.FindStringSubmatch(strings.ToLower(text))
	switch {
	case match == nil:
		return 0
	case match[2][0] == 'w':
		return 7 * 24 * number(match[1])
	}
	return 24 * number(match[1])
}

func explainDuration(value string) string {
	if _, err := time.ParseDuration(value); err == nil {
		return ""
	}
	if IsTooLong(value) {
		return fmt.Sprintf("too long: at most %dh", MaxHours)
	}
	example := "1h30m"
	if hours := hoursOfDays(value); hours > 0 {
		example = fmt.Sprintf("%.0fh", hours)
	}
	return "not a duration: the units are h, m, s and ms, as in " + example
}

func explainBool(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return "not true or false: write true, without quotes"
	case "false", "no", "off", "0":
		return "not true or false: write false, without quotes"
	}
	return "not true or false"
}

// unitOf returns how many bytes the unit in a key is. A megabyte of the exporter file is 2^20, too.
func unitOf(key string) float64 {
	if strings.HasSuffix(key, "_mib") || strings.HasSuffix(key, "_megabytes") {
		return 1 << 20
	}
	return 1
}

func explainNumber(value string, unit float64) string {
	match := inUnits.FindStringSubmatch(strings.ToLower(value))
	if match == nil {
		return "not a number without quotes"
	}
	bytes, base := number(match[1]), 1024.0
	if match[3] == "b" {
		base = 1000
	}
	for range 1 + strings.Index("kmgt", match[2]) {
		bytes *= base
	}
	if bytes >= math.MaxInt64 {
		return fmt.Sprintf("too large: at most %d", math.MaxInt64)
	}
	return fmt.Sprintf("not a number without a unit: write %.0f", math.Ceil(bytes/unit))
}

// number returns the number that digits are, or infinity.
func number(digits string) float64 {
	n, _ := strconv.ParseFloat(digits, 64) // digits have no syntax to fail
	return n
}
