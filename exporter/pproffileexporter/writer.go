// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// temporary is the prefix of the names of unfinished files.
const temporary = ".writing-"

// blockBytes is the least that a file takes on a disk. It bounds the number of files, too.
const blockBytes = 4096

// onDisk returns about how much a file of n bytes takes on a disk.
func onDisk(n int64) int64 { return max(1, (n+blockBytes-1)/blockBytes) * blockBytes }

// writer writes files. It is safe for concurrent use.
type writer struct {
	config  *Config
	name    *template
	logger  *zap.Logger
	metrics *metadata.TelemetryBuilder

	mu   sync.Mutex
	root *os.Root
	// files are those whose names the template made, the oldest first, bytes the sum of their sizes on the disk.
	files []file
	bytes int64
	// unsynced are the folders with new names, and those above them, which can be new too.
	unsynced map[string]bool
	// failing reports that an error was logged, and that no file was written since.
	failing bool
	// warned is when it was last logged that samples are missing.
	warned time.Time
}

type file struct {
	path  string
	size  int64
	taken time.Time
}

// openWriter opens the directory, makes it if it is missing, and finds the files of earlier runs.
func openWriter(config *Config, logger *zap.Logger, metrics *metadata.TelemetryBuilder) (*writer, error) {
	name, err := parseName(config.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.Directory, 0o750); err != nil {
		return nil, fmt.Errorf("pprof files: %w", err)
	}
	root, err := os.OpenRoot(config.Directory)
	if err != nil {
		return nil, fmt.Errorf("pprof files: %w", err)
	}
	w := &writer{config: config, name: name, logger: logger, metrics: metrics, root: root, unsynced: map[string]bool{}}
	if err := w.find(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return w, nil
}

// reopen opens the directory again if its path leads to another one than before, or to none: somebody has removed it,
// or moved it away.
func (w *writer) reopen() error {
	opened, err := w.root.Stat(".")
	if err != nil {
		return err
	}
	if now, err := os.Stat(w.config.Directory); err == nil && os.SameFile(opened, now) {
		return nil
	}
	again, err := openWriter(w.config, w.logger, w.metrics)
	if err != nil {
		return err
	}
	_ = w.root.Close()
	w.root, w.files, w.bytes = again.root, again.files, again.bytes
	clear(w.unsynced)
	w.logger.Warn("the folder of pprof files was removed or moved; writing to a new one",
		zap.String("directory", w.config.Directory))
	return nil
}

// find lists the files whose names the template made, and removes unfinished ones. It leaves other files alone.
func (w *writer) find() error {
	err := fs.WalkDir(w.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a folder that cannot be read has no file of this writer
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if strings.HasPrefix(path.Base(name), temporary) {
			if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				w.logger.Warn("an unfinished pprof file cannot be deleted and is left alone", zap.String("path", name),
					zap.Error(err))
			}
			return nil
		}
		if info, err := entry.Info(); err == nil && w.name.made.MatchString(name) {
			f := file{path: name, size: onDisk(info.Size()), taken: info.ModTime()}
			w.files = append(w.files, f)
			w.bytes += f.size
		}
		return nil
	})
	slices.SortStableFunc(w.files, byAge)
	return err
}

func byAge(a, b file) int { return a.taken.Compare(b.taken) }

func (w *writer) remember(f file) {
	at, _ := slices.BinarySearchFunc(w.files, f, byAge)
	w.files = slices.Insert(w.files, at, f)
	w.bytes += f.size
}

// close closes the directory.
func (w *writer) close() error { return w.root.Close() }

// writeAll writes the files of pd. After an error that is not permanent it can be called again with the same profiles
// and time: no file is written twice.
func (w *writer) writeAll(ctx context.Context, pd pprofile.Profiles, now time.Time) error {
	malformed := 0
	files := encode.View{SplitNames: true, SplitProfiles: true}
	encoded, stats, err := files.Encode(pd)
	if err != nil {
		// Leave out the samples that cannot be understood.
		var batch compact.Batch
		pd = batch.Merge([]pprofile.Profiles{pd})
		malformed = batch.Stats().DroppedSamples()
		if encoded, stats, err = files.Encode(pd); err != nil {
			w.metrics.ExporterPprofFileDroppedMessages.Add(ctx, 1, telemetry.Attributes("reason", "malformed"))
			return consumererror.NewPermanent(fmt.Errorf("pprof files: %w", err))
		}
	}
	names := newNamer(w.name, pd, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	// An error of one file, or of the folder of one service, does not keep the others from being written.
	var permanentErr error
	temporaryErr := w.reopen()
	if temporaryErr != nil {
		encoded = nil
	}
	for i := range encoded {
		switch err := w.write(ctx, names.path(&encoded[i]), encode.Gzip(encoded[i].Bytes), now); {
		case err == nil:
		case consumererror.IsPermanent(err):
			permanentErr = cmp.Or(permanentErr, err)
		default:
			temporaryErr = cmp.Or(temporaryErr, err)
		}
	}
	w.syncFolders()
	w.expire(ctx, now)
	if temporaryErr != nil {
		if !w.failing {
			w.failing = true
			w.logger.Error("cannot write pprof files; retrying, and suppressing repeats", zap.Error(temporaryErr))
		}
		return fmt.Errorf("pprof files: %w", temporaryErr)
	}
	if w.failing && len(encoded) > 0 {
		w.failing = false
		w.logger.Info("pprof files are written again")
	}
	w.countDroppedSamples(ctx, "malformed", malformed)
	w.countDroppedSamples(ctx, "too_large", stats.Dropped)
	if permanentErr != nil {
		w.metrics.ExporterPprofFileDroppedMessages.Add(ctx, 1, telemetry.Attributes("reason", "collisions"))
		return consumererror.NewPermanent(fmt.Errorf("pprof files: %w", permanentErr))
	}
	return nil
}

// countDroppedSamples counts samples that are missing in files, and logs that once a minute.
func (w *writer) countDroppedSamples(ctx context.Context, why string, n int) {
	if n == 0 {
		return
	}
	w.metrics.ExporterPprofFileDroppedSamples.Add(ctx, int64(n), telemetry.Attributes("reason", why))
	if time.Since(w.warned) >= time.Minute {
		w.warned = time.Now()
		w.logger.Warn(
			"samples are missing in pprof files: malformed ones, or those whose stacks and labels would take too many times the bytes of their message",
			zap.String("reason", why), zap.Int("samples", n))
	}
}

// write writes one file, unless it is there. If there is another one of its name, the new one has a hash of its content
// in its name.
func (w *writer) write(ctx context.Context, stem string, payload []byte, now time.Time) error {
	for _, name := range []string{stem + suffix, fmt.Sprintf("%s-%016x%s", stem, xxhash.Sum64(payload), suffix)} {
		switch same, err := w.compare(name, payload); {
		case errors.Is(err, fs.ErrNotExist):
			if err := w.create(name, payload); err != nil {
				return err
			}
			w.remember(file{path: name, size: onDisk(int64(len(payload))), taken: now})
			w.metrics.ExporterPprofFileWritten.Add(ctx, 1)
			return nil
		case err != nil:
			return err
		case same:
			return nil // written before a retry
		}
	}
	return consumererror.NewPermanent(fmt.Errorf("there are other files named like %q, even with the hash of its content",
		stem+suffix))
}

// compare reports whether the named file contains payload. The error wraps fs.ErrNotExist if there is no such file.
func (w *writer) compare(name string, payload []byte) (bool, error) {
	info, err := w.root.Lstat(name)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(len(payload)) {
		return false, nil
	}
	there, err := w.root.ReadFile(name)
	if err != nil {
		return false, err
	}
	return bytes.Equal(there, payload), nil
}

// create writes a file under a temporary name, syncs it, and renames it.
func (w *writer) create(name string, payload []byte) (err error) {
	folder := path.Dir(name)
	if err := w.root.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	unfinished := path.Join(folder, temporary+path.Base(name))
	f, err := w.root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.root.Remove(unfinished)
		}
	}()
	_, err = io.Copy(f, bytes.NewReader(payload))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = w.root.Rename(unfinished, name); err != nil {
		return err
	}
	for w.unsynced[folder] = true; folder != "."; {
		folder = path.Dir(folder)
		w.unsynced[folder] = true
	}
	return nil
}

// syncFolders makes new names durable on systems on which folders can be synced.
func (w *writer) syncFolders() {
	for folder := range w.unsynced {
		if f, err := w.root.Open(folder); err == nil {
			_ = f.Sync()
			_ = f.Close()
		}
	}
	clear(w.unsynced)
}

// expireAt deletes the files that are too old.
func (w *writer) expireAt(ctx context.Context, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(ctx, now)
}

// expire deletes the files that are too old, and the oldest until the rest is within MaxBytes. mu is locked.
func (w *writer) expire(ctx context.Context, now time.Time) {
	for len(w.files) > 0 {
		oldest := w.files[0]
		why := ""
		switch {
		case w.config.MaxAge > 0 && now.Sub(oldest.taken) > w.config.MaxAge:
			why = "age"
		case w.config.MaxBytes > 0 && w.bytes > w.config.MaxBytes:
			why = "bytes"
		default:
			return
		}
		w.files = w.files[1:]
		w.bytes -= oldest.size
		if err := w.root.Remove(oldest.path); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.logger.Warn("an old pprof file cannot be deleted and is left alone", zap.String("path", oldest.path),
					zap.Error(err))
			}
			continue
		}
		w.metrics.ExporterPprofFileDeleted.Add(ctx, 1, telemetry.Attributes("reason", why))
		// Remove the folders above if they are empty.
		for folder := path.Dir(oldest.path); folder != "."; folder = path.Dir(folder) {
			if w.root.Remove(folder) != nil {
				break
			}
		}
	}
}
