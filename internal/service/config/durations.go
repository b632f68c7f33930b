// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Durations is a converter that changes nothing, and remembers the configuration: the Collector's error for a duration
// that it cannot read names neither the value nor the units that there are.
type Durations struct {
	mu   sync.Mutex
	last *confmap.Conf
}

// Factory returns the factory of the converter.
func (d *Durations) Factory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return d })
}

// Convert remembers the configuration.
func (d *Durations) Convert(_ context.Context, conf *confmap.Conf) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = conf
	return nil
}

// durationFault matches the part of an error about a duration, with the end of its key.
var durationFault = regexp.MustCompile(`'([^']+)' time: (invalid duration|unknown unit|missing unit)`)

// Explain returns a line for each duration that an error is about: its key, its value, and how it is written.
func (d *Durations) Explain(message string) (lines []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return nil
	}
	keys := d.last.AllKeys()
	slices.Sort(keys)
	for _, fault := range durationFault.FindAllStringSubmatch(message, -1) {
		suffix := confmap.KeyDelimiter + strings.ReplaceAll(fault[1], ".", confmap.KeyDelimiter)
		for _, key := range keys {
			value, ok := d.last.Get(key).(string)
			if !ok || !strings.HasSuffix(confmap.KeyDelimiter+key, suffix) {
				continue
			}
			if _, err := time.ParseDuration(value); err == nil {
				continue
			}
			lines = append(lines, fmt.Sprintf("`%s`: %q is not a duration: the units are h, m, s and ms, as in %s",
				strings.ReplaceAll(key, confmap.KeyDelimiter, "."), value, asDuration(value)))
		}
	}
	return lines
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
