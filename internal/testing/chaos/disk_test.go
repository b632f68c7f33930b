// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// smallDisk mounts a disk of 24 MB. A file takes half of it; free removes that file.
func smallDisk(t *testing.T) (folder string, free func()) {
	t.Helper()
	folder = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m", "none", folder).CombinedOutput(); err != nil {
		t.Skipf("needs the right to mount a small disk: %v: %s", err, out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "--lazy", folder).Run()) })
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 12<<20), 0o600))
	return folder, func() { require.NoError(t, os.Remove(ballast)) }
}

// TestFullDiskOfTheQueue fills the disk of an agent's queue while the backend is gone. Then it kills or stops the
// agent.
func TestFullDiskOfTheQueue(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"SIGKILL", "SIGTERM", "SIGHUP and SIGTERM"} {
		t.Run(end, func(t *testing.T) {
			newScenario(t, alsoShort)
			t.Parallel()
			disk, free := smallDisk(t)
			l := newLedger()
			to := newBackend(t, l)
			n := newNode(t, agentConfig, to.address)
			n.setStorage(disk + "/queue")
			n.start(t)
			from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(n.pprof, large), "otlp": exports(t, n.otlp, large)})
			l.waitUntilStuck(t, 2*time.Second)
			switch end {
			case "SIGKILL":
				n.Kill()
			case "SIGHUP and SIGTERM":
				// A queue may not start on a full disk: the reload may end the process.
				if n.reloadOrEnd(t) {
					n.requireEnds(t)
				}
			default:
				n.requireEnds(t)
			}
			free()
			n.start(t)
			l.requireAcknowledged(t, samplesPerRequest)
			from.end()
			to.start(t)
			l.requireDelivered(t, byNodes)
			n.requireEnds(t)
		})
	}
}

// TestFullDiskOfTheFileExporter fills the disk that the exporter `file` writes to.
func TestFullDiskOfTheFileExporter(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	disk, free := smallDisk(t)
	l := newLedger()
	n := newNode(t, quickstartConfig, "", collectortest.ToFile)
	n.env = append(n.env, "PROFILES_OUT="+disk+"/out")
	// The store has a disk of its own: while it refuses, the file exporter would write each message as often as it is sent
	// again.
	n.flags = append(n.flags, "--set=exporters.profile_store.storage.directory="+n.output)
	n.start(t)
	from := startTraffic(t, l, 4, map[string]sendFunc{"push": pushes(n.pprof, large)})
	l.waitUntilStuck(t, 2*time.Second)
	free()
	l.requireAcknowledged(t, samplesPerRequest)
	from.end()
	n.requireEnds(t)
	l.addFiles(t, disk+"/out")
	l.requireDelivered(t, bySenders)
}

// TestKilledFileExporter kills a collector that writes to files.
func TestKilledFileExporter(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l := newLedger()
	n := newNode(t, quickstartConfig, "", collectortest.ToFile)
	n.start(t)
	from := startTraffic(t, l, 4, map[string]sendFunc{"push": pushes(n.pprof, 0)})
	for range s.size(3, 20) {
		l.requireAcknowledged(t, 1)
		time.Sleep(s.between(0, 500*time.Millisecond))
		n.Kill()
		n.start(t)
	}
	from.end()
	n.requireEnds(t)
	l.addFiles(t, n.output)
	l.requireDelivered(t, byNodes)
}

// addFiles enters what the file exporter wrote. If the disk was full or the process was killed while it wrote a
// message, the next one follows the incomplete one on the same line.
func (l *ledger) addFiles(t *testing.T, folder string) {
	t.Helper()
	incomplete := 0
	files := profiletest.Glob(t, folder+"/*.jsonl")
	for _, file := range files {
		content := profiletest.FileBytes(t, file)
		for line := range bytes.Lines(content) {
			whole := max(0, bytes.LastIndex(line, []byte(`{"resourceProfiles":`)))
			incomplete += min(whole, 1)
			pd, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles(line[whole:])
			if err != nil {
				incomplete++
				continue
			}
			l.add(pd)
		}
	}
	t.Logf("%d incomplete lines", incomplete)
}
