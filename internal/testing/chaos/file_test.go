// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKilledWhileReadingFiles kills an agent that reads files and then keeps, deletes or moves them. Each file is
// delivered, perhaps again after a kill.
func TestKilledWhileReadingFiles(t *testing.T) {
	t.Parallel()
	for mode, keys := range map[string][]string{
		"keep":              nil,
		"keep with storage": {"storage=file_storage"},
		"delete":            {"after_read=delete"},
		"move":              {"after_read=move", "move_to=" + t.TempDir()},
	} {
		t.Run(mode, func(t *testing.T) {
			s := newScenario(t, alsoShort)
			t.Parallel()
			folder := t.TempDir()
			flags := []string{"--set=service.pipelines.profiles.receivers=[pprof/files]"}
			for _, key := range append(keys, "include="+folder+"/*.pb.gz", "collection_interval=100ms", "initial_delay=0s") {
				flags = append(flags, "--set=receivers.pprof/files.file."+key)
			}
			l, to := startBackend(t)
			n := newNode(t, agentConfig, to.address, flags...)
			n.startWithoutWaiting(t)
			// The agent reads one file after the other, and waits for its batch each time.
			files := s.size(12, 40)
			for round := range s.size(3, 20) {
				for i := range files {
					writeFile(t, l, folder, files*round+i)
				}
				time.Sleep(s.between(100*time.Millisecond, time.Second))
				n.Kill()
				n.startWithoutWaiting(t)
			}
			l.requireDelivered(t, byNodes)
			n.requireEnds(t)
		})
	}
}

// writeFile writes a profile to a folder, where it appears complete.
func writeFile(t *testing.T, l *ledger, folder string, number int) {
	t.Helper()
	l.sending("file", number)
	name := filepath.Join(folder, fmt.Sprintf("%06d.pb.gz", number))
	require.NoError(t, os.WriteFile(name+".part", pprofBody("file", number, 0), 0o600))
	require.NoError(t, os.Rename(name+".part", name))
	l.acknowledge("file", number)
}
