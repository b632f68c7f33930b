// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"crypto/sha256"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Use is how a series is used: how many blocks have it, and when its last profile arrived.
type Use struct {
	Blocks int
	Last   time.Time
	IsGone bool
	// Resource and attributes are hashes of those of its resource and of its profiles.
	Resource, Attributes [sha256.Size]byte
	// Totals are the values of its last cumulative profile, over the dictionary of the last block; nil if there is none.
	Totals *Totals
	Gauge  model.GaugeTimes
}

// ForgetAfter is how long the last profile of a series in no block is remembered for the next one.
const ForgetAfter = 4 * time.Hour
