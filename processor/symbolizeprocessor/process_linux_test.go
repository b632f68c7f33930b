// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
)

// running starts a program, below a root if that is not empty, and returns its process id.
func running(t *testing.T, path, root string) int {
	t.Helper()
	command := &exec.Cmd{Path: path, Args: []string{path, "wait"}, Env: []string{}}
	if root != "" {
		if os.Geteuid() != 0 {
			t.Skip("only root may change the root of a process")
		}
		command.SysProcAttr, command.Dir = &syscall.SysProcAttr{Chroot: root}, "/"
	}
	collectortest.StartProgram(t, command)
	return command.Process.Pid
}

// asProfiled is a message like those of the eBPF profiler: virtual addresses, the file's name without its directory,
// and the process on the sample or, after process_resource, on the resource.
func asProfiled(p program, ids symbols.IDs, onSample, onResource int) pprofile.Profiles {
	m := p.mapping(p.text.Vaddr, ids)
	m.File = "shop"
	sample := profiletest.Sample{Stack: []profiletest.Location{p.at(m, "main.price")}, Values: []int64{1}}
	b := profiletest.New()
	if onSample != 0 {
		sample.Attributes = []profiletest.Attribute{profiletest.Attr(attributePID, int64(onSample))}
	}
	if onResource != 0 {
		b = b.Resource(attributePID, int64(onResource))
	}
	return b.Profile("samples", "count").Sample(sample).Build()
}

func TestFileOfProcess(t *testing.T) {
	built := programtest.Go(t, []string{"CGO_ENABLED=0"})
	p := read(t, built)
	root := t.TempDir()
	copyFile(t, built, filepath.Join(root, "shop"))
	require.NoError(t, os.Chmod(filepath.Join(root, "shop"), 0o755))
	require.NoError(t, os.Remove(built))
	ids := symbols.IDs{Htlhash: p.ids.Htlhash}

	host := running(t, filepath.Join(root, "shop"), "")
	chrooted := running(t, "/shop", root)
	for _, test := range []struct {
		name                 string
		onSample, onResource int
		expected             string
	}{
		{"no process", 0, 0, ""},
		{"on the sample", host, 0, "main.price"},
		{"on the resource", 0, host, "main.price"},
		{"on both, the sample's counts", host, 1 << 30, "main.price"},
		{"another process", os.Getpid(), 0, ""},
		{"no such process", 1 << 30, 0, ""},
		{"with a root of its own", chrooted, 0, "main.price"},
	} {
		t.Run(test.name, func(t *testing.T) {
			names := functions(start(t, nil).pass(asProfiled(p, ids, test.onSample, test.onResource)))
			assert.Equal(t, test.expected, names[len(names)-1])
		})
	}
	t.Run("deleted", func(t *testing.T) {
		links := profiletest.Glob(t, "/proc/self/map_files/*")
		if len(links) == 0 {
			t.Skip("no /proc/self/map_files")
		}
		if f, err := os.Open(links[0]); err != nil {
			t.Skipf("may not open the kernel's links to mapped files: %v", err)
		} else {
			_ = f.Close()
		}
		require.NoError(t, os.Remove(filepath.Join(root, "shop")))
		names := functions(start(t, nil).pass(asProfiled(p, ids, chrooted, 0)))
		assert.Equal(t, "main.price", names[len(names)-1])
	})
}

// A container's files are opened below its root: no link leads out of it, and only regular files are read.
func TestNoWayOutOfAProcess(t *testing.T) {
	built := programtest.Go(t, []string{"CGO_ENABLED=0"})
	p := read(t, built)
	secret := t.TempDir()
	copyFile(t, built, filepath.Join(secret, "secret"))
	root := t.TempDir()
	copyFile(t, built, filepath.Join(root, "shop"))
	require.NoError(t, os.Chmod(filepath.Join(root, "shop"), 0o755))
	pid := running(t, "/shop", root)

	require.NoError(t, os.Symlink(filepath.Join(secret, "secret"), filepath.Join(root, "absolute")))
	require.NoError(t, os.Symlink(strings.Repeat("../", 20)+secret, filepath.Join(root, "relative")))
	require.NoError(t, os.Symlink("/proc/1/root", filepath.Join(root, "magic")))
	require.NoError(t, os.Symlink("loop", filepath.Join(root, "loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "folder"), 0o700))
	require.NoError(t, os.Symlink("/inside", filepath.Join(root, "link")))
	copyFile(t, built, filepath.Join(root, "inside"))

	for name, expected := range map[string]string{
		"/absolute": "", "/relative/secret": "", "/magic" + secret + "/secret": "", "/loop": "", "/pipe": "", "/folder": "",
		"/../../../.." + secret + "/secret": "", "/link": "main.price", "/inside": "main.price",
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, func(c *Config) { c.Sources.Files.WithoutBuildID = true })
			pd := asProfiled(p, symbols.IDs{}, pid, 0)
			d := pd.Dictionary()
			d.StringTable().SetAt(int(d.MappingTable().At(1).FilenameStrindex()), name)
			names := functions(h.pass(pd))
			assert.Equal(t, expected, names[len(names)-1])
		})
	}
}
