// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package file is the source `file`: it finds files by a glob, reads each that has not changed for an interval, and
// remembers which were delivered (seen.go), over restarts too if there is a storage extension.
package file

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/safestorage"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// Reader reads each file once: one after the other, the oldest first, so that no more than one file is in memory.
type Reader struct {
	cfg    *Config
	set    receiver.Settings
	ingest *ingest.Ingester
	worker worker.Worker
	// log is of deliveries, scans of the glob.
	log, scans *telemetry.Changes

	// include and moveTo are absolute.
	include, moveTo string
	seen            *seenFiles
	hasScanned      bool
	now             func() time.Time
}

// logLimits bound the lines about files: a folder may have thousands that cannot be read.
var logLimits = telemetry.Limits{Lines: 10, Period: time.Minute, Level: zapcore.WarnLevel}

// New returns a reader that is not started.
func New(cfg *Config, set receiver.Settings, in *ingest.Ingester) *Reader {
	set.Logger = logLimits.Apply(set.Logger)
	return &Reader{cfg: cfg, set: set, ingest: in, now: time.Now, log: ingest.Changes(set.Logger),
		scans: &telemetry.Changes{
			Logger: set.Logger, Recovered: "all files and folders of `include` are listed again",
			Failed: "cannot list all files and folders of `include`; those that are left out are not read; " +
				"suppressing repeats until the error changes",
		}}
}

// Start recalls which files were read before, and begins to scan after the initial delay.
func (f *Reader) Start(ctx context.Context, host component.Host) error {
	var err error
	if f.include, err = filepath.Abs(f.cfg.Include); err != nil {
		return err
	}
	if f.cfg.AfterRead == AfterReadMove {
		if f.moveTo, err = filepath.Abs(f.cfg.MoveTo); err != nil {
			return err
		}
		if err = os.MkdirAll(f.moveTo, 0o750); err != nil {
			return err
		}
	}
	client, err := safestorage.Open(ctx, host, f.cfg.Storage, component.KindReceiver, f.set.ID, "file")
	if err != nil {
		return err
	}
	if f.seen, err = recallFiles(ctx, client, f.set.Logger); err != nil {
		return err
	}
	f.worker.Start(func(stopping, deliver context.Context) {
		worker.Every(stopping, f.cfg.InitialDelay, f.cfg.CollectionInterval, func() { f.scan(stopping, deliver) })
	})
	return nil
}

// Shutdown waits until the file being read has reached the pipeline, and remembers it.
func (f *Reader) Shutdown(ctx context.Context) error {
	if err := f.worker.Shutdown(ctx); err != nil {
		// The worker may still use the store, which is therefore left open.
		return err
	}
	return f.seen.client.Close(ctx)
}

// foundFile is a regular file that the glob matched.
type foundFile struct {
	path string
	info fs.FileInfo
}

// scan visits all files once.
func (f *Reader) scan(stopping, deliver context.Context) {
	found := f.find(deliver)
	f.seen.noteMoved(found)
	for _, file := range found {
		if stopping.Err() != nil || !f.visit(deliver, file) {
			break
		}
		f.saveSeen(deliver, false)
	}
	f.seen.forget(found, f.now())
	f.saveSeen(deliver, true)
}

func (f *Reader) saveSeen(ctx context.Context, always bool) {
	if err := f.seen.save(ctx, f.now(), always); err != nil {
		f.set.Logger.Error("cannot store the list of files that were read; a restart reads them again", zap.Error(err))
	}
}

// find lists the files, the oldest first. Of several paths to one file only one is listed.
func (f *Reader) find(ctx context.Context) []foundFile {
	paths, err := glob(f.include, f.cfg.MaxEntries, f.moveTo)
	if f.scans.Note(fmt.Sprint(err), err); err != nil {
		f.ingest.Metrics.ReceiverPprofFileIncompleteScans.Add(ctx, 1)
	}
	found := make([]foundFile, 0, len(paths))
	f.sortByPreference(paths)
	known := map[inode]bool{}
	for _, path := range paths {
		// Files that were removed meanwhile are skipped, and so are pipes: opening one waits for its writer.
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			if id, hasInode := inodeOf(info); hasInode {
				if known[id] {
					continue
				}
				known[id] = true
			}
			found = append(found, foundFile{path: path, info: info})
		}
	}
	if err == nil && len(found) == 0 && !f.hasScanned {
		f.noteNothing(paths)
	}
	f.hasScanned = true
	slices.SortFunc(found, func(a, b foundFile) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), strings.Compare(a.path, b.path))
	})
	return found
}

// noteNothing logs that a scan has found no file. paths are those that are no files.
func (f *Reader) noteNothing(paths []string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			f.set.Logger.Warn("`include` matches folders alone, and no file yet; to read the files in them, append /*, or /** for "+
				"those of all folders below", zap.String("include", f.include), zap.String("folder", path))
			return
		}
	}
	f.set.Logger.Info("no file matches `include` yet", zap.String("include", f.include))
}

// sortByPreference puts the path first by which a file with several paths is read. That is the shortest: in a mounted
// ConfigMap it stays the same, while the link's target is in a folder named by the time. If files are removed after
// reading, it is the path of the file itself and not of a link to it.
func (f *Reader) sortByPreference(paths []string) {
	links := map[string]int{} // 1 for a path that has links
	if f.cfg.AfterRead != AfterReadKeep {
		for _, path := range paths {
			if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
				links[path] = 1
			}
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(links[a], links[b]), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}

// visit reads one file if it is complete and has not been read yet. It reports false if the pipeline refuses for now:
// then the other files wait as well.
func (f *Reader) visit(ctx context.Context, file foundFile) bool {
	seen := f.seen.files[file.path]
	switch {
	case !seen.matches(file.info):
		seen = f.seen.changed(file.path, file.info)
		// A file this old is complete. If its clock runs ahead, the next scan finds it unchanged.
		if f.now().Sub(file.info.ModTime()) < f.cfg.CollectionInterval {
			return true
		}
	case seen.Status == statusRead:
		f.finish(file, seen)
		return true
	case seen.Status == statusBad:
		return true
	}
	return f.read(ctx, file, seen)
}

// read delivers one file, unless it cannot be read yet. Its result is that of visit.
func (f *Reader) read(ctx context.Context, file foundFile, seen *seenFile) bool {
	if err := f.ingest.CheckSize(file.info.Size()); err != nil {
		f.ingest.CountRejected(ctx, err)
		f.bad(file, seen, err)
		return true
	}
	reservation := f.ingest.Begin()
	defer reservation.Release()
	data, err := load(ctx, file, reservation)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, budget.ErrBusy):
		f.ingest.CountRejected(ctx, ingest.Reject(ingest.Busy, err))
		f.log.Note("busy", fmt.Errorf("read %q, and retry at the next scan: %w", file.path, err))
		return false
	case err != nil:
		// The file stays waiting: permissions can change without the size or time.
		if !seen.reported {
			seen.reported = true
			f.ingest.CountRejected(ctx, ingest.Reject(ingest.Unreadable, err))
			f.set.Logger.Warn("cannot read a file; suppressing repeats", zap.Error(err))
		}
		return true
	case data == nil:
		return true // it changed while it was read: the next scan reads it again
	}
	sum := sha256.Sum256(data)
	content := hex.EncodeToString(sum[:16])
	if content != seen.Content && !f.seen.isMoved(file.info, content) { // otherwise only its time or its name changed
		err := f.deliver(ctx, file, ingest.Payload{Data: data, Reservation: reservation, Modified: file.info.ModTime()})
		f.ingest.CountRejected(ctx, err)
		if err != nil && !ingest.IsPermanent(err) {
			f.log.Note("refused", fmt.Errorf("deliver %q, and retry at the next scan: %w", file.path, err))
			return false
		}
		f.log.Note("", nil)
		if err != nil {
			f.bad(file, seen, err)
			return true
		}
	}
	f.seen.settle(seen, statusRead, content)
	f.finish(file, seen)
	return true
}

func (f *Reader) deliver(ctx context.Context, file foundFile, p ingest.Payload) error {
	p.Identity = ingest.NewIdentity()
	path := strings.ToValidUTF8(file.path, "\uFFFD") // as the values of attributes are, unlike names of files
	p.Derived.PutStr(ingest.AttributeFileName, filepath.Base(path))
	p.Derived.PutStr(ingest.AttributeFilePath, path)
	return f.ingest.Ingest(ctx, p, f.cfg.Timeout)
}

// bad leaves a file alone until it changes.
func (f *Reader) bad(file foundFile, seen *seenFile, err error) {
	f.seen.settle(seen, statusBad, "")
	f.set.Logger.Warn("cannot read a profile from a file; skipping it until it changes",
		zap.Error(fmt.Errorf("read profile from %q (%d bytes): %w", file.path, file.info.Size(), err)))
}

// Config configures the reading of files.
type Config struct {
	// Include is a glob; `**` matches any number of folders.
	Include string `mapstructure:"include"`
	// CollectionInterval is the time between two scans.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// InitialDelay is the time from the receiver's start to the first scan.
	InitialDelay time.Duration `mapstructure:"initial_delay"`
	// MaxEntries bounds how many files and folders a scan lists.
	MaxEntries int `mapstructure:"max_entries"`
	// Timeout bounds the delivery of one file to the pipeline; 0 sets no bound.
	Timeout time.Duration `mapstructure:"timeout"`
	// Storage is the storage extension that remembers the files that were read.
	Storage *component.ID `mapstructure:"storage"`
	// AfterRead is keep, delete or move: what to do with a file that the pipeline has accepted.
	AfterRead string `mapstructure:"after_read"`
	// MoveTo is the folder that read files are moved to.
	MoveTo string `mapstructure:"move_to"`
}

// What to do with a file that was read.
const (
	AfterReadKeep   = "keep"
	AfterReadDelete = "delete"
	AfterReadMove   = "move"
)

// Validate returns all faults.
func (c *Config) Validate() error {
	var faults config.Faults
	worker.RequireIntervals(&faults, c.CollectionInterval, c.InitialDelay, c.Timeout)
	faults.Require(c.Include != "", "`include` must be set")
	faults.Require(doublestar.ValidatePathPattern(c.Include),
		"`include` must be a glob, in which each [ and { is closed, or follows a \\, found %q", c.Include)
	faults.Require(c.MaxEntries > 0, "`max_entries` must be positive, found %d", c.MaxEntries)
	faults.Require(slices.Contains([]string{AfterReadKeep, AfterReadDelete, AfterReadMove}, c.AfterRead),
		"`after_read` must be keep, delete or move, found %q", c.AfterRead)
	faults.Require((c.AfterRead == AfterReadMove) == (c.MoveTo != ""),
		"`move_to` must be set with `after_read: move` and only then, found %q with %q", c.MoveTo, c.AfterRead)
	return faults.Err()
}
