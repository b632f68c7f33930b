// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// encReach records which entries of a dictionary table a payload needs, in the order they were met.
type encReach struct {
	seen  []bool
	order []int32
}

// resize prepares for a table. All entries are unseen: reset left them so.
func (r *encReach) resize(entries int) { r.seen = encResize(r.seen, entries) }

func (r *encReach) visit(i int32) {
	if !r.seen[i] {
		r.seen[i] = true
		r.order = append(r.order, i)
	}
}

func (r *encReach) reset() {
	for _, i := range r.order {
		r.seen[i] = false
	}
	r.order = r.order[:0]
}

// id is entry i's id in the payload: its index, except that pprof has no id 0.
func (r *encReach) id(i int32) uint64 {
	if i == 0 {
		return uint64(len(r.seen))
	}
	return uint64(i)
}

// encSpan is a piece of a buffer. A size of 0 means that nothing was written yet, or nothing is due.
type encSpan struct{ start, size int }

// encSpans keeps a span for each entry of a dictionary table.
type encSpans struct {
	spans []encSpan
	used  []int32
}

// resize prepares for a table. All spans are empty: reset left them so.
func (s *encSpans) resize(entries int) { s.spans = encResize(s.spans, entries) }

func (s *encSpans) set(i int32, span encSpan) {
	if span.size != 0 {
		s.spans[i] = span
		s.used = append(s.used, i)
	}
}

func (s *encSpans) reset() {
	for _, i := range s.used {
		s.spans[i] = encSpan{}
	}
	s.used = s.used[:0]
}

// encResize gives a slice of n zero elements, of which it takes over s: everything within s's capacity is zero.
func encResize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// encClear empties a map. One that has been large is let go: to clear it again would cost as much each time.
func encClear[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > 1<<16 {
		return make(map[K]V)
	}
	clear(m)
	return m
}
