// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

const (
	// forgetAfter is how long a file that is gone is remembered. A file system that is unavailable for a
	// while must not make all its files new; a folder whose files rotate must not fill the memory.
	forgetAfter = time.Hour
	// saveEvery bounds how often the state is written while many files are read: each write holds all
	// files. After a crash, the files of the last second may be read again.
	saveEvery = time.Second

	storageKey     = "files"
	storageVersion = 1
)

type fileStatus string

const (
	statusWaiting fileStatus = "waiting" // incomplete, or not delivered yet
	statusRead    fileStatus = "read"    // the pipeline accepted it
	statusBad     fileStatus = "bad"     // not a profile, or refused permanently: skipped until it changes
)

type seenFile struct {
	Size    int64      `json:"size"`
	ModTime int64      `json:"mod_time_unix_nano"`
	Status  fileStatus `json:"status"`
	// Content is a hash of the content that was last delivered from this path, so that a file of which only the time
	// changes is not delivered again.
	Content string `json:"content,omitempty"`

	goneSince time.Time
	reported  bool
}

func (s *seenFile) matches(info fs.FileInfo) bool {
	return s != nil && info != nil && s.Size == info.Size() && s.ModTime == info.ModTime().UnixNano()
}

// seenFiles remembers which files were read: in memory, and across restarts if there is a store.
type seenFiles struct {
	files map[string]*seenFile
	// moved are the files that were read under paths where they are no longer.
	moved  map[movedFile]bool
	client storage.Client
	dirty  bool
	saved  time.Time
}

// movedFile identifies a file by what a new name does not change.
type movedFile struct {
	size, modTime int64
	content       string
}

type storedFiles struct {
	Version int                  `json:"version"`
	Files   map[string]*seenFile `json:"files"`
}

func recallFiles(ctx context.Context, client storage.Client, logger *zap.Logger) (*seenFiles, error) {
	s := &seenFiles{files: map[string]*seenFile{}, client: client}
	data, err := client.Get(ctx, storageKey)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the list of files that were read: %w", err), client.Close(ctx))
	}
	if data == nil {
		return s, nil
	}
	var stored storedFiles
	if err = json.Unmarshal(data, &stored); err == nil && stored.Version != storageVersion {
		err = fmt.Errorf("version %d is unknown", stored.Version)
	}
	if err != nil {
		logger.Error("cannot decode the list of files that were read; reading all of them again", zap.Error(err))
		return s, nil
	}
	maps.DeleteFunc(stored.Files, func(_ string, file *seenFile) bool { return file == nil })
	maps.Copy(s.files, stored.Files)
	return s, nil
}

// noteMoved finds the files that may have been renamed, as by a rotation: what has another name now was read already.
func (s *seenFiles) noteMoved(found []foundFile) {
	infos := make(map[string]fs.FileInfo, len(found))
	for _, file := range found {
		infos[file.path] = file.info
	}
	s.moved = map[movedFile]bool{}
	for path, file := range s.files {
		if file.Status == statusRead && !file.matches(infos[path]) {
			s.moved[movedFile{file.Size, file.ModTime, file.Content}] = true
		}
	}
}

// isMoved reports whether a file was read under another path, where it is no longer.
func (s *seenFiles) isMoved(info fs.FileInfo, content string) bool {
	return s.moved[movedFile{info.Size(), info.ModTime().UnixNano(), content}]
}

func (s *seenFiles) changed(path string, info fs.FileInfo) *seenFile {
	now := &seenFile{Size: info.Size(), ModTime: info.ModTime().UnixNano(), Status: statusWaiting}
	if before := s.files[path]; before != nil {
		now.Content = before.Content
	}
	s.files[path] = now
	return now
}

func (s *seenFiles) settle(file *seenFile, status fileStatus, content string) {
	file.Status, file.Content, file.reported = status, content, false
	s.dirty = true
}

// gone drops a file that this receiver has removed, or that has been forgotten.
func (s *seenFiles) gone(path string) {
	delete(s.files, path)
	s.dirty = true
}

// forget drops the files that have not been found for forgetAfter.
func (s *seenFiles) forget(found []foundFile, now time.Time) {
	present := make(map[string]bool, len(found))
	for _, file := range found {
		present[file.path] = true
	}
	for path, file := range s.files {
		switch {
		case present[path]:
			file.goneSince = time.Time{}
		case file.goneSince.IsZero():
			file.goneSince = now
		case now.Sub(file.goneSince) >= forgetAfter:
			s.gone(path)
		}
	}
}

// save stores the state if it has changed, unless always is false and the last time was within saveEvery.
func (s *seenFiles) save(ctx context.Context, now time.Time, always bool) error {
	if !s.dirty || (!always && now.Sub(s.saved) < saveEvery) {
		return nil
	}
	settled := make(map[string]*seenFile, len(s.files))
	for path, file := range s.files {
		// A file that waits is stored only for the content that was delivered from it before.
		if file.Status != statusWaiting || file.Content != "" {
			settled[path] = file
		}
	}
	data, err := json.Marshal(storedFiles{Version: storageVersion, Files: settled})
	if err != nil {
		return err
	}
	if err = s.client.Set(ctx, storageKey, data); err != nil {
		return fmt.Errorf("remember %d files: %w", len(settled), err)
	}
	s.dirty, s.saved = false, now
	return nil
}
