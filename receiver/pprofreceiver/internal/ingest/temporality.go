// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"path"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// TemporalityOfPath returns the temporality that the path of a URL or the name of a file implies: godeltaprof serves
// /debug/pprof/delta_heap, and dd-trace-go uploads delta-heap.pprof.
func TemporalityOfPath(s string) kind.Temporality {
	if name := path.Base(s); strings.HasPrefix(name, "delta_") || strings.HasPrefix(name, "delta-") {
		return kind.StatedDelta
	}
	return ""
}
