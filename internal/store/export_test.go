// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "testing"

// What tests of package store_test need.

func MemoryConfig() Config { return testConfig() }

func DirectoryConfig(t testing.TB, dir string) Config { return diskConfig(t, dir) }

// Kill releases the directory, as if the process had been killed.
func (s *Store) Kill() error { return s.disk.lock.Release() }
