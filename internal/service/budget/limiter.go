// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// NewConverterFactory returns a factory of a converter that changes nothing. It reads the limit of the processor
// memory_limiter, which becomes a memory limit of the process: for the budget, and for the garbage collector, unless
// GOMEMLIMIT is set.
func NewConverterFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

type converter struct{}

// Convert is called with the whole configuration, before any component is made.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	limit := limiterBytes(conf)
	if limit < math.MaxInt64 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	SetMemoryLimit(limit)
	return nil
}

// limiterBytes returns the least limit_mib of all memory_limiters; math.MaxInt64 if there is none. A limit_percentage is
// one of the control group's memory, which counts anyway.
func limiterBytes(conf *confmap.Conf) int64 {
	limit := int64(math.MaxInt64)
	processors, _ := conf.Get("processors").(map[string]any)
	for id, section := range processors {
		if kind, _, _ := strings.Cut(id, "/"); kind != "memory_limiter" {
			continue
		}
		keys, _ := section.(map[string]any)
		if mib, ok := keys["limit_mib"].(int); ok && mib > 0 {
			limit = min(limit, int64(mib)<<20)
		}
	}
	return limit
}
