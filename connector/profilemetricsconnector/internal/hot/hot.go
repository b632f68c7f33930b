// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hot finds the functions that have the largest share of each service, and compares the shares with earlier
// ones.
//
// A track is a service and a type, and where versions are compared a version. Within a window it counts functions by a
// space-saving sketch: a bounded number of counters, of which the smallest one is given to a new name. A reported share
// is the part that a counter has counted for its name alone, so that it is about 1/counters of the whole too small at
// most, and never too large. Where a sample counts for each function on its stack, there are as many times more
// counters as stacks have functions on average. All shares of a track and that of `other` add up to 1 where a sample
// counts for one function.
//
// A sketch has all of the counters that it needs, or none: without memory, the oldest windows of all tracks are
// forgotten first, and then a service has no shares in this window, and its samples are counted as dropped.
//
// When a window ends, its largest shares are reported until the next one ends, and kept for as long as comparisons need
// them. Windows begin at multiples of their length. Records returns what a storage has not got yet, so that a restart
// loses no window (saved.go).
package hot

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/shares"
)

// Entry is a type whose functions are counted.
type Entry struct {
	Type string
	// Of is Self or Total.
	Of string
	// Count is the number of functions that are reported.
	Count  int
	Window time.Duration
	// To is how far back shares are compared with, or 0. Version is the attribute by which they are, or "".
	To      time.Duration
	Version string
}

// What a function has a share of: samples in which it was running, or in which it was on the stack.
const (
	Self  = "self"
	Total = "total"
)

// Options bound the Functions.
type Options struct {
	Entries      []Entry
	ResourceKeys []string
	MaxTracks    int
	MaxBytes     int
	// IsSaved reports whether a storage keeps windows.
	IsSaved bool
}

// MaxCount bounds Entry.Count.
const MaxCount = 100

const (
	// counters is the size of a sketch for each function that a sample counts for.
	counters = 512
	// keptPerCount is how many functions a window keeps for each that is reported, so that one that grows has its earlier
	// share.
	keptPerCount = 4
	// leastShare is the share that a kept function has at least.
	leastShare = 0.002

	// versionExpiry is for how long a version is kept that has no samples any more.
	versionExpiry = 24 * time.Hour

	trackBytes   = 600
	counterBytes = 150
	windowBytes  = 100
	rowBytes     = 16
	nameBytes    = 100
	shownBytes   = 72
)

// Functions has the tracks. One goroutine uses it at a time.
type Functions struct {
	Options
	tracks map[string]*track
	names  map[string]*name
	bytes  int
	key    []byte
	// isFull reports that there is no room, and no window that could be forgotten, until a window ends.
	isFull bool
	// unsaved are the records that the storage has not got yet.
	unsaved map[recordID]struct{}
}

// track is a service and a type, or one version of it.
type track struct {
	entry    int
	resource []string
	version  string
	// first is when its first samples arrived: the order of versions. last is when the last ones did.
	first, last time.Time

	sketch sketch
	// windows are those that have ended, the newest last.
	windows []window
	// shown are the points that were written last.
	shown []shown
	// bytes is the memory of the track without its windows' names, which tracks share.
	bytes int
}

// window is one that has ended.
type window struct {
	begin        time.Time
	observations float64
	// rows are the largest shares, the largest first; what is not in it has a share of at most rest.
	rows []row
	rest float64
}

type row struct {
	*name
	share, variance float32
}

// name is a function that rows have.
type name struct {
	value string
	// rows is the number of rows that have it.
	rows int
}

// New returns Functions without tracks.
func New(options Options) *Functions {
	return &Functions{Options: options, tracks: map[string]*track{}, names: map[string]*name{},
		unsaved: map[recordID]struct{}{}}
}

// Len returns the number of tracks, Bytes their memory.
func (f *Functions) Len() int { return len(f.tracks) }

// Bytes returns the memory of the tracks.
func (f *Functions) Bytes() int { return f.bytes }

// Add adds what a message has, and counts the samples for which there is no room as dropped.
func (f *Functions) Add(r *reduce.Result, now time.Time) {
	for i := range r.Functions {
		in := &r.Functions[i]
		f.add(r, in, "", now)
		if f.Entries[in.Entry].Version != "" && in.Version != "" {
			f.add(r, in, in.Version, now)
		}
	}
}

func (f *Functions) add(r *reduce.Result, in *reduce.Functions, version string, now time.Time) {
	t := f.track(in.Entry, in.Resource, version, now, now)
	if t == nil {
		r.Dropped[reduce.MaxSeries] += in.Samples
		return
	}
	t.last = now
	begin := now.Truncate(f.Entries[in.Entry].Window)
	if !t.sketch.begin.Equal(begin) {
		f.end(t)
		t.sketch = sketch{begin: begin}
	}
	grow := func(bytes int) bool {
		ok := f.hasRoom(bytes, now)
		if ok {
			f.resize(t, bytes)
		}
		return ok
	}
	if !t.sketch.isRefused && !t.sketch.add(in, grow) {
		r.Dropped[reduce.MaxSeries] += t.sketch.samples
		f.resize(t, -t.sketch.clear())
		t.sketch = sketch{begin: begin, isRefused: true}
	}
	if t.sketch.isRefused {
		r.Dropped[reduce.MaxSeries] += in.Samples
	}
}

// hasRoom reports whether there is room, for which it forgets the oldest windows of all tracks. What is reported now
// stays.
func (f *Functions) hasRoom(bytes int, now time.Time) bool {
	for f.bytes+bytes > f.MaxBytes && !f.isFull {
		var oldest time.Time
		for _, t := range f.tracks {
			if f.isPast(t, now) && (oldest.IsZero() || t.windows[0].begin.Before(oldest)) {
				oldest = t.windows[0].begin
			}
		}
		f.isFull = oldest.IsZero()
		for _, t := range f.tracks {
			if f.isPast(t, now) && t.windows[0].begin.Equal(oldest) {
				f.forget(t, 0)
			}
		}
	}
	return f.bytes+bytes <= f.MaxBytes
}

// isPast reports whether the oldest window of a track is not one that is reported.
func (f *Functions) isPast(t *track, now time.Time) bool {
	window := f.Entries[t.entry].Window
	return len(t.windows) > 1 || len(t.windows) == 1 && t.version == "" &&
		t.windows[0].begin.Before(now.Truncate(window).Add(-window))
}

// track returns the track of a service, which it adds if there is room, and nil otherwise. first is the time of a new
// track's first samples.
func (f *Functions) track(entry int, resource []string, version string, first, now time.Time) *track {
	key := f.keyOf(entry, resource, version)
	t := f.tracks[key]
	if t == nil && len(f.tracks) < f.MaxTracks && f.hasRoom(f.Entries[entry].trackBytes(version), now) {
		t = &track{entry: entry, resource: series.CloneAll(resource), version: strings.Clone(version), first: first}
		f.tracks[key] = t
		f.resize(t, f.Entries[entry].trackBytes(version))
	}
	return t
}

func (f *Functions) keyOf(entry int, resource []string, version string) string {
	f.key = binary.AppendUvarint(f.key[:0], uint64(entry))
	for _, value := range resource {
		f.key = dictionary.AppendString(f.key, value)
	}
	return string(dictionary.AppendString(f.key, version))
}

func (f *Functions) resize(t *track, bytes int) {
	t.bytes += bytes
	f.bytes += bytes
}

// Advance ends the windows that are over, and forgets what is no longer needed.
func (f *Functions) Advance(now time.Time) {
	f.isFull = false
	for key, t := range f.tracks {
		entry := &f.Entries[t.entry]
		begin := now.Truncate(entry.Window)
		if t.sketch.begin.Before(begin) {
			f.end(t)
		}
		keep := entry.To
		if t.version != "" {
			keep = 0 // versions are compared by their newest windows
		}
		for len(t.windows) > 1 && begin.Sub(t.windows[0].begin) > keep+entry.Window {
			f.forget(t, 0)
		}
		if now.Sub(t.last) > max(entry.To, versionExpiry)+2*entry.Window {
			for len(t.windows) > 0 {
				f.forget(t, 0)
			}
			f.bytes -= t.bytes
			delete(f.tracks, key)
		}
	}
}

// trackBytes returns the memory of a track without windows, with the points that it may have.
func (e *Entry) trackBytes(version string) int {
	bytes := trackBytes
	if version != "" {
		return bytes // its points are those of the track of all versions
	}
	for _, has := range []bool{true, e.To > 0, e.Version != ""} {
		if has {
			bytes += shownBytes * (e.Count + 1)
		}
	}
	return bytes
}

// End ends all windows, also those that are not over. What arrives later within them competes with what they have: see
// keep.
func (f *Functions) End() {
	for _, t := range f.tracks {
		f.end(t)
	}
}

// end ends the window of a track, if it has had samples.
func (f *Functions) end(t *track) {
	if t.sketch.whole.Clusters == 0 {
		return
	}
	w, rows := t.sketch.end(keptPerCount * f.Entries[t.entry].Count)
	f.resize(t, -t.sketch.clear())
	f.keep(t, w, rows)
	if f.IsSaved {
		f.unsaved[recordOf(t, w.begin)] = struct{}{}
	}
}

// keep adds a window to a track. Without room, the track's oldest windows are forgotten. Of two windows of one time,
// before and after a restart, the one with more observations stays.
func (f *Functions) keep(t *track, w window, rows []measured) {
	if n := len(t.windows); n > 0 && !t.windows[n-1].begin.Before(w.begin) {
		if last := &t.windows[n-1]; last.begin.After(w.begin) || last.observations > w.observations {
			return
		}
		f.forget(t, n-1)
	}
	w.rows = make([]row, len(rows))
	for i, m := range rows {
		w.rows[i] = row{f.use(m.Name), m.Share, m.Variance}
	}
	f.resize(t, w.bytes())
	f.isFull = false
	t.windows = append(t.windows, w)
	for f.bytes > f.MaxBytes && len(t.windows) > 0 {
		f.forget(t, 0)
	}
}

func (f *Functions) forget(t *track, i int) {
	for _, r := range t.windows[i].rows {
		if r.rows--; r.rows == 0 {
			f.bytes -= nameBytes + len(r.value)
			delete(f.names, r.value)
		}
	}
	f.resize(t, -t.windows[i].bytes())
	t.windows = slices.Delete(t.windows, i, i+1)
}

// use returns a name for one more row.
func (f *Functions) use(s string) *name {
	n := f.names[s]
	if n == nil {
		n = &name{value: strings.Clone(s)}
		f.names[n.value] = n
		f.bytes += nameBytes + len(s)
	}
	n.rows++
	return n
}

func (w *window) bytes() int { return windowBytes + rowBytes*len(w.rows) }

// sketch counts functions of a window.
type sketch struct {
	begin time.Time
	whole shares.Whole
	// byName has the counters; heap has them by what they have counted, the smallest first.
	byName map[string]*counter
	heap   []*counter
	// counted is what all counters together were given, and floor the most that a function has had without a counter for
	// it.
	counted, floor float64
	samples        int
	// isRefused reports that there was no room for the window.
	isRefused bool
}

type counter struct {
	name string
	at   int
	// count is what the sketch has, of which over may be of other names. part is what was counted for the name.
	count, over float64
	part        shares.Part
}

// add adds a cluster. It calls grow before the sketch takes more bytes, and returns false if there is no room for them.
func (s *sketch) add(in *reduce.Functions, grow func(bytes int) bool) bool {
	s.whole.Add(in.Total, in.Observations)
	if s.byName == nil {
		s.byName = map[string]*counter{}
	}
	for _, sum := range in.Sums {
		s.counted += sum.Value
	}
	most := counters
	if s.counted > s.whole.Total {
		most = int(math.Ceil(counters * s.counted / s.whole.Total))
	}
	for _, sum := range in.Sums {
		c := s.byName[sum.Name]
		if c == nil {
			if c = s.counter(sum.Name, most, grow); c == nil {
				return false
			}
		}
		c.count += sum.Value
		c.part.Add(sum.Value, in.Total)
		s.down(c.at)
	}
	s.samples += in.Samples
	return true
}

// counter returns a counter for a new name: another one, or the smallest one if there are as many as are needed. It
// returns nil without room.
func (s *sketch) counter(name string, most int, grow func(bytes int) bool) *counter {
	c := &counter{name: strings.Clone(name), at: len(s.heap), count: s.floor, over: s.floor}
	if len(s.heap) < most {
		if !grow(counterBytes + len(name)) {
			return nil
		}
		s.heap = append(s.heap, c)
	} else {
		smallest := s.heap[0]
		if !grow(len(name) - len(smallest.name)) {
			return nil
		}
		delete(s.byName, smallest.name)
		s.floor = max(s.floor, smallest.count)
		c.at, c.count, c.over = 0, smallest.count, smallest.count
		s.heap[0] = c
	}
	s.byName[c.name] = c
	s.up(c.at)
	return c
}

func (s *sketch) up(i int) {
	for i > 0 && s.heap[i].count < s.heap[(i-1)/2].count {
		s.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (s *sketch) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.heap[child].count < s.heap[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		s.swap(i, least)
		i = least
	}
}

func (s *sketch) swap(i, k int) {
	s.heap[i], s.heap[k] = s.heap[k], s.heap[i]
	s.heap[i].at, s.heap[k].at = i, k
}

// measured is the share of a function in a window.
type measured struct {
	Name     string  `json:"name"`
	Share    float32 `json:"share"`
	Variance float32 `json:"variance"`
}

// end returns the window, and its largest shares in place of rows.
func (s *sketch) end(most int) (w window, rows []measured) {
	w = window{begin: s.begin, observations: s.whole.Observations}
	ordered := slices.Clone(s.heap)
	slices.SortFunc(ordered, func(a, b *counter) int {
		return cmp.Or(cmp.Compare(b.part.Sum, a.part.Sum), cmp.Compare(a.name, b.name))
	})
	for _, c := range ordered {
		share := s.whole.Measure(c.part)
		if len(rows) == most || share.Value < leastShare {
			w.rest = share.Value
			break
		}
		rows = append(rows, measured{c.name, float32(share.Value), float32(share.Variance)})
	}
	if s.whole.Total > 0 {
		w.rest = max(w.rest, s.floor/s.whole.Total)
	}
	return w, rows
}

// clear empties the sketch, and returns the bytes of what it had.
func (s *sketch) clear() (bytes int) {
	for _, c := range s.heap {
		bytes += counterBytes + len(c.name)
	}
	*s = sketch{}
	return bytes
}
