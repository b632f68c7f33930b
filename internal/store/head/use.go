// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Use is how a series is used: how many blocks have it, and when its last profile arrived.
type Use struct {
	Blocks int
	Last   time.Time
	IsGone bool
	// Totals are the values of its last cumulative profile, over the dictionary of the last block; nil if there is none.
	Totals *Totals
	Gauge  model.GaugeTimes
}

// ForgetAfter is how long the last profile of a series in no block is remembered for the next one.
const ForgetAfter = 4 * time.Hour
