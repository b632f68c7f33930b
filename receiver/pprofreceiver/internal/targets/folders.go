// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// folderInterval is how often a folder is looked for that does not exist.
const folderInterval = 5 * time.Second

// folders runs Prometheus' discovery by files for each folder, while that exists: Prometheus' own logs an error where a
// folder does not exist yet, and notices one that appears at its next refresh, five minutes later.
type folders struct {
	files    map[string][]string // by folder
	every    time.Duration
	discover func(files []string) (discovery.Discoverer, error)
}

func newFolders(files []string, discover func(files []string) (discovery.Discoverer, error)) *folders {
	f := &folders{files: map[string][]string{}, every: folderInterval, discover: discover}
	for _, file := range files {
		folder := filepath.Dir(file)
		f.files[folder] = append(f.files[folder], file)
	}
	return f
}

// Run sends the groups of the files until ctx ends.
func (f *folders) Run(ctx context.Context, found chan<- []*targetgroup.Group) {
	var running sync.WaitGroup
	for folder, files := range f.files {
		running.Go(func() { f.follow(ctx, folder, files, found) })
	}
	running.Wait()
}

// follow watches a folder whenever it exists.
func (f *folders) follow(ctx context.Context, folder string, files []string, found chan<- []*targetgroup.Group) {
	worker.Every(ctx, 0, f.every, func() {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			f.watch(ctx, folder, info, files, found)
		}
	})
}

// watch sends the groups of a folder's files until it is gone, or is another one, and then empty groups in their place.
func (f *folders) watch(ctx context.Context, folder string, info os.FileInfo, files []string,
	found chan<- []*targetgroup.Group) {
	discoverer, err := f.discover(files)
	if err != nil {
		return // it was made once before, with the same configuration
	}
	own := make(chan []*targetgroup.Group)
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { discoverer.Run(watching, own) })
	defer running.Wait()
	defer stop()
	tick := time.Tick(f.every)
	sources := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case groups := <-own:
			for _, g := range groups {
				sources[g.Source] = true
			}
			send(ctx, found, groups)
		case <-tick:
			if now, err := os.Stat(folder); err == nil && os.SameFile(now, info) {
				continue
			}
			var gone []*targetgroup.Group
			for source := range sources {
				gone = append(gone, &targetgroup.Group{Source: source})
			}
			send(ctx, found, gone)
			return
		}
	}
}

// send sends groups unless ctx ends first.
func send(ctx context.Context, found chan<- []*targetgroup.Group, groups []*targetgroup.Group) {
	select {
	case found <- groups:
	case <-ctx.Done():
	}
}
