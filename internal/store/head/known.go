// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mover"
)

// Known is what is known of series besides their profiles, of those of earlier blocks, too.
type Known struct {
	Series map[model.SeriesID]*Use
	// TotalsBytes is the memory of the totals of all series, which are over the dictionary of the last block.
	TotalsBytes int
	over        *dictionary.Dictionary
}

// Use is how a series is used: how many blocks have it, and when its last profile arrived.
type Use struct {
	Blocks int
	Last   time.Time
	IsGone bool
	// Totals are the values of its last cumulative profile, over the dictionary of the last block; nil if there is none.
	Totals *Totals
	Gauge  model.GaugeTimes
	// alternation shows that several processes send the totals. The log does not have it.
	alternation kind.Alternation
}

// ForgetAfter is how long the last profile of a series in no block is remembered for the next one.
const ForgetAfter = 4 * time.Hour

// NewKnown returns that nothing is known.
func NewKnown() *Known { return &Known{Series: map[model.SeriesID]*Use{}} }

// Release drops a block's series.
func (k *Known) Release(e *Block) {
	for i := range e.Series {
		if use := e.Series[i].Use; use != nil {
			use.Blocks--
		}
	}
}

// Begin begins with what a log has: its blocks, and the series as they were when the last one began.
func (k *Known) Begin(blocks []*Block) {
	k.TotalsBytes = 0
	for _, use := range k.Series {
		use.Blocks = 0
		k.TotalsBytes += use.Totals.Bytes()
	}
	for _, e := range blocks {
		for i := range e.Series {
			if use := k.Series[e.Series[i].ID]; use != nil {
				e.Series[i].Use = use
				use.Blocks++
			}
		}
	}
}

// Forget drops series, and reports whether there were any.
func (k *Known) Forget(which func(*Use) bool) bool {
	before := len(k.Series)
	maps.DeleteFunc(k.Series, func(_ model.SeriesID, use *Use) bool {
		if !which(use) {
			return false
		}
		k.setTotals(use, nil)
		return true
	})
	return len(k.Series) < before
}

// Drop drops a series although blocks have it.
func (k *Known) Drop(id model.SeriesID) {
	k.Series[id].IsGone = true
	k.setTotals(k.Series[id], nil)
	delete(k.Series, id)
}

// Trim drops series of no block if there are more than most of them: those that have been unused for the longest time.
func (k *Known) Trim(most int) {
	if len(k.Series) <= most {
		return
	}
	var times []time.Time
	for _, use := range k.Series {
		if use.Blocks == 0 {
			times = append(times, use.Last)
		}
	}
	if len(times) <= most {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)-1-most/2]
	k.Forget(func(use *Use) bool { return use.Blocks == 0 && !use.Last.After(oldest) })
}

// setTotals remembers the totals of a series' last profile, or forgets those before if now is nil.
func (k *Known) setTotals(use *Use, now *Totals) {
	k.TotalsBytes += now.Bytes() - use.Totals.Bytes()
	use.Totals = now
}

// withTotals returns the series that have totals, those first that had the last profile.
func (k *Known) withTotals() []*Use {
	var list []*Use
	for _, use := range k.Series {
		if use.Totals != nil {
			list = append(list, use)
		}
	}
	slices.SortFunc(list, func(a, b *Use) int { return b.Last.Compare(a.Last) })
	return list
}

// dropTotals forgets the totals of series, and returns their number. The next profile of each is a baseline again.
func (k *Known) dropTotals(list []*Use) int {
	for _, use := range list {
		k.setTotals(use, nil)
	}
	return len(list)
}

// TrimTotals drops totals that take more than some bytes, the oldest first, and some more, so that not each message
// does. It returns their number.
func (k *Known) TrimTotals(most int) int {
	if k.TotalsBytes <= most {
		return 0
	}
	list, kept := k.withTotals(), 0
	i := slices.IndexFunc(list, func(use *Use) bool {
		kept += use.Totals.Bytes()
		return kept > most*3/4
	})
	if i < 0 {
		return 0
	}
	return k.dropTotals(list[i:])
}

// BeginBlock moves the totals of all series to the dictionary of a new block. It drops the oldest of them if these
// alone would take more than some bytes there, and returns their number.
func (k *Known) BeginBlock(dict *dictionary.Dictionary, most int) (dropped int) {
	list := k.withTotals()
	var moves *mover.Mover
	for i, use := range list {
		if moves == nil {
			moves = mover.New(k.over, dict)
		}
		if dict.MemoryBytes() > most {
			dropped = k.dropTotals(list[i:])
			break
		}
		use.Totals.Move(moves)
	}
	k.over = dict
	return dropped
}
