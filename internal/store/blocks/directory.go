// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blocks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compaction"
)

// The names in the directory.
const (
	// ManifestFile names the live blocks, Folder has a directory for each, and Damaged those that cannot be read.
	ManifestFile = "blocks.json"
	Folder       = "blocks"
	Damaged      = "damaged"
	// Unfinished ends the names of what is being written.
	Unfinished = ".tmp"
)

// Version is that of the manifest.
const Version = 1

// Manifest is the content of blocks.json.
type Manifest struct {
	Version int `json:"version"`
	// Head is the number of the first head that is not in the blocks: earlier ones are skipped in the log, but for Lost.
	// Those are in the log, and their blocks could not be read.
	Head   uint64   `json:"head"`
	Lost   []uint64 `json:"lost,omitempty"`
	Blocks []string `json:"blocks"`
}

// Directory has the files. Its methods are called one at a time, except Write and Delete.
type Directory struct {
	Dir string
	// ReadOnly leaves the directory as it is.
	ReadOnly bool
	Report   func(message string, err error)
	// Lists are those of the series of blocks that were read last.
	Lists *SeriesLists
	// Head and Lost are those of the manifest.
	Head uint64
	Lost map[uint64]bool
	// HasList reports that Load could read the manifest.
	HasList bool
	// others are live blocks that this program cannot read.
	others []string
	// unsure are blocks that a list has which may be on disk: they are deleted when another one is.
	unsure []*Block
}

// Path returns the path of a block.
func (d *Directory) Path(name string) string { return filepath.Join(d.Dir, Folder, name) }

// Loaded is what Load found.
type Loaded struct {
	Blocks []*Block
	// Damaged is how many blocks were set aside, and Next the first number that no block has.
	Damaged int
	Next    uint64
}

// Load opens the live blocks, and deletes what else there is.
func (d *Directory) Load() (found Loaded, err error) {
	entries, err := blockfile.ReadDir(d.Path(""))
	if err != nil {
		return found, err
	}
	isLive, err := d.read(entries)
	if err != nil {
		return found, err
	}
	found.Next = d.Head
	for _, entry := range entries {
		name := entry.Name()
		if !isLive[name] {
			if !d.ReadOnly {
				_ = d.remove(name)
			}
			continue
		}
		delete(isLive, name)
		found.Next = max(found.Next, compaction.NumberOf(name)+1)
		r, err := blockfile.Open(d.Path(name))
		switch {
		case err == nil:
			found.Blocks = append(found.Blocks, newBlock(r, d.Lists))
		case errors.Is(err, blockfile.ErrVersion):
			d.others = append(d.others, name)
			d.Report("a block was written by another version of this program, which can read it; it is left out", err)
		case errors.Is(err, blockfile.ErrDamaged):
			d.SetAside(name, err)
			found.Damaged++
			d.lose(name)
		default:
			return found, fmt.Errorf("open block %s: %w", d.Path(name), err)
		}
	}
	for name := range isLive {
		d.lose(name)
		d.Report("a block is missing: somebody has deleted "+d.Path(name), nil)
	}
	return found, nil
}

// lose notes that a block cannot be read. If the log still has its head, that is read.
func (d *Directory) lose(name string) {
	if compaction.IsHour(name) {
		d.Lost[compaction.NumberOf(name)] = true
	}
}

// read returns the names of the live blocks, which are all of them if there is no manifest.
func (d *Directory) read(entries []os.DirEntry) (isLive map[string]bool, err error) {
	isLive, d.Lost = map[string]bool{}, map[uint64]bool{}
	var m Manifest
	path := filepath.Join(d.Dir, ManifestFile)
	err = blockfile.ReadSealed(path, &m)
	switch {
	case err == nil && m.Version != Version:
		return nil, fmt.Errorf("%s has version %d, but this program reads version %d", path, m.Version, Version)
	case err == nil:
		d.Head, d.HasList = m.Head, true
		for _, head := range m.Lost {
			d.Lost[head] = true
		}
		for _, name := range m.Blocks {
			isLive[name] = true
		}
		return isLive, nil
	case !errors.Is(err, blockfile.ErrDamaged):
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, Unfinished) {
			isLive[name] = true
		}
	}
	if len(isLive) > 0 {
		d.Report("the list of blocks cannot be read; all blocks that are there serve, and count twice if the process ended while it joined them", err)
	}
	return isLive, nil
}

// SetLive makes blocks the live ones, beside those that this program cannot read. After an error it is not known which
// list is on disk.
func (d *Directory) SetLive(head uint64, blocks []*Block) error {
	if d.ReadOnly {
		return nil
	}
	m := Manifest{Version: Version, Head: max(head, d.Head), Lost: slices.Sorted(maps.Keys(d.Lost)),
		Blocks: slices.Clone(d.others)}
	for _, b := range blocks {
		m.Blocks = append(m.Blocks, b.Block)
	}
	if err := blockfile.WriteSealed(filepath.Join(d.Dir, ManifestFile), &m); err != nil {
		return err
	}
	d.Head = m.Head
	for _, b := range d.unsure {
		if !slices.Contains(m.Blocks, b.Block) {
			d.Delete(b)
		}
	}
	d.unsure = nil
	return nil
}

// Doubt notes blocks that SetLive failed to make live.
func (d *Directory) Doubt(blocks ...*Block) { d.unsure = append(d.unsure, blocks...) }

// Write writes a block of all profiles of the sources, and opens it. It is not live yet.
func (d *Directory) Write(ctx context.Context, name string, sources []compaction.Source,
	step time.Duration) (*Block, error) {
	if err := d.remove(name); err != nil { // of an attempt that failed
		return nil, err
	}
	to := d.Path(name)
	if err := compaction.Merge(ctx, to+Unfinished, name, sources, step); err != nil {
		return nil, err
	}
	err := blockfile.Rename(to+Unfinished, to)
	if err == nil {
		var r *blockfile.Reader
		if r, err = blockfile.Open(to); err == nil {
			return newBlock(r, d.Lists), nil
		}
	}
	_ = d.remove(name)
	return nil, err
}

// Delete deletes a block that is not live, and that nobody reads.
func (d *Directory) Delete(b *Block) {
	b.Close()
	_ = d.remove(b.Block)
}

// remove deletes a block that is not live, if there is one. A part of it that stays has the name of rubbish, which Load
// deletes even if no list can be read.
func (d *Directory) remove(name string) error {
	path := d.Path(strings.TrimSuffix(name, Unfinished))
	rubbish := path + Unfinished
	if err := blockfile.RemoveAll(rubbish); err != nil {
		return err
	}
	if err := os.Rename(path, rubbish); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return blockfile.RemoveAll(rubbish)
}

// SetAside moves a block out of the way that cannot be read.
func (d *Directory) SetAside(name string, err error) {
	dir := d.Path(name)
	if d.ReadOnly {
		d.Report("a block is damaged and left out: "+dir, err)
		return
	}
	to := filepath.Join(d.Dir, Damaged, name)
	if renamed := blockfile.Rename(dir, to); renamed != nil {
		to = dir
	}
	d.Report("a block is damaged and set aside; the others serve: "+to, err)
}
