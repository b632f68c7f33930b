// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// encColumn is one profile of a group: the values of one sample type.
type encColumn struct {
	profile int
	samples pprofile.SampleSlice
}

// writeSamples joins the samples of a group's profiles and writes them.
func (e *encoder) writeSamples(columns []encColumn) {
	e.values = slices.Grow(e.values[:0], len(columns))[:len(columns)]
	e.timestampLabel = e.timestampLabel[:0]
	if encAligned(columns) {
		e.writeAligned(columns)
		return
	}
	e.zip.reset()
	for _, c := range encLongestFirst(columns) {
		e.zipColumn(columns, c)
	}
	e.writeRows(columns)
}

// encAligned says whether all the profiles list the same identities in the same order.
func encAligned(columns []encColumn) bool {
	first := columns[0].samples
	for _, c := range columns[1:] {
		if c.samples.Len() != first.Len() {
			return false
		}
	}
	for _, c := range columns[1:] {
		for i := range first.Len() {
			if !encSameIdentity(first.At(i), c.samples.At(i)) {
				return false
			}
		}
	}
	return true
}

func encSameIdentity(a, b pprofile.Sample) bool {
	if a.StackIndex() != b.StackIndex() || a.LinkIndex() != b.LinkIndex() {
		return false
	}
	return a.AttributeIndices().Equal(b.AttributeIndices()) && a.TimestampsUnixNano().Equal(b.TimestampsUnixNano())
}

// writeAligned writes profiles of which encAligned is true, without looking anything up.
func (e *encoder) writeAligned(columns []encColumn) {
	for i := range columns[0].samples.Len() {
		s := columns[0].samples.At(i)
		for _, c := range columns {
			e.profile, e.sample = c.profile, i
			e.checkShape(c.samples.At(i))
		}
		timestamps := s.TimestampsUnixNano()
		for k := range max(1, timestamps.Len()) {
			if e.err != nil {
				return
			}
			for at, c := range columns {
				e.values[at] = encValue(c.samples.At(i), k)
			}
			if timestamps.Len() > 0 {
				e.setTimestamp(timestamps.At(k))
			}
			e.writeSample(s, e.values)
		}
		e.timestampLabel = e.timestampLabel[:0]
	}
}

// checkShape refuses a sample that has neither one value, nor timestamps with no or as many values.
func (e *encoder) checkShape(s pprofile.Sample) {
	values, timestamps := s.Values().Len(), s.TimestampsUnixNano().Len()
	switch {
	case timestamps == 0 && values != 1:
		e.failf("%s: without timestamps, a sample has exactly one value, found %d", e.samplePath(""), values)
	case timestamps != 0 && values != 0 && values != timestamps:
		e.failf("%s: found %d values for %d timestamps", e.samplePath(""), values, timestamps)
	}
}

// encValue gives the value of the kth observation; one that has only a timestamp counts 1.
func encValue(s pprofile.Sample, k int) int64 {
	if s.Values().Len() == 0 {
		return 1
	}
	return s.Values().At(k)
}

// encLongestFirst gives the columns' numbers, those with most samples first. Profiles that were made
// from one pprof leave out the samples that are 0 for them: the longest one's order is then closest to
// the original's, and the others' samples are found by going along it.
func encLongestFirst(columns []encColumn) []int {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[b].samples.Len() - columns[a].samples.Len() })
	return order
}

// zipColumn adds the observations of one profile to the rows.
func (e *encoder) zipColumn(columns []encColumn, column int) {
	samples := columns[column].samples
	e.profile = columns[column].profile
	e.zip.startColumn(column)
	for i := range samples.Len() {
		s := samples.At(i)
		e.sample = i
		e.checkShape(s)
		if e.err != nil {
			return
		}
		timestamps := s.TimestampsUnixNano()
		key := encIdentity{stack: s.StackIndex(), link: s.LinkIndex(), attributes: e.sets.intern(s.AttributeIndices())}
		for k := range max(1, timestamps.Len()) {
			if timestamps.Len() > 0 {
				key.timed, key.timestamp = true, timestamps.At(k)
			}
			e.zip.add(key, int32(i), encValue(s, k))
		}
	}
}

// writeRows writes the joined samples.
func (e *encoder) writeRows(columns []encColumn) {
	for r := range e.zip.rows {
		row := &e.zip.rows[r]
		e.zip.valuesOf(row, e.values)
		c := columns[row.column]
		e.profile, e.sample = c.profile, int(row.sample)
		e.timestampLabel = e.timestampLabel[:0]
		if row.key.timed {
			e.setTimestamp(row.key.timestamp)
		}
		e.writeSample(c.samples.At(int(row.sample)), e.values)
		if e.err != nil {
			return
		}
	}
	e.timestampLabel = e.timestampLabel[:0]
}
