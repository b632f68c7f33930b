// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
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
// unit, which the Collector takes for nanoseconds.
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
	return withoutUnit(conf)
}

// durationKey matches the keys of components that are durations. Those of `service` are milliseconds.
var durationKey = regexp.MustCompile(`^(receivers|processors|exporters|connectors|extensions)::.*(::|_)` +
	`(interval|timeout|delay|wait|duration|elapsed_time|retention|expiry|ttl|wait_threshold|period)$`)

// withoutUnit returns an error for each duration that is a small number: nobody means so few nanoseconds.
func withoutUnit(conf *confmap.Conf) error {
	var errs []error
	for _, key := range conf.AllKeys() {
		number, isNumber := conf.Get(key).(int)
		if isNumber && 0 < number && number < int(time.Millisecond) && durationKey.MatchString(key) {
			errs = append(errs, fmt.Errorf("`%s`: %d has no unit, and would be nanoseconds: write %ds",
				strings.ReplaceAll(key, confmap.KeyDelimiter, "."), number, number))
		}
	}
	return errors.Join(errs...)
}

// valueFault matches the part of an error about a duration or a whole number, with the end of its key.
var valueFault = regexp.MustCompile(
	`'([^']+)' (?:time: (?:invalid duration|unknown unit|missing unit)|expected type '(u?int)\d*', got unconvertible type 'string')`)

// Explain returns a line for each duration and number that an error is about: key, value, and how it is written.
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
		if fault[2] != "" {
			explain = explainNumber
		}
		suffix := confmap.KeyDelimiter + strings.ReplaceAll(fault[1], ".", confmap.KeyDelimiter)
		for _, key := range keys {
			value, ok := v.last.Get(key).(string)
			if !ok || !strings.HasSuffix(confmap.KeyDelimiter+key, suffix) {
				continue
			}
			if how := explain(value); how != "" {
				lines = append(lines, fmt.Sprintf("`%s`: %q is not %s", strings.ReplaceAll(key, confmap.KeyDelimiter, "."), value, how))
			}
		}
	}
	return lines
}

func explainDuration(value string) string {
	if _, err := time.ParseDuration(value); err == nil {
		return ""
	}
	return "a duration: the units are h, m, s and ms, as in " + asDuration(value)
}

// inUnits matches a number of bytes with a unit.
var inUnits = regexp.MustCompile(`^(\d{1,6}) ?([kmgt])(i?b?)$`)

func explainNumber(value string) string {
	match := inUnits.FindStringSubmatch(strings.ToLower(value))
	if match == nil {
		return "a number without quotes"
	}
	number, _ := strconv.ParseInt(match[1], 10, 64) // it has few digits
	base := int64(1024)
	if match[3] == "b" {
		base = 1000
	}
	for range 1 + strings.Index("kmgt", match[2]) {
		number *= base
	}
	return fmt.Sprintf("a number without a unit: write %d", number)
}

// inDays matches days and weeks.
var inDays = regexp.MustCompile(`^(\d{1,6}) ?(d|w|days?|weeks?)$`)

// asDuration returns days and weeks in hours, and for anything else an example.
func asDuration(value string) string {
	match := inDays.FindStringSubmatch(strings.ToLower(value))
	if match == nil {
		return "1h30m"
	}
	hours, _ := strconv.Atoi(match[1]) // it has few digits
	hours *= 24
	if match[2][0] == 'w' {
		hours *= 7
	}
	return strconv.Itoa(hours) + "h"
}
