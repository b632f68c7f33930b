// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// FormatWords are keys that formats use for fields of their own. An attribute can have any of them.
var FormatWords = []string{
	"trace_id", "span_id", "timestamps_unix_nano", "end_timestamp_ns", "bytes", "thread.id", "thread.name", "thread.state",
	"com.splunk.sourcetype", "profiling.data.format", "profiling.data.type", "profiling.data.total.frame.count",
	"source.event.time", "source.event.time.unix_nano", "source.event.period", "source.event.period.nanos",
	"source.event.name", "memory.allocated",
}

// WordyProfiles returns profiles of two samples, each at a time of its own and linked to a span. Their samples and the
// profile have attributes with the formats' own words as keys.
func WordyProfiles(random *rand.Rand) pprofile.Profiles {
	attributes := func() (list []Attribute) {
		for _, i := range random.Perm(len(FormatWords))[:random.IntN(4)] {
			value := any("word")
			if random.IntN(2) == 0 {
				value = int64(12)
			}
			list = append(list, Attr(FormatWords[i], value))
		}
		return list
	}
	const begin = 1_700_000_000_000_000_000
	sample := func(at uint64, function string) Sample {
		return Observed([]uint64{begin + at}, function, "main").With(attributes()...).Linked([16]byte{15: 1},
			[8]byte{7: byte(at)})
	}
	return New().Resource("service.name", "shop").Profile("samples", "count").Time(begin, 10_000_000).
		Period(10_000_000, "cpu", "nanoseconds").Attributes(attributes()...).Sample(sample(1, "a"), sample(2, "b")).Build()
}
