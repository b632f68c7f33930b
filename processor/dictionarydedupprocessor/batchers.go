// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

var errShutdown = retryLater("the processor is shutting down")

// batchers has a batcher for each combination of client metadata with pending messages. A batcher without any is
// removed, so memory depends on the load, not on the age of the process.
type batchers struct {
	dedup *dedup
	keys  []string // of metadata: lower case, sorted

	mu    sync.Mutex
	byKey map[string]*batcher
	// closed reports that messages are no longer accepted.
	closed bool
}

func newBatchers(d *dedup) *batchers {
	keys := make([]string, 0, len(d.config.MetadataKeys))
	for _, key := range d.config.MetadataKeys {
		keys = append(keys, strings.ToLower(key))
	}
	slices.Sort(keys)
	return &batchers{dedup: d, keys: keys, byKey: map[string]*batcher{}}
}

func (s *batchers) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}

// consume passes a message to the batcher of its client metadata.
func (s *batchers) consume(ctx context.Context, pd pprofile.Profiles) error {
	b, err := s.enter(client.FromContext(ctx).Metadata)
	if err != nil {
		return err
	}
	defer s.leave(b)
	return b.consume(ctx, pd)
}

// enter returns the batcher of the metadata, which is not removed until leave.
func (s *batchers) enter(metadata client.Metadata) (*batcher, error) {
	values := make(map[string][]string, len(s.keys))
	var key strings.Builder
	for _, k := range s.keys {
		// No values and one empty value are different.
		values[k] = metadata.Get(k)
		key.WriteString(strconv.Itoa(len(values[k])))
		for _, v := range values[k] {
			key.WriteString(strconv.Quote(v))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errShutdown
	}
	b := s.byKey[key.String()]
	if b == nil {
		if limit := s.dedup.config.MetadataCardinalityLimit; len(s.keys) > 0 && limit > 0 && len(s.byKey) >= limit {
			return nil, retryLater(fmt.Sprintf("more than %d combinations of client metadata have profiles pending", limit))
		}
		b = newBatcher(s.dedup, key.String(), values)
		s.byKey[b.key] = b
	}
	b.users++
	return b, nil
}

// stay keeps a batcher from being removed until leave.
func (s *batchers) stay(b *batcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users++
}

func (s *batchers) leave(b *batcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users--
	if b.users == 0 && s.byKey[b.key] == b && b.isIdle() {
		delete(s.byKey, b.key)
	}
}

// shutdown sends pending batches and returns when all sends have ended.
func (s *batchers) shutdown() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Values(s.byKey))
	s.mu.Unlock()
	var draining sync.WaitGroup
	for _, b := range all {
		draining.Go(b.shutdown)
	}
	draining.Wait()
}
