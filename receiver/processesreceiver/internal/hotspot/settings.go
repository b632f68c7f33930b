// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Settings are those of a recording, and keys of the configuration.
type Settings struct {
	// CPUPeriod is the time from one sample of a running thread to the next.
	CPUPeriod time.Duration `mapstructure:"cpu_period"`
	// AllocationsPerSecond bounds the samples of allocations, since JDK 16. Before, each new buffer of a thread is one.
	AllocationsPerSecond int `mapstructure:"allocations_per_second"`
	// WaitThreshold is the shortest wait for a lock, a file or a socket that is recorded.
	WaitThreshold time.Duration `mapstructure:"wait_threshold"`
	// LiveObjects has a part of the allocated objects watched, and those that still exist written with each dump.
	LiveObjects bool `mapstructure:"live_objects"`
	// MaxRecordingBytes bounds the recording on the JVM's disk, and its reading.
	MaxRecordingBytes int64 `mapstructure:"max_recording_bytes"`
}

// file returns the settings as Flight Recorder reads them from a file, which all versions do. It ignores events that it
// does not have.
func (s *Settings) file() string {
	var b strings.Builder
	b.WriteString(
		`<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0" label="otelcol-profiles" provider="otelcol-profiles">`)
	event := func(name string, settings ...string) {
		fmt.Fprintf(&b, `<event name="%s"><setting name="enabled">true</setting>`, name)
		for i := 0; i < len(settings); i += 2 {
			fmt.Fprintf(&b, `<setting name="%s">%s</setting>`, settings[i], settings[i+1])
		}
		b.WriteString(`</event>`)
	}
	nanos := func(d time.Duration) string { return fmt.Sprintf("%d ns", d.Nanoseconds()) }
	millis := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	event("jdk.ActiveSetting")
	event("jdk.ExecutionSample", "period", millis(s.CPUPeriod))
	event("jdk.ObjectAllocationSample", "stackTrace", "true", "throttle", fmt.Sprintf("%d/s", s.AllocationsPerSecond))
	for _, wait := range []string{"JavaMonitorEnter", "ThreadPark", "FileRead", "FileWrite", "FileForce", "SocketRead",
		"SocketWrite"} {
		event("jdk."+wait, "stackTrace", "true", "threshold", nanos(s.WaitThreshold))
	}
	event("jdk.GarbageCollection", "threshold", "0 ns")
	if s.LiveObjects { // without a search of what refers to them, which would stop the program
		event("jdk.OldObjectSample", "stackTrace", "true", "cutoff", "0 ns")
	}
	b.WriteString(`</configuration>`)
	return b.String()
}

// shortened returns the beginning of a text in one line, for an error.
func shortened(text string) string {
	const maxBytes = 300
	return dictionary.Shorten(strings.Join(strings.Fields(text), " "), maxBytes)
}
