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
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
)

// This file has the blocks on disk. A manifest, blocks.json, names those that are live. It is replaced as a whole when blocks are written,
// joined or deleted, so that a process that ends meanwhile leaves the blocks of before or those of afterwards. What it does not name is
// rubbish.

// manifest is the content of blocks.json.
type manifest struct {
	Version int `json:"version"`
	// Head is the number of the first head that is not in the blocks: earlier ones are skipped in the log.
	Head   uint64   `json:"head"`
	Blocks []string `json:"blocks"`
}

const (
	manifestFile    = "blocks.json"
	manifestVersion = 1
)

// diskBlock is a block in a directory of its own.
type diskBlock struct {
	*blockfile.Reader
	// services has the positions of services in the index, lists the series that were read.
	services map[string]int
	lists    *seriesLists
	// readers is how many views have it. One that isGone is deleted after the last of them.
	readers int
	isGone  bool
}

// loadBlocks reads the blocks that the manifest names.
func (s *Store) loadBlocks() error {
	d := s.disk
	entries, err := blockfile.ReadDir(d.path("blocks"))
	if err != nil {
		return err
	}
	isLive, err := d.readManifest(entries)
	if err != nil {
		return err
	}
	s.nextID = max(s.nextID, d.head)
	for _, entry := range entries {
		dir := d.path("blocks", entry.Name())
		if !isLive[entry.Name()] {
			if !d.ReadOnly {
				_ = removeBlock(dir)
			}
			continue
		}
		delete(isLive, entry.Name())
		s.nextID = max(s.nextID, compaction.NumberOf(entry.Name())+1)
		b, err := d.open(dir)
		switch {
		case err == nil:
			d.blocks = append(d.blocks, b)
		case errors.Is(err, blockfile.ErrVersion):
			d.others = append(d.others, entry.Name())
			d.Report("a block was written by another version of this program, which can read it; it is left out", err)
		case errors.Is(err, blockfile.ErrDamaged):
			d.setAside(dir, err)
			s.stats.Damaged++
			d.lose(entry.Name())
		default:
			return fmt.Errorf("open block %s: %w", dir, err)
		}
	}
	for name := range isLive {
		d.lose(name)
		d.Report("a block is missing: somebody has deleted "+d.path("blocks", name), nil)
	}
	d.sort()
	return nil
}

// lose notes that a block cannot be read. If the log still has its head, that is read.
func (d *disk) lose(name string) {
	if compaction.IsHour(name) {
		d.lost[compaction.NumberOf(name)] = true
	}
}

// readManifest returns the names of the live blocks, which are all of them if there is no manifest.
func (d *disk) readManifest(entries []os.DirEntry) (isLive map[string]bool, err error) {
	isLive, d.lost = map[string]bool{}, map[uint64]bool{}
	var m manifest
	err = blockfile.ReadSealed(d.path(manifestFile), &m)
	switch {
	case err == nil && m.Version != manifestVersion:
		return nil, fmt.Errorf("%s has version %d, but this program reads version %d", d.path(manifestFile), m.Version, manifestVersion)
	case err == nil:
		d.head = m.Head
		for _, name := range m.Blocks {
			isLive[name] = true
		}
		return isLive, nil
	case !errors.Is(err, blockfile.ErrDamaged):
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, unfinished) {
			isLive[name] = true
		}
	}
	if len(isLive) > 0 {
		d.Report("the list of blocks cannot be read; all blocks that are there serve, and count twice if the process ended while it joined them", err)
	}
	return isLive, nil
}

// writeManifest makes blocks the live ones, beside those that this program cannot read.
func (d *disk) writeManifest(head uint64, blocks []*diskBlock) error {
	m := manifest{Version: manifestVersion, Head: head, Blocks: slices.Clone(d.others)}
	for _, b := range blocks {
		m.Blocks = append(m.Blocks, b.Block)
	}
	if err := blockfile.WriteSealed(d.path(manifestFile), &m); err != nil {
		return err
	}
	for _, b := range d.unsure {
		if !slices.Contains(m.Blocks, b.Block) {
			b.delete()
		}
	}
	d.unsure = nil
	return nil
}

// replace makes blocks live in place of others, which are deleted when no query reads them. head is the block in memory that they have, or
// nil. After an error, the blocks are as they were. It is not known then which list is on disk, so no file is deleted.
func (s *Store) replace(old, made []*diskBlock, head *block) error {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	number := d.head
	if head != nil {
		number = head.id + 1
	}
	list := append(slices.DeleteFunc(slices.Clone(d.blocks), func(b *diskBlock) bool { return slices.Contains(old, b) }), made...)
	sortBlocks(list)
	if err := d.writeManifest(number, list); err != nil {
		d.unsure = append(d.unsure, made...)
		return err
	}
	s.exchange(list, old, func() {
		if head != nil {
			d.head = number
			s.release(head)
			s.blocks = slices.DeleteFunc(s.blocks, func(e *block) bool { return e.id == head.id })
		}
	})
	return nil
}

// exchange sets the list of blocks without old ones, which are deleted when no query reads them.
func (s *Store) exchange(list, old []*diskBlock, then func()) {
	s.adding.Lock()
	s.mu.Lock()
	s.disk.blocks = list
	then()
	s.measure()
	s.mu.Unlock()
	for _, b := range old {
		b.isGone = true
	}
	old = slices.DeleteFunc(slices.Clone(old), func(b *diskBlock) bool { return b.readers > 0 })
	s.adding.Unlock()
	for _, b := range old {
		b.delete()
	}
}

// diskBlocks returns the blocks on disk, oldest first.
func (s *Store) diskBlocks() []*diskBlock {
	s.adding.Lock()
	defer s.adding.Unlock()
	return slices.Clone(s.disk.blocks)
}

func (s *Store) isGone(b *diskBlock) bool {
	s.adding.Lock()
	defer s.adding.Unlock()
	return b.isGone
}

// nextNumber returns a number for a new block.
func (s *Store) nextNumber() uint64 {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.nextID++
	return s.nextID - 1
}

// write writes a block of all profiles of the sources, and opens it. It is not live yet.
func (d *disk) write(ctx context.Context, name string, sources []compaction.Source, step time.Duration) (b *diskBlock, err error) {
	to := d.path("blocks", name)
	if err := removeBlock(to); err != nil { // of an attempt that failed
		return nil, err
	}
	if err := compaction.Merge(ctx, to+unfinished, name, sources, step); err != nil {
		return nil, err
	}
	if err = blockfile.Rename(to+unfinished, to); err == nil {
		b, err = d.open(to)
	}
	if err != nil {
		_, _ = os.RemoveAll(to+unfinished), removeBlock(to)
	}
	return b, err
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

func (d *disk) sort() { sortBlocks(d.blocks) }

func sortBlocks(list []*diskBlock) {
	slices.SortFunc(list, func(a, b *diskBlock) int {
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

func (d *disk) open(dir string) (*diskBlock, error) {
	r, err := blockfile.Open(dir)
	if err != nil {
		return nil, err
	}
	b := &diskBlock{Reader: r, services: map[string]int{}, lists: d.lists}
	for i := range r.Services {
		b.services[r.Services[i].Name] = i
	}
	return b, nil
}

// indexBytes is the memory that the block takes while nobody reads it: that of its services, and of its open files.
func (b *diskBlock) indexBytes() int { return indexBlockBytes + len(b.Services)*indexServiceBytes }

const (
	indexBlockBytes, indexServiceBytes = 4 << 10, 256
	// indexPart is the part of the memory that the services of all blocks on disk may take. Beyond it, the oldest blocks
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
	sr.values, sr.instance = valuesOf(in), instanceOfID(in.Instance)
	return sr
}

func valuesOf(in *blockfile.Series) kind.Values {
	for _, v := range []kind.Values{kind.Gauge, kind.Cumulative} { // or else kind.Delta
		if v.String() == in.Kind {
			return v
		}
	}
	return kind.Delta
}

func instanceOf(hash [32]byte) uint64 { return binary.BigEndian.Uint64(hash[:]) }

// instanceOfID reads the instance of a series on disk.
func instanceOfID(s string) uint64 {
	n, _ := strconv.ParseUint(s, 16, 64)
	return n
}

// delete deletes a block that is not live, and that nobody reads.
func (b *diskBlock) delete() {
	b.lists.forget(b)
	_ = b.Close()
	_ = removeBlock(b.Dir())
}

// drop takes a block that cannot be read out of the store.
func (s *Store) drop(b *diskBlock, err error) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	i := slices.Index(d.blocks, b)
	if i < 0 {
		return
	}
	list := slices.Delete(slices.Clone(d.blocks), i, i+1)
	s.exchange(list, nil, func() { s.stats.Damaged++ })
	b.lists.forget(b)
	_ = b.Close()
	d.setAside(b.Dir(), err)
	if err := d.writeManifest(d.head, list); !d.ReadOnly && err != nil {
		d.Report("the list of blocks cannot be written; a start reports the one that was set aside as missing", err)
	}
}

// retain deletes the blocks that are too old, and the oldest ones until the rest is within MaxBytes.
func (s *Store) retain(now time.Time) {
	oldest := now.Add(-s.disk.Retention).UnixNano()
	s.deleteBlocks(func(b *diskBlock) bool { return b.Until < oldest }, EvictedAge)
	s.deleteBeyond(0)
}

// deleteBeyond deletes the oldest blocks until there is room for more bytes within MaxBytes.
func (s *Store) deleteBeyond(more int64) {
	total, index := more, 0
	for _, b := range s.diskBlocks() {
		total += b.Bytes()
		index += b.indexBytes()
	}
	s.deleteBlocks(func(b *diskBlock) bool {
		if total <= s.disk.MaxBytes && index <= s.cfg.MaxBytes/indexPart {
			return false
		}
		total, index = total-b.Bytes(), index-b.indexBytes()
		return true
	}, EvictedBytes)
}

// deleteBlocks deletes blocks, the oldest first. It does so although the manifest cannot be written: there may be no room for it.
func (s *Store) deleteBlocks(which func(*diskBlock) bool, reason Evicted) {
	d := s.disk
	d.replacing.Lock()
	defer d.replacing.Unlock()
	var old, list []*diskBlock
	profiles := 0
	for _, b := range d.blocks {
		if which(b) {
			old, profiles = append(old, b), profiles+b.ProfileCount
		} else {
			list = append(list, b)
		}
	}
	if len(old) == 0 {
		return
	}
	if err := d.writeManifest(d.head, list); err != nil {
		d.Report("the list of blocks cannot be written; a start reports old blocks as missing that are deleted now", err)
	}
	s.exchange(list, old, func() { s.stats.Evicted[reason] += profiles })
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
