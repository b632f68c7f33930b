// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package files writes OTLP profiles as pprof files, and deletes the oldest.
//
// Write makes one file for each pprof that pprofencode.Encode returns. A file appears under its name when it is complete and on
// the disk: it is written under a temporary name, synced and renamed. All paths stay below one directory (os.Root), whatever
// names arrive.
package files

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
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profilekind"
)

// temporary is the prefix of the names of unfinished files.
const temporary = ".writing-"

// maxCollisions bounds the files with the same name.
const maxCollisions = 1000

// Writer writes files. It is safe for concurrent use.
type Writer struct {
	config   Config
	name     *template
	logger   *zap.Logger
	counters Counters

	mu   sync.Mutex
	root *os.Root
	// files are those whose names the template made, the oldest first, bytes the sum of their sizes.
	files []file
	bytes int64
	// failing reports that an error was logged, and that no file was written since.
	failing bool
}

// Counters count files, and messages that cannot be written.
type Counters struct{ Written, Deleted, Dropped metric.Int64Counter }

type file struct {
	path  string
	size  int64
	taken time.Time
}

// NewWriter opens the directory, makes it if it is missing, and finds the files of earlier runs.
func NewWriter(config Config, logger *zap.Logger, counters Counters) (*Writer, error) {
	name, err := parseName(config.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.Directory, 0o750); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	root, err := os.OpenRoot(config.Directory)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	w := &Writer{config: config, name: name, logger: logger, counters: counters, root: root}
	if err := w.find(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return w, nil
}

// find lists the files whose names the template made, and removes unfinished ones. It leaves other files alone.
func (w *Writer) find() error {
	return fs.WalkDir(w.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a folder that cannot be read has no file of this writer
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if strings.HasPrefix(path.Base(name), temporary) {
			return w.root.Remove(name)
		}
		if info, err := entry.Info(); err == nil && w.name.made.MatchString(name) {
			w.remember(file{path: name, size: info.Size(), taken: info.ModTime()})
		}
		return nil
	})
}

func (w *Writer) remember(f file) {
	at, _ := slices.BinarySearchFunc(w.files, f, func(a, b file) int { return cmp.Compare(a.taken.UnixNano(), b.taken.UnixNano()) })
	w.files = slices.Insert(w.files, at, f)
	w.bytes += f.size
}

// Close closes the directory.
func (w *Writer) Close() error { return w.root.Close() }

// Write writes the files of pd. After an error that is not permanent it can be called again with the same profiles: no file is
// written twice.
func (w *Writer) Write(ctx context.Context, pd pprofile.Profiles, now time.Time) error {
	encoded, _, err := pprofencode.Encode(pd)
	if err != nil {
		// Leave out the samples that cannot be understood.
		var batch compact.Batch
		pd = batch.Merge([]pprofile.Profiles{pd})
		if encoded, _, err = pprofencode.Encode(pd); err != nil {
			w.counters.Dropped.Add(ctx, 1, reason("malformed"))
			return consumererror.NewPermanent(fmt.Errorf("files: %w", err))
		}
	}
	resolved := compact.ResolveReferences(pd)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range encoded {
		if err := w.write(ctx, pd, resolved, &encoded[i], now); err != nil {
			if !w.failing && !consumererror.IsPermanent(err) {
				w.failing = true
				w.logger.Error("cannot write pprof files; retrying, and suppressing repeats", zap.Error(err))
			}
			return fmt.Errorf("files: %w", err)
		}
	}
	if w.failing && len(encoded) > 0 {
		w.failing = false
		w.logger.Info("pprof files are written again")
	}
	w.expire(ctx, now)
	return nil
}

func reason(value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
}

func (w *Writer) write(ctx context.Context, pd, resolved pprofile.Profiles, e *pprofencode.Payload, now time.Time) error {
	payload := compressed(e.Bytes)
	value := w.values(pd, resolved, e, now)
	for n := 1; n <= maxCollisions; n++ {
		name := w.name.path(value, n)
		switch same, err := w.compare(name, payload); {
		case errors.Is(err, fs.ErrNotExist):
			if err := w.create(name, payload); err != nil {
				return err
			}
			w.remember(file{path: name, size: int64(len(payload)), taken: now})
			w.counters.Written.Add(ctx, 1)
			return nil
		case err != nil:
			return err
		case same:
			return nil // written before a retry
		}
	}
	w.counters.Dropped.Add(ctx, 1, reason("collisions"))
	return consumererror.NewPermanent(fmt.Errorf("there are %d files named like %q", maxCollisions, w.name.path(value, 1)))
}

func compressed(data []byte) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(data) // writing to a buffer cannot fail
	_ = zip.Close()
	return out.Bytes()
}

// compare reports whether the named file contains payload. The error wraps fs.ErrNotExist if there is no such file.
func (w *Writer) compare(name string, payload []byte) (bool, error) {
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
func (w *Writer) create(name string, payload []byte) (err error) {
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
	w.syncFolder(folder)
	return nil
}

// syncFolder makes a new name durable on systems on which folders can be synced.
func (w *Writer) syncFolder(folder string) {
	if f, err := w.root.Open(folder); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// values returns what the keys of the template mean for one pprof.
func (w *Writer) values(pd, resolved pprofile.Profiles, e *pprofencode.Payload, now time.Time) func(string) string {
	resource := resolved.ResourceProfiles().At(e.ResourceIndex).Resource().Attributes()
	scope := resolved.ResourceProfiles().At(e.ResourceIndex).ScopeProfiles().At(e.ScopeIndex).Scope().Attributes()
	p := pd.ResourceProfiles().At(e.ResourceIndex).ScopeProfiles().At(e.ScopeIndex).Profiles().At(slices.Min(e.ProfileIndices))
	return func(key string) string {
		switch key {
		case "profile":
			texts := pd.Dictionary().StringTable()
			return profilekind.Name(text(scope, profilekind.NameAttribute),
				texts.At(int(p.SampleType().TypeStrindex())), texts.At(int(p.PeriodType().TypeStrindex())))
		case "time":
			at := now
			if p.Time() != 0 {
				at = p.Time().AsTime()
			}
			return at.UTC().Format("20060102T150405.000Z")
		case "instance":
			if id := text(resource, "service.instance.id"); id != "" {
				return id
			}
			return fmt.Sprintf("%08x", uint32(xxhash.Sum64(profiledict.AppendMap(nil, resource))))
		case "service.name":
			return cmp.Or(text(resource, key), "unknown_service")
		default:
			return text(resource, key)
		}
	}
}

func text(m pcommon.Map, key string) string {
	if v, ok := m.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// Expire deletes the files that are too old.
func (w *Writer) Expire(ctx context.Context, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(ctx, now)
}

func (w *Writer) expire(ctx context.Context, now time.Time) {
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
				w.logger.Warn("an old pprof file cannot be deleted and is left alone", zap.String("path", oldest.path), zap.Error(err))
			}
			continue
		}
		w.counters.Deleted.Add(ctx, 1, reason(why))
		// Remove the folders above if they are empty.
		for folder := path.Dir(oldest.path); folder != "."; folder = path.Dir(folder) {
			if w.root.Remove(folder) != nil {
				break
			}
		}
	}
}
