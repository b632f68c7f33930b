// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// This file is the directory: a lock, the write-ahead log, blocks, and blocks that were found to be damaged.
//
//	LOCK      is held by the process that uses the directory
//	wal       has what is in memory alone
//	blocks    has a directory for each block
//	damaged   has those that cannot be read

// DiskConfig configures where profiles are kept for long.
type DiskConfig struct {
	// Directory is made if it is not there. Empty means that profiles are kept in memory alone.
	Directory string
	// Retention is how long profiles are kept. MaxBytes bounds the blocks: the oldest are deleted first.
	Retention time.Duration
	MaxBytes  int64
	// Downsampling makes old days coarser.
	Downsampling Downsampling
	// ReadOnly leaves the directory as it is: it may be another process's, whose blocks are read, but not what is in
	// its memory.
	ReadOnly bool
	// Report is called with what an operator should know: a block that is damaged, a disk that is full or works again.
	// err may be nil.
	Report func(message string, err error)
}

const (
	// diskBlocks is the part of the memory that the block that grows may take. It and what waits to be written are the
	// most of it.
	diskBlocks = 8
	// waitingPart is the part that blocks which wait to be written may take before small messages wait: an eighth waits
	// when a large message is added, and leaves a block of an eighth and a quarter.
	waitingPart = 2
	// dayBlocks is how many blocks a day may have before they become one, even if it goes on.
	dayBlocks = 48
	// settledAfter is how long after its end a day gets no more profiles as a rule.
	settledAfter = time.Hour
	// lateShare is the part of a day's largest block that its other blocks must have for them to become one: a few
	// profiles that come later do not let a whole day be written again.
	lateShare = 4
)

// disk is a directory. The store's adding guards its fields.
type disk struct {
	DiskConfig
	lock   fileutil.Releaser
	log    *writeLog
	blocks []*diskBlock
	// failed is why the log is not written, or nil. writeFailed is why a block could not be written the last time,
	// joinFailed why blocks could not be made one.
	failed, writeFailed, joinFailed error
	// stopSync ends the goroutines of the store, and synced is closed when they have ended.
	stopSync chan struct{}
	synced   chan struct{}
	// joinAfter is when blocks are made one again after joinFailed, and joinPause how long that was.
	joinAfter time.Time
	joinPause time.Duration
	// freeBytes is the function of that name. Tests have less room.
	freeBytes func(dir string) int64
	clock     clock
	// writing serialises writeHeads. full is sent to when a block is full, and written is signalled when one was
	// written, or could not be.
	writing sync.Mutex
	full    chan struct{}
	written *sync.Cond
}

// diskBlock is a block in a directory of its own.
type diskBlock struct {
	*blockfile.Reader
	// catalog has its series without profiles. services has the positions of services in the index.
	catalog  *block
	services map[string]int
	// readers is how many views have it. One that isGone is deleted after the last of them.
	readers int
	isGone  bool
	// day and quarter are the time whose blocks become one, as block names begin. That of a whole day has no quarter.
	day, quarter string
}

// Open reads what Disk.Directory has, if it is set. Close ends its use. Nothing may have been added before.
func (s *Store) Open() error {
	if s.cfg.Disk.Directory == "" {
		return nil
	}
	d := &disk{DiskConfig: s.cfg.Disk, written: sync.NewCond(s.adding), freeBytes: freeBytes}
	if d.ReadOnly {
		s.disk = d
		if err := s.loadBlocks(); err != nil {
			return fmt.Errorf("%s is not a store: %w", d.Directory, err)
		}
		d.sort()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.measure()
		return nil
	}
	for _, dir := range []string{d.path("blocks"), d.path("damaged")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make the store's directory: %w", err)
		}
	}
	lock, _, err := fileutil.Flock(d.path("LOCK"))
	if err != nil {
		return fmt.Errorf("another process uses the store's directory %s: give each its own (%w)", d.Directory, err)
	}
	d.lock, s.disk = lock, d
	if err := s.load(); err != nil {
		return errors.Join(err, s.Close())
	}
	d.stopSync, d.synced, d.full = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go s.run()
	return nil
}

// run writes blocks that are full, and makes the log durable, until stopSync is closed. Neither waits for the other.
func (s *Store) run() {
	defer close(s.disk.synced)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.writeFull(ctx) })
	running.Go(s.syncLog)
	<-s.disk.stopSync
	cancel()
	running.Wait()
}

func (d *disk) path(names ...string) string {
	return filepath.Join(append([]string{d.Directory}, names...)...)
}

// Blocks returns the blocks on disk, oldest first. They are valid until Close.
func (s *Store) Blocks() []*blockfile.Reader {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.disk == nil {
		return nil
	}
	list := make([]*blockfile.Reader, len(s.disk.blocks))
	for i, b := range s.disk.blocks {
		list[i] = b.Reader
	}
	return list
}

// loadBlocks reads the blocks.
func (s *Store) loadBlocks() error {
	d := s.disk
	entries, err := blockfile.ReadDir(d.path("blocks"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := d.path("blocks", entry.Name())
		if strings.HasSuffix(entry.Name(), unfinished) {
			d.remove(dir)
			continue
		}
		b, err := openBlock(dir)
		switch {
		case err == nil:
			d.blocks = append(d.blocks, b)
		case errors.Is(err, blockfile.ErrVersion):
			s.nextID = max(s.nextID, headOf(entry.Name())+1)
			d.Report("a block was written by another version of this program, which can read it; it is left out", err)
		case errors.Is(err, blockfile.ErrDamaged):
			d.setAside(dir, err)
			s.stats.Damaged++
		default:
			return fmt.Errorf("open block %s: %w", dir, err)
		}
	}
	// Those that were made one or coarser are there if the process ended before it could delete them.
	d.blocks = slices.DeleteFunc(d.blocks, func(old *diskBlock) bool {
		isReplaced := slices.ContainsFunc(d.blocks, func(b *diskBlock) bool { return b.replaces(old) })
		if isReplaced && !d.ReadOnly {
			_ = removeBlock(old.Dir())
		}
		return isReplaced
	})
	return nil
}

func (d *disk) remove(dir string) {
	if !d.ReadOnly {
		_ = os.RemoveAll(dir)
	}
}

// removeBlock deletes a block, if there is one. It loses its name first: a process that ends meanwhile leaves no part
// of a block.
func removeBlock(dir string) error {
	gone := dir + ".gone" + unfinished
	if err := blockfile.Fault("remove", dir); err != nil {
		return err
	}
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := os.Rename(dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := blockfile.Fault("delete", gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// load reads the blocks and the log.
func (s *Store) load() error {
	d := s.disk
	if err := s.loadBlocks(); err != nil {
		return err
	}
	written := map[uint64]bool{}
	parts := map[uint64]int{}
	for _, b := range d.blocks {
		for _, head := range b.Heads {
			s.nextID = max(s.nextID, head+1)
			parts[head]++
			// Only blocks of heads that are whole are merged.
			written[head] = written[head] || b.Parts == 0 || parts[head] >= b.Parts
		}
	}
	if err := s.replay(d.path(logFolder), written); err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	// A head of which not all blocks were finished is in the log. If it is not there, the others were deleted for their
	// age.
	d.blocks = slices.DeleteFunc(d.blocks, func(b *diskBlock) bool {
		inLog := b.Parts > 0 && slices.ContainsFunc(s.blocks, func(e *block) bool { return e.id == b.Heads[0] })
		if inLog {
			_ = removeBlock(b.Dir())
		}
		return inLog
	})
	d.sort()
	s.countBlocks()
	var err error
	if d.log, err = openLog(d.Directory); err != nil {
		s.logFailed(err)
	}
	for _, b := range d.blocks {
		d.clock.start(b.Until)
	}
	for _, e := range s.blocks {
		d.clock.start(e.until)
	}
	if n := len(s.blocks); n > 0 {
		s.importer.Reset(s.blocks[n-1].dict)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	return nil
}

// replaces reports whether b was made of old and perhaps others of its time. A head can have blocks of several times:
// that of another time was not merged, although b has the head.
func (b *diskBlock) replaces(old *diskBlock) bool {
	if !b.isJoined() || b.day != old.day || !b.isDay() && b.quarter != old.quarter || b == old {
		return false
	}
	for _, head := range old.Heads {
		if !slices.Contains(b.Heads, head) {
			return false
		}
	}
	return !old.isJoined() || b.isDay() && !old.isDay() || len(old.Heads) < len(b.Heads) || old.Step < b.Step
}

// isJoined reports whether the block was made of others, isDay whether of any of its day.
func (b *diskBlock) isJoined() bool { return b.Parts == 0 }
func (b *diskBlock) isDay() bool    { return b.quarter == "" }

func (d *disk) sort() {
	slices.SortFunc(d.blocks, func(a, b *diskBlock) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Block, b.Block))
	})
}

// setAside moves a block out of the way that cannot be read.
func (d *disk) setAside(dir string, err error) {
	if d.ReadOnly {
		d.Report("a block is damaged and left out: "+dir, err)
		return
	}
	to := d.path("damaged", filepath.Base(dir))
	if renamed := blockfile.Rename(dir, to); renamed != nil {
		to = dir
	}
	d.Report("a block is damaged and set aside; the others serve: "+to, err)
}

// unfinished ends the names of blocks that are being written.
const unfinished = ".tmp"

func openBlock(dir string) (*diskBlock, error) {
	r, err := blockfile.Open(dir)
	if err != nil {
		return nil, err
	}
	b := &diskBlock{Reader: r, services: map[string]int{}}
	b.day, b.quarter = timeOf(filepath.Base(dir))
	e := newBlock(time.Unix(0, r.From))
	e.until, e.profiles, e.samples = r.Until, r.ProfileCount, r.SampleCount
	strs := &e.dict.Strings
	for i := range r.Services {
		service := &r.Services[i]
		b.services[service.Name] = i
		for k := range service.Series {
			in := &service.Series[k]
			sr := seriesOf(strs, service.Name, in)
			sr.profiles, sr.samples, sr.bytes, sr.moved = in.Profiles, in.Samples, in.Samples*diskSampleBytes, in.Moved
			sr.from, sr.until, sr.timestamps, sr.position = in.From, in.Until, in.Timestamps, in.Position
			sr.periodType, sr.periodUnit, sr.flags = strs.Intern(in.PeriodType), strs.Intern(in.PeriodUnit), chunkFlags(in.Flags)
			e.series = append(e.series, sr)
		}
	}
	e.freeze()
	b.catalog = e
	return b, nil
}

// indexBytes is the memory that the block takes while nobody reads it: that of its series.
func (b *diskBlock) indexBytes() int { return len(b.catalog.series) * indexSeriesBytes }

const (
	indexSeriesBytes = 640
	// indexPart is the part of the memory that the series of all blocks on disk may take. Beyond it, the oldest blocks
	// are deleted.
	indexPart = 4
)

// diskSampleBytes is about what a sample takes on disk.
const diskSampleBytes = 3

// seriesOf returns a series of a block on disk, without profiles and attributes.
func seriesOf(strs *dictionary.Strings, service string, in *blockfile.Series) series {
	sr := series{
		service: strs.Intern(service), profile: strs.Intern(in.Profile), typ: strs.Intern(in.Type), unit: strs.Intern(in.Unit), id: parseID(in.ID),
	}
	for _, v := range []kind.Values{kind.Gauge, kind.Cumulative} { // or else kind.Delta
		if v.String() == in.Kind {
			sr.values = v
		}
	}
	sr.instance, _ = strconv.ParseUint(in.Instance, 16, 64)
	return sr
}

func instanceOf(hash [32]byte) uint64 { return binary.BigEndian.Uint64(hash[:]) }

// close closes the files of a block that nobody reads, and deletes one that is gone. The store's adding is locked.
func (b *diskBlock) close() {
	if b.readers > 0 {
		return
	}
	if b.isGone {
		_ = b.Close()
		_ = removeBlock(b.Dir())
	}
}

// Close writes what is not on disk yet to the log, and frees the directory. The store must not be used afterwards.
func (s *Store) Close() error {
	d := s.disk
	if d == nil {
		return nil
	}
	if d.stopSync != nil {
		close(d.stopSync)
		<-d.synced
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	d.writeFailed = errors.New("the store is closed")
	d.written.Broadcast()
	var errs []error
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	for _, b := range d.blocks {
		errs = append(errs, b.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Release())
	}
	return errors.Join(errs...)
}

// syncInterval is how often the log is made durable. A process that is killed loses nothing that was acknowledged; a
// machine that loses its power, the last second.
const syncInterval = time.Second

func (s *Store) syncLog() {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.disk.stopSync:
			return
		}
		s.adding.Lock()
		log := s.disk.log
		if s.disk.failed != nil {
			log = nil
		}
		s.adding.Unlock()
		if log == nil || log.sync() == nil {
			continue
		}
		// Another segment, or another log, may have begun meanwhile: not while nothing is added.
		s.adding.Lock()
		if s.disk.failed == nil {
			if err := s.disk.log.sync(); err != nil {
				s.logFailed(err)
			}
		}
		s.adding.Unlock()
	}
}

// writeFull writes blocks that are full until ctx ends.
func (s *Store) writeFull(ctx context.Context) {
	for {
		select {
		case <-s.disk.full:
			s.reportWrites(s.writeHeads(ctx))
		case <-ctx.Done():
			return
		}
	}
}

// beginLog begins a block in the log.
func (s *Store) beginLog(e *block) {
	if s.disk != nil && s.disk.failed == nil {
		if err := s.disk.log.begin(e, s.series); err != nil {
			s.logFailed(err)
		}
	}
}

// writeAhead writes what a message added to the log.
func (s *Store) writeAhead(e *block, chunks []addedChunk) {
	if s.disk != nil && s.disk.failed == nil && len(chunks) > 0 {
		if err := s.disk.log.add(e, chunks); err != nil {
			s.logFailed(err)
		}
	}
}

// logFailed stops writing the log until Maintain has begun another one.
func (s *Store) logFailed(err error) {
	s.disk.failed = err
	s.disk.Report("the store cannot write its log; what is in memory is written as blocks before the log goes on", err)
}

// LogError returns why what is added is not safe from a kill, or nil.
func (s *Store) LogError() error {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.disk == nil {
		return nil
	}
	return s.disk.failed
}

// reopenLog begins the log again if it had failed, when everything in memory is on disk. What the log had until then
// stays until its successor is durable.
func (s *Store) reopenLog(now time.Time) {
	s.adding.Lock()
	defer s.adding.Unlock()
	d := s.disk
	if d.failed == nil || slices.ContainsFunc(s.blocks, func(e *block) bool { return e.profiles > 0 }) {
		return
	}
	if d.log != nil {
		_ = d.log.Close()
	}
	log, err := openLog(d.Directory)
	if d.log = log; err == nil {
		// The new block has what is known of the series.
		e := s.beginBlock(now)
		err = log.begin(e, s.series)
		if err == nil {
			err = log.sync()
		}
		if err == nil {
			err = log.truncate(e.segment)
		}
	}
	if d.failed = err; err == nil {
		d.Report("the store writes its log again", nil)
	}
}

// Maintain is MaintainContext without an end.
func (s *Store) Maintain(now time.Time) { s.MaintainContext(context.Background(), now) }

// MaintainContext drops profiles that are too old, and writes blocks to disk. It is for one goroutine, every few
// seconds. When ctx ends, it abandons the block that it is writing; the next call writes that block again.
func (s *Store) MaintainContext(ctx context.Context, now time.Time) {
	if s.disk == nil {
		s.Expire(now)
		s.maintained(now)
		return
	}
	s.adding.Lock()
	if n := len(s.blocks); n > 0 && s.blocks[n-1].byKey != nil && (s.disk.failed != nil || s.isFull(s.blocks[n-1], now)) {
		s.blocks[n-1].freeze()
	}
	s.adding.Unlock()
	err := s.writeHeads(ctx)
	if ctx.Err() != nil {
		return
	}
	s.reportWrites(err)
	s.reopenLog(now)
	if err == nil {
		s.reportJoins(s.compact(ctx, now), now)
		if s.disk.joinFailed == nil && ctx.Err() == nil {
			s.maintained(now)
		}
	}
	s.retain(s.disk.clock.trusted(now))
	s.Expire(now)
}

func (s *Store) maintained(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Maintained = now
}

// reportWrites reports when writing blocks fails, and when it works again.
func (s *Store) reportWrites(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	d := s.disk
	s.adding.Lock()
	before := d.writeFailed
	d.writeFailed = err
	d.written.Broadcast()
	s.adding.Unlock()
	if err != nil && before == nil {
		d.Report("the store cannot write a block; its profiles stay in memory, and it tries again", err)
	} else if err == nil && before != nil {
		d.Report("the store writes blocks again", nil)
	}
}

const minJoinPause, maxJoinPause = time.Minute, time.Hour

// reportJoins reports when blocks cannot be made one, and when they can be again. After a failure it is tried again
// later and later.
func (s *Store) reportJoins(err error, now time.Time) {
	d := s.disk
	if errors.Is(err, context.Canceled) || errors.Is(err, errPause) {
		return
	}
	before := d.joinFailed
	d.joinFailed = err
	if err == nil {
		d.joinPause = 0
		if before != nil {
			d.Report("the store joins blocks again", nil)
		}
		return
	}
	d.joinPause = min(max(minJoinPause, 2*d.joinPause), maxJoinPause)
	d.joinAfter = now.Add(d.joinPause)
	if before == nil {
		d.Report("the store cannot join blocks; they stay as they are, queries read them, and it tries again", err)
	}
}

// writeHeads writes the blocks in memory that do not grow to disk.
func (s *Store) writeHeads(ctx context.Context) error {
	s.disk.writing.Lock()
	defer s.disk.writing.Unlock()
	for {
		s.adding.Lock()
		var e *block
		if len(s.blocks) > 0 && s.blocks[0].byKey == nil {
			e = s.blocks[0]
		}
		s.adding.Unlock()
		if e == nil {
			return nil
		}
		written, err := s.writeHead(ctx, e)
		if err != nil {
			return err
		}
		s.adding.Lock()
		s.mu.Lock()
		if len(s.blocks) > 0 && s.blocks[0].id == e.id { // otherwise it was dropped meanwhile
			s.release(s.blocks[0])
			s.blocks = slices.Delete(s.blocks, 0, 1)
		}
		s.disk.blocks = append(s.disk.blocks, written...)
		s.disk.sort()
		s.measure()
		segment := e.segment
		if len(s.blocks) > 0 {
			segment = s.blocks[0].segment
		}
		s.mu.Unlock()
		if s.disk.failed == nil {
			if err := s.disk.log.truncate(segment); err != nil {
				s.logFailed(err)
			}
		}
		s.disk.written.Broadcast()
		s.adding.Unlock()
	}
}

// mustWait reports whether a message has to wait until blocks that are full are on disk, so that they do not fill the
// memory. A large one waits for nearly all of them. A small one waits only before it begins another block, and only if
// more wait than what a block and a large message leave behind: large messages do not delay it. A disk that fails is
// not waited for.
func (s *Store) mustWait(cost int, beginsBlock bool) bool {
	if s.disk == nil || s.disk.full == nil || s.disk.writeFailed != nil {
		return false
	}
	if s.isLarge(cost) {
		return s.waiting() > s.cfg.MaxBytes/diskBlocks
	}
	return beginsBlock && s.waiting() > s.cfg.MaxBytes/waitingPart
}

// writeSoon has the blocks that are full written.
func (s *Store) writeSoon() {
	if s.disk == nil || s.disk.full == nil {
		return
	}
	select {
	case s.disk.full <- struct{}{}:
	default: // it is known
	}
}

// waiting returns the memory of blocks that wait to be written.
func (s *Store) waiting() (bytes int) {
	for _, e := range s.blocks {
		if e.byKey == nil {
			bytes += e.bytes
		}
	}
	return bytes
}

// The names of blocks begin with the hour (UTC) of a head, or with the quarter or the day of what was joined.
const (
	dayLayout  = "20060102"
	hourLayout = dayLayout + "T15"
	// quarterHours is how long a quarter of a day is, of which 1 is the first: 20261121Q1.
	quarterHours = 6
)

// timeOf returns the day of a block's name, and its quarter unless it has the whole day.
func timeOf(name string) (day, quarter string) {
	name, _, _ = strings.Cut(name, "-")
	day = name[:min(len(name), len(dayLayout))]
	if hour, err := time.Parse(hourLayout, name); err == nil {
		return day, fmt.Sprintf("%sQ%d", day, 1+hour.Hour()/quarterHours)
	}
	if _, _, ok := quarterOf(name); ok {
		return day, name
	}
	return day, ""
}

// headOf returns the number of the last head in a block's name.
func headOf(name string) uint64 {
	_, number, _ := strings.Cut(name, "-")
	number, _, _ = strings.Cut(number, "-")
	head, _ := strconv.ParseUint(number, 16, 64)
	return head
}

// quarterOf returns the start of the day of a quarter, and its number from 1 on.
func quarterOf(name string) (day time.Time, n int, ok bool) {
	date, number, _ := strings.Cut(name, "Q")
	n, _ = strconv.Atoi(number)
	day, err := time.Parse(dayLayout, date)
	return day, n, err == nil && n > 0 && n <= 24/quarterHours
}

// writeHead writes a block that does not grow: that of its hour, and one for each other hour that is further away.
func (s *Store) writeHead(ctx context.Context, e *block) (written []*diskBlock, err error) {
	hours := map[int64]bool{}
	for i := range e.series {
		for k := range e.series[i].chunks {
			hours[e.hourOf(&e.series[i].chunks[k])] = true
		}
	}
	var names []string
	defer func() {
		if err != nil {
			for _, name := range names {
				_ = os.RemoveAll(s.disk.path("blocks", name+unfinished))
			}
		}
	}()
	for hour := range hours {
		name := fmt.Sprintf("%s-%08x", time.Unix(0, hour).UTC().Format(hourLayout), e.id)
		names = append(names, name)
		m := &blockMerger{name: name, sources: []source{e.source()}, heads: []uint64{e.id}, parts: len(hours), ctx: ctx}
		m.wants = func(c *chunk) bool { return e.hourOf(c) == hour }
		if err := m.write(s.disk.path("blocks", name+unfinished)); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		b, err := s.disk.publish(name)
		if err != nil {
			return nil, err
		}
		written = append(written, b)
	}
	return written, nil
}

// hourOf returns the hour of the block in which a profile of it goes: that in which the block began, if it is not
// further away than an hour.
func (e *block) hourOf(c *chunk) int64 {
	begun, start := e.begun.Truncate(time.Hour).UnixNano(), time.Unix(0, c.start).Truncate(time.Hour).UnixNano()
	if d := start - begun; d >= -int64(time.Hour) && d <= int64(time.Hour) {
		return begun
	}
	return start
}

// publish gives a block that was written its name, and opens it.
func (d *disk) publish(name string) (b *diskBlock, err error) {
	to := d.path("blocks", name)
	if err := removeBlock(to); err != nil { // of an attempt that failed
		return nil, err
	}
	if err = blockfile.Rename(to+unfinished, to); err == nil {
		b, err = openBlock(to)
	}
	if err != nil {
		_ = removeBlock(to)
	}
	return b, err
}

// errPause is returned while it is too early to try to join blocks again.
var errPause = errors.New("blocks could not be joined a moment ago")

// compact makes one block of those of a quarter of a day, in the end one of those of the day, and later a coarser one.
// So what arrives in time is written three times, besides the log: with its head, its quarter and its day.
func (s *Store) compact(ctx context.Context, now time.Time) error {
	if s.disk.joinFailed != nil && now.Before(s.disk.joinAfter) {
		return errPause
	}
	var errs []error
	for quarter, list := range s.blocksBy(func(b *diskBlock) string { return b.quarter }) {
		start, n, ok := quarterOf(quarter)
		age := now.Sub(start)
		// The whole day becomes one block soon after its last quarter.
		if !ok || age < time.Duration(n)*quarterHours*time.Hour || age >= 24*time.Hour || !isWorthJoining(list, (*diskBlock).isJoined) {
			continue
		}
		errs = append(errs, s.join(ctx, quarter, list, 0))
	}
	for day, list := range s.blocksBy(func(b *diskBlock) string { return b.day }) {
		start, err := time.Parse(dayLayout, day)
		if err != nil {
			continue
		}
		age, step := now.Sub(start), time.Duration(0)
		isOver, becomesCoarser := age > 24*time.Hour+settledAfter, s.disk.Downsampling.isFor(largestOf(list), age)
		switch {
		case len(list) == 1 && becomesCoarser:
			step = s.disk.Downsampling.Step
		case len(list) == 1, len(list) < dayBlocks && !becomesCoarser && !(isOver && isWorthJoining(list, (*diskBlock).isDay)):
			continue
		}
		errs = append(errs, s.join(ctx, day, list, step))
	}
	return errors.Join(errs...)
}

// blocksBy returns the blocks on disk by a key.
func (s *Store) blocksBy(key func(*diskBlock) string) map[string][]*diskBlock {
	s.adding.Lock()
	defer s.adding.Unlock()
	lists := map[string][]*diskBlock{}
	for _, b := range s.disk.blocks {
		lists[key(b)] = append(lists[key(b)], b)
	}
	return lists
}

func largestOf(list []*diskBlock) *diskBlock {
	return slices.MaxFunc(list, func(a, b *diskBlock) int { return cmp.Compare(a.Bytes(), b.Bytes()) })
}

// isWorthJoining reports whether blocks of one time become one: they do so once, and again when those that came later
// are large enough. isJoined reports whether a block is the result.
func isWorthJoining(list []*diskBlock, isJoined func(*diskBlock) bool) bool {
	largest := largestOf(list)
	late := -largest.Bytes()
	for _, b := range list {
		late += b.Bytes()
	}
	return len(list) > 1 && (!isJoined(largest) || late >= largest.Bytes()/lateShare)
}

// join makes one block of all those of a time.
func (s *Store) join(ctx context.Context, name string, list []*diskBlock, step time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := &blockMerger{step: step, wants: func(*chunk) bool { return true }, ctx: ctx}
	need := int64(0)
	for _, b := range list {
		need += b.Bytes()
		m.sources = append(m.sources, b.source())
		m.heads = append(m.heads, b.Heads...)
	}
	m.name = fmt.Sprintf("%s-%08x-%d", name, slices.Max(m.heads), len(m.heads))
	slices.Sort(m.heads)
	m.heads = slices.Compact(m.heads)
	if step > 0 {
		m.name += "-" + step.String()
	}
	// The log and the blocks that are full come first: there is room for them beside the new block.
	if free := s.disk.freeBytes(s.disk.Directory); free < need+need/8+int64(s.cfg.MaxBytes)/diskBlocks {
		return fmt.Errorf("join %s: %w: its blocks have %d bytes, and %d are free", name, errNoRoom, need, free)
	}
	if err := m.write(s.disk.path("blocks", m.name+unfinished)); err != nil {
		var damaged *damagedBlock
		if errors.As(err, &damaged) {
			s.drop(damaged.block, err)
			return nil
		}
		return err
	}
	b, err := s.disk.publish(m.name)
	if err != nil {
		return err
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	s.disk.blocks = append(slices.DeleteFunc(s.disk.blocks, func(b *diskBlock) bool { return slices.Contains(list, b) }), b)
	s.disk.sort()
	for _, old := range list {
		old.isGone = true
		old.close()
	}
	return nil
}

var errNoRoom = errors.New("the disk has too little room")

// drop takes a block that cannot be read out of the store.
func (s *Store) drop(b *diskBlock, err error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if i := slices.Index(s.disk.blocks, b); i >= 0 {
		s.disk.blocks = slices.Delete(s.disk.blocks, i, i+1)
		_ = b.Close()
		s.disk.setAside(b.Dir(), err)
		s.mu.Lock()
		s.stats.Damaged++
		s.measure()
		s.mu.Unlock()
	}
}

// retain deletes the blocks that are too old, and the oldest ones until the rest is within MaxBytes.
func (s *Store) retain(now time.Time) {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.disk
	total, index := int64(0), 0
	for _, b := range d.blocks {
		total += b.Bytes()
		index += b.indexBytes()
	}
	oldest := now.Add(-d.Retention).UnixNano()
	d.blocks = slices.DeleteFunc(d.blocks, func(b *diskBlock) bool {
		reason := EvictedAge
		if b.Until >= oldest {
			if total <= d.MaxBytes && index <= s.cfg.MaxBytes/indexPart {
				return false
			}
			reason = EvictedBytes
		}
		total, index = total-b.Bytes(), index-b.indexBytes()
		s.stats.Evicted[reason] += b.ProfileCount
		b.isGone = true
		b.close()
		return true
	})
	s.measure()
}

func parseID(s string) (id seriesID) {
	_, _ = hex.Decode(id[:], []byte(s[:min(len(s), 2*len(id))]))
	return id
}

type damagedBlock struct {
	block *diskBlock
	err   error
}

// fault returns an error of reading the block: damagedBlock only if its bytes are wrong.
func (b *diskBlock) fault(err error) error {
	if errors.Is(err, blockfile.ErrDamaged) {
		return &damagedBlock{b, err}
	}
	return fmt.Errorf("block %s: %w", b.Block, err)
}

// ErrUnreadable is wrapped by the error of a query that may work later: files cannot be read at the moment.
var ErrUnreadable = blockfile.ErrUnreadable

func (e *damagedBlock) Error() string { return e.err.Error() }
func (e *damagedBlock) Unwrap() error { return e.err }
