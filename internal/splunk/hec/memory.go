// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"

// costs are what Reader takes: encoding/json copies strings, and collects fields in a map, before they become records.
var costs = size.JSONCosts{Byte: 6, Container: 224, Field: 220, Element: 64}

// MemoryOf returns the memory that Read will take for a body, or an error if it is out of proportion to the body.
func MemoryOf(body []byte) (int, error) { return costs.Of(body) }
