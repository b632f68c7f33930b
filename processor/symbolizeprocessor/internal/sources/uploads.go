// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// uploads is a directory of programs and debug files under any names: each file is found by the build ids in it.
type uploads struct {
	finder *Finder
	config UploadsConfig

	mu    sync.Mutex
	read  time.Time
	byID  map[string][]string
	known map[string]uploaded
}

// uploaded is what is kept of a file until it changes.
type uploaded struct {
	size     int64
	modified time.Time
	ids      symbols.IDs
}

const (
	maxUploads     = 10_000
	maxUploadDepth = 8
)

func (u *uploads) names(ids symbols.IDs) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.read) >= u.config.RefreshInterval {
		u.scan()
		u.read = time.Now()
	}
	for _, id := range []string{ids.GNU, ids.Go, ids.Htlhash} {
		if id != "" {
			names = append(names, u.byID[id]...)
		}
	}
	return names
}

// scan reads the build ids of files that are new or have changed.
func (u *uploads) scan() {
	known := make(map[string]uploaded)
	u.byID = make(map[string][]string)
	root := filepath.Clean(u.config.Directory)
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		relative := strings.TrimPrefix(name, root)
		if err != nil {
			if name == root {
				return err
			}
			return fs.SkipDir
		}
		if entry.IsDir() && strings.Count(relative, string(filepath.Separator)) > maxUploadDepth {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if len(known) >= maxUploads {
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		file, ok := u.known[relative]
		if !ok || file.size != info.Size() || !file.modified.Equal(info.ModTime()) {
			file = uploaded{size: info.Size(), modified: info.ModTime(), ids: u.idsOf(relative)}
		}
		known[relative] = file
		for _, id := range []string{file.ids.GNU, file.ids.Go, file.ids.Htlhash} {
			if id != "" {
				u.byID[id] = append(u.byID[id], relative)
			}
		}
		return nil
	})
	u.known = known
}

func (u *uploads) idsOf(name string) symbols.IDs {
	file := u.finder.search(Module{}).try(openFile(u.config.Directory, name))
	if file == nil {
		return symbols.IDs{}
	}
	defer file.Close()
	_, _ = file.Htlhash()
	return file.IDs()
}

func (f *Finder) openUpload(m Module) (*SymbolFile, error) {
	if f.uploads == nil {
		return nil, ErrNotFound
	}
	s := f.search(m)
	var best *SymbolFile
	for _, name := range f.uploads.names(m.IDs) {
		o := s.try(openFile(f.config.Uploads.Directory, name))
		switch {
		case o == nil:
		case best == nil:
			best = o
		case !best.HasSymbols() && o.HasSymbols(): // a stripped program beside its debug file
			best.Close()
			best = o
		default:
			o.Close()
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, s.result()
}
