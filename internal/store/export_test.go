// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"testing"
)

// What tests of package store_test need.

func MemoryConfig() Config { return testConfig() }

func DirectoryConfig(t testing.TB, dir string) Config { return diskConfig(t, dir) }

// Kill releases the directory, as if the process had been killed. What writes it by itself ends first: it would go on
// beside the next store.
func (s *Store) Kill() error {
	s.disk.stop()
	s.disk.running.Wait()
	return s.disk.lock.Release()
}

func (s *Store) flush() error { return s.writeHeads(context.Background()) }
