// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// seriesUse is how a series is used: how many blocks have it, and when its last profile arrived.
type seriesUse struct {
	blocks int
	last   time.Time
	isGone bool
	// resource and attributes are hashes of those of its resource and of its profiles.
	resource, attributes [sha256.Size]byte
	// totals are the values of its last cumulative profile, over the dictionary of the last block; nil if there is none.
	totals *totals
	gauge  model.GaugeTimes
}

// forgetAfter is how long the last profile of a series in no block is remembered for the next one.
const forgetAfter = 4 * time.Hour
