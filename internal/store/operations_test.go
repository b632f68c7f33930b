// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Random operations on stores of random configurations have the results that the model expects. STORE_OPERATIONS is the
// number of histories, STORE_SEED the seed of the first one, a random one without it: a failure names the seed with
// which it comes again.
func TestOperations(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	histories, first := uint64(6), uint64(1)
	if profiletest.IsRace { // everything takes minutes
		histories = 1
	}
	number := func(name string, fallback uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return fallback
		}
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	if n := number("STORE_OPERATIONS", 0); n > 0 {
		histories, first = n, uint64(time.Now().Unix())
	}
	first = number("STORE_SEED", first)
	for seed := first; seed < first+histories; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistory(t, seed)
			defer func() {
				blockfile.SetFault(nil)
				if t.Failed() {
					t.Logf("STORE_OPERATIONS=1 STORE_SEED=%d; %+v", seed, h.cfg)
					t.Log(strings.Join(h.log[max(0, len(h.log)-60):], "\n"))
				}
			}()
			for range 50 + h.rnd.IntN(50) {
				h.operation()
			}
			h.end()
		})
	}
}

// history is a store, the model of it, and what happens to both.
type history struct {
	t     *testing.T
	rnd   *rand.Rand
	cfg   store.Config
	store *store.Store
	model *naiveStore
	now   time.Time
	log   []string
	disk  *faultyDisk
	// cut is before which profiles may have been deleted for their age, oldest the first profile.
	cut, oldest int64
	// durable is how many messages survive a loss of power.
	durable   int
	number    int
	instances []*instance
	wasCut    bool
	// fresh is from which message on the series are known.
	fresh int
}

// instance is a process that sends profiles every interval.
type instance struct {
	service, id, version string
	interval             time.Duration
	// last is when it was heard of, stated and totalled when it sent its last state and total.
	last, stated, totalled time.Time
	total                  int64
	// state is the time of its last state.
	state int64
}

func newHistory(t *testing.T, seed uint64) *history {
	rnd := rand.New(rand.NewPCG(seed, 46))
	h := &history{t: t, rnd: rnd, model: newModel(nil),
		now: time.Date(2026, 11, 20+rnd.IntN(3), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)}
	h.oldest = h.now.UnixNano()
	h.cfg = store.MemoryConfig()
	h.cfg.Resolution = pick(rnd, time.Second, 10*time.Second, time.Minute)
	h.cfg.MaxSeries = 0
	h.cfg.MaxBytes = pick(rnd, 4<<20, 64<<20)
	if rnd.IntN(5) == 0 {
		h.cfg.Window = pick(rnd, time.Hour, 24*time.Hour, 200*time.Hour)
		h.cfg.MaxBytes = 64 << 20
	} else {
		h.disk = newFaultyDisk(t)
		h.cfg.Disk = store.DiskConfig{
			Directory: filepath.Join(h.disk.dir, "store"), Retention: pick(rnd, 6*time.Hour, 60*time.Hour, 14*24*time.Hour),
			MaxBytes: 1 << 30,
			Report:   func(message string, err error) { h.note("report: %s: %v", message, err) },
		}
		if rnd.IntN(3) == 0 {
			h.cfg.Disk.Downsampling = store.Downsampling{After: pick(rnd, time.Hour, 30*time.Hour),
				Step: pick(rnd, 10*time.Second, 10*time.Minute)}
		}
	}
	h.open()
	return h
}

func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

var logMutex sync.Mutex // reports come from several goroutines

func (h *history) note(format string, args ...any) {
	logMutex.Lock()
	defer logMutex.Unlock()
	h.log = append(h.log, h.now.Format("02 15:04:05 ")+fmt.Sprintf(format, args...))
}

func (h *history) open() {
	h.store = store.New(h.cfg)
	err := h.store.Open()
	if h.disk.isFailing() && err != nil {
		h.note("open again, since %v", err)
		h.disk.heal()
		h.store = store.New(h.cfg)
		err = h.store.Open()
	}
	require.NoError(h.t, err)
}

// operation does something.
func (h *history) operation() {
	switch h.rnd.IntN(24) {
	default:
		for range 1 + h.rnd.IntN(6) {
			h.now = h.now.Add(pick(h.rnd, time.Second, 10*time.Second, 30*time.Second, 5*time.Minute))
			h.add(h.now)
		}
	case 7:
		h.sendAgain()
	case 8, 9: // late
		h.add(h.now.Add(-time.Duration(h.rnd.Int64N(int64(h.store.Window() * 11 / 10)))).Truncate(time.Second))
	case 10, 11:
		h.wait(pick(h.rnd, 10*time.Minute, time.Hour, 5*time.Hour))
	case 12:
		h.wait(pick(h.rnd, 10*time.Hour, 30*time.Hour, 4*24*time.Hour))
	case 13, 14:
		h.maintain()
	case 15:
		h.leap()
	case 16, 17:
		h.restart()
	case 18:
		h.losePower()
	case 19, 20:
		h.failNext()
	case 21, 22, 23:
		h.query()
	}
}

// wait lets time pass.
func (h *history) wait(d time.Duration) {
	h.note("wait %s", d)
	h.now = h.now.Add(d)
	h.maintain()
}

func (h *history) maintain() {
	before := h.store.Stats()
	h.note("maintain")
	h.store.Maintain(h.now)
	after := h.store.Stats()
	h.note("maintained: %d blocks, %d profiles, coarse until %d", after.DiskBlocks, after.Profiles, after.CoarseUntil)
	h.cut = max(h.cut, h.now.Add(-h.store.Window()).UnixNano())
	require.Zero(h.t,
		after.Evicted[model.EvictedBytes]+after.Evicted[model.EvictedSeries]+after.Evicted[model.EvictedTotals])
	if h.oldest > h.cut {
		require.Equal(h.t, before.Evicted[model.EvictedAge], after.Evicted[model.EvictedAge], "nothing is too old")
	}
	if n := len(h.model.messages); !h.disk.isFailing() && after.DiskFailing == 0 && n > 0 &&
		h.now.Sub(h.model.messages[n-1].arrived) > time.Hour {
		h.durable = n
	}
}

// leap lets the clock be wrong for a moment: nothing is deleted for its age, or becomes coarser.
func (h *history) leap() {
	if h.disk == nil {
		return
	}
	evicted := h.store.Stats().Evicted[model.EvictedAge]
	h.store.Maintain(h.now)
	evicted = max(evicted, h.store.Stats().Evicted[model.EvictedAge])
	h.note("a clock that is 15 days ahead, and back")
	h.store.Maintain(h.now.Add(15 * 24 * time.Hour))
	if h.now.UnixNano()-int64(h.store.Window()) > h.cut {
		h.cut = h.now.UnixNano() - int64(h.store.Window())
	}
	h.cut = max(h.cut, h.now.Add(time.Hour-h.store.Window()).UnixNano()) // it may be an hour ahead
	if h.oldest > h.cut {
		require.Equal(h.t, evicted, h.store.Stats().Evicted[model.EvictedAge], "a wrong clock deletes nothing")
	}
	h.store.Maintain(h.now)
}

// restart ends the process, with or without a shutdown, and begins another one.
func (h *history) restart() {
	if h.disk == nil {
		return
	}
	if h.rnd.IntN(2) == 0 {
		h.note("close")
		err := h.store.Close()
		require.True(h.t, err == nil || h.disk.isFailing(), err)
	} else {
		h.note("kill")
		require.NoError(h.t, h.store.Kill())
	}
	if h.rnd.IntN(4) == 0 {
		h.cfg.MaxBytes = pick(h.rnd, 4<<20, 64<<20)
	}
	h.open()
	require.Zero(h.t, h.store.Stats().Damaged)
	if !h.wasCut {
		require.Zero(h.t, h.store.Stats().Torn)
	}
}

// losePower leaves of the directory what is durable, and perhaps a part of what is not.
func (h *history) losePower() {
	if h.disk == nil || !h.disk.isModelled {
		return
	}
	h.disk.heal()
	h.maintain()
	for _, m := range h.model.messages[h.durable:] {
		if m.isAgain {
			return // nobody could tell whether it is lost
		}
	}
	if h.rnd.IntN(4) > 0 || h.number == 0 {
		h.instances = nil // what the log knew of their series may be lost, although their profiles are in blocks
	} else {
		h.note("wait until the log is synced")
		require.True(h.t, h.disk.waitForSync(), "the log is synced every second")
		h.durable = len(h.model.messages)
	}
	h.note("the power fails; %d of %d messages are durable", h.durable, len(h.model.messages))
	require.NoError(h.t, h.store.Kill())
	require.NoError(h.t, h.disk.losePower())
	h.wasCut = true
	h.open()
	require.Zero(h.t, h.store.Stats().Damaged)
	// The last messages may be lost, and those that are too old.
	sums := h.flame(model.Selection{Service: "", Profile: "process_cpu", Type: "cpu"})
	n := len(h.model.messages)
	for n > h.durable && !sums[h.model.messages[n-1].frame()] {
		n--
	}
	for _, m := range h.model.messages[:n] {
		require.True(h.t, sums[m.frame()] || m.profiles[0].time < h.cut, "message %d of %d is lost", m.number, n)
	}
	if n < len(h.model.messages) {
		h.note("%d messages are lost", len(h.model.messages)-n)
		h.model = newModel(h.model.messages[:n])
	}
	h.durable, h.fresh = n, n
}

func (m *message) frame() string { return fmt.Sprint("message ", m.number) }

// flame returns which frames any service has.
func (h *history) flame(sel model.Selection) map[string]bool {
	frames := map[string]bool{}
	for _, service := range []string{"shop", "cart"} {
		sel.Service = service
		g, err := h.store.FlameGraph(h.t.Context(), sel, 1<<20)
		if errors.Is(err, model.ErrNothing) {
			continue
		}
		require.NoError(h.t, err)
		for _, f := range g.Frames {
			frames[f.Name] = true
		}
	}
	return frames
}

// failNext lets uses of the file system fail from one on, for a moment or until the disk is healed, while something
// else happens.
func (h *history) failNext() {
	if h.disk == nil {
		return
	}
	fault := pick[error](h.rnd, syscall.ENOSPC, syscall.EIO, syscall.EMFILE)
	number, times := h.rnd.IntN(60), pick(h.rnd, 1, 3, 1<<30)
	h.note("use %d and %d more of the disk fail: %v", number, times, fault)
	h.disk.fail(number, times, fault)
	for range 1 + h.rnd.IntN(5) {
		h.operation()
	}
	h.note("the disk works again")
	h.disk.heal()
	h.maintain()
	require.NoError(h.t, h.store.LogError())
}

// end lets all work again, and asks everything.
func (h *history) end() {
	if h.disk != nil {
		h.disk.heal()
		h.wait(61 * time.Minute) // all is in blocks of hours
	}
	for range 60 {
		h.query()
	}
	if h.disk != nil {
		h.wait(30 * time.Hour)
		for range 60 {
			h.query()
		}
		entries, err := os.ReadDir(filepath.Join(h.cfg.Disk.Directory, "damaged"))
		require.NoError(h.t, err)
		require.Empty(h.t, entries)
		require.NoError(h.t, h.store.Close())
	}
}

// add sends a message of profiles of a time, of each kind.
func (h *history) add(at time.Time) {
	h.number++
	m := &message{number: h.number, arrived: h.now, window: h.store.Window(), resolution: h.cfg.Resolution}
	of := h.instance()
	start, seconds := at.Add(-of.interval).UnixNano(), int64(of.interval/time.Second)
	cpu := h.profile(of, "process_cpu", "cpu", "nanoseconds", kind.Delta, start, int64(of.interval))
	if h.rnd.IntN(6) == 0 {
		cpu.time, cpu.duration = at.UnixNano(), 0 // it happened at once
	}
	cpu.rows = append(h.rows(1e9), modelRow{stack: m.frame(), value: 1e9})
	m.profiles = append(m.profiles, cpu)
	if h.rnd.IntN(2) == 0 {
		state := h.profile(of, "memory", "inuse_space", "bytes", kind.Gauge, at.UnixNano(), 0)
		state.rows = h.rows(1e6)
		m.profiles, of.state, of.stated = append(m.profiles, state), state.time, h.now
	} else if of.state != 0 && h.rnd.IntN(4) == 0 {
		part := h.profile(of, "memory", "inuse_space", "bytes", kind.Gauge, of.state, 0)
		part.rows = []modelRow{{stack: m.frame(), value: 1e6}}
		m.profiles = append(m.profiles, part)
	}
	if h.rnd.IntN(2) == 0 {
		of.totalled = h.now
		if of.total += h.rnd.Int64N(1e6); h.rnd.IntN(20) == 0 {
			of.total = h.rnd.Int64N(of.total/2 + 1) // it has restarted
		}
		total := h.profile(of, "memory", "alloc_space", "bytes", kind.Cumulative, at.UnixNano(), 0)
		total.rows = []modelRow{{stack: "main;a", value: of.total / 3}, {stack: "main;b;c", value: of.total - of.total/3}}
		m.profiles = append(m.profiles, total)
	}
	if h.rnd.IntN(3) == 0 {
		waits := h.profile(of, "off_cpu", "off_cpu", "nanoseconds", kind.Delta, start, int64(of.interval))
		for range 1 + h.rnd.IntN(4) {
			row := h.row(int64(2e9))
			row.at, row.thread = start+(1+h.rnd.Int64N(seconds))*int64(time.Second), fmt.Sprint("thread ", h.rnd.IntN(3))
			waits.rows = append(waits.rows, row)
		}
		m.profiles = append(m.profiles, waits)
	}
	if h.disk == nil {
		h.cut = max(h.cut, h.now.Add(-h.cfg.Window).UnixNano())
	}
	refused := h.model.refused
	added := h.store.Add(m.build().Build(), h.now)
	if added.Err != nil {
		require.True(h.t, h.disk.isFailing() || h.store.LogError() != nil, "refused: %v", added.Err)
		h.note("message %d is refused: %v", m.number, added.Err)
		return
	}
	h.model.add(m)
	h.oldest = min(h.oldest, h.first(m))
	h.note("message %d of %s %s at %s: %d profiles", m.number, of.service, of.id, at.Format("02 15:04:05"),
		len(m.profiles))
	require.Equal(h.t, h.model.refused-refused, added.Refused[model.RefusedOrder])
	require.Equal(h.t, len(m.profiles), added.Profiles+added.Refused[model.RefusedOrder])
}

// sendAgain sends one of the last messages again, as a sender that got no answer.
func (h *history) sendAgain() {
	list := h.model.messages[max(h.fresh, len(h.model.messages)-20):]
	if len(list) == 0 {
		return
	}
	m := *pick(h.rnd, list...)
	if h.now.Sub(m.arrived) > time.Hour || slices.ContainsFunc(m.profiles, func(p *modelProfile) bool {
		return h.now.UnixNano()-p.time > int64(h.store.Window())/2
	}) {
		return // it may be kept under another time, or its series forgotten
	}
	m.arrived, m.isAgain = h.now, true
	refused := h.model.refused
	if added := h.store.Add(m.build().Build(), h.now); added.Err == nil {
		h.model.add(&m)
		require.Equal(h.t, h.model.refused-refused, added.Refused[model.RefusedOrder])
		h.note("message %d again", m.number)
	}
}

// first returns when what is kept of a message begins.
func (h *history) first(m *message) int64 {
	first := h.now.UnixNano()
	for _, c := range h.model.list {
		if slices.Contains(m.profiles, c.modelProfile) {
			first = min(first, c.start)
		}
	}
	return first
}

// instance returns one that sends. Those that were silent for hours do not come back: when they are forgotten is not
// promised.
func (h *history) instance() *instance {
	h.instances = slices.DeleteFunc(h.instances, func(of *instance) bool {
		// The store forgets a series after four hours, by a clock that may be an hour ahead. The model does not.
		return slices.ContainsFunc([]time.Time{of.last, of.stated, of.totalled}, func(last time.Time) bool {
			return !last.IsZero() && h.now.Sub(last) > 2*time.Hour
		})
	})
	if len(h.instances) < 4 || h.rnd.IntN(20) == 0 {
		h.instances = append(h.instances, &instance{
			service: pick(h.rnd, "shop", "cart"), id: fmt.Sprint("pod-", h.number), version: pick(h.rnd, "1", "2"),
			interval: pick(h.rnd, time.Second, 10*time.Second, time.Minute), last: h.now,
		})
	}
	of := pick(h.rnd, h.instances...)
	of.last = h.now
	return of
}

func (h *history) profile(of *instance, name, typ, unit string, values kind.Values, start,
	duration int64) *modelProfile {
	return &modelProfile{
		service: of.service, instance: of.id, version: of.version, name: name, typ: model.SampleType{Type: typ, Unit: unit},
		values: values,
		time:   start, duration: duration,
	}
}

func (h *history) rows(largest int64) (rows []modelRow) {
	for range 1 + h.rnd.IntN(3) {
		rows = append(rows, h.row(largest))
	}
	return rows
}

func (h *history) row(largest int64) modelRow {
	stack := "main"
	for range h.rnd.IntN(3) {
		stack += ";" + pick(h.rnd, "a", "b", "c")
	}
	return modelRow{stack: stack, endpoint: pick(h.rnd, "", "", "/pay", "/cart"), value: 1 + h.rnd.Int64N(largest)}
}
