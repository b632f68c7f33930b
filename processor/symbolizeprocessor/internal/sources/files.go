// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"bufio"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// openMapped opens the mapped file: by the processes that have it mapped, as the host sees its path, and below the
// configured roots. If a mapping has no build id but its process is known, only that process is searched, since the
// host can have another file at its path.
func (f *Finder) openMapped(m Module) (*SymbolFile, error) {
	if !f.config.Files.Enabled || !IsFileName(m.Path) {
		return nil, ErrNotFound
	}
	if m.IDs.IsEmpty() && !f.config.Files.WithoutBuildID {
		return nil, ErrNoBuildID
	}
	s := f.search(m)
	for _, pid := range m.PIDs {
		if o := s.openOfProcess(f.processPath(pid)); o != nil {
			return o, nil
		}
	}
	if !path.IsAbs(m.Path) || m.IDs.IsEmpty() && len(m.PIDs) > 0 {
		return nil, s.result()
	}
	for _, root := range append([]string{"/"}, f.config.Files.Roots...) {
		if o := s.try(openFile(root, m.Path)); o != nil {
			return o, nil
		}
	}
	return nil, s.result()
}

// processPath returns the directory of a process in the host's /proc.
func (f *Finder) processPath(pid int64) string {
	return filepath.Join(f.config.Files.ProcPath, strconv.FormatInt(pid, 10))
}

// IsFileName reports whether a mapping's filename is one: [vdso], [heap] and //anon are not.
func IsFileName(name string) bool {
	return name != "" && !strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "//") && !strings.Contains(name, "\x00")
}

// openOfProcess opens the file that a process, whose directory in /proc is dir, has mapped under the module's name. The
// kernel's link to a mapping leads to the file itself, even if it was deleted, but needs CAP_CHECKPOINT_RESTORE; the
// path below the process's root does not.
func (s *search) openOfProcess(dir string) *SymbolFile {
	m, root := s.module, filepath.Join(dir, "root")
	maps, err := readMaps(filepath.Join(dir, "maps"), m.Path)
	if err != nil {
		s.note(err)
	}
	for _, area := range maps {
		if o := s.try(openLink(filepath.Join(dir, "map_files", area.span))); o != nil {
			return o
		}
		if o := s.try(openFile(root, area.path)); o != nil {
			return o
		}
		// The kernel writes paths as its reader sees them, unless the process has mounts of its own.
		if m.IDs.IsEmpty() {
			continue
		}
		if o := s.try(openFile("/", area.path)); o != nil {
			return o
		}
	}
	if len(maps) == 0 && path.IsAbs(m.Path) {
		return s.try(openFile(root, m.Path))
	}
	return nil
}

// spanOf returns the name of a mapping's link in map_files, which lacks the leading zeros of maps.
func spanOf(addresses string) string {
	start, end, _ := strings.Cut(addresses, "-")
	return strings.TrimLeft(start, "0") + "-" + strings.TrimLeft(end, "0")
}

// area is a line of /proc/<pid>/maps.
type area struct{ span, path string }

const (
	// maxMapsBytes and maxAreas bound how much of a process's maps is read.
	maxMapsBytes = 8 << 20
	maxAreas     = 4
)

// readMaps returns the executable areas of a process whose file has a name: a path, or the last element of one.
func readMaps(name, mapped string) (areas []area, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(file, maxMapsBytes))
	for lines.Scan() && len(areas) < maxAreas {
		// start-end perms offset device inode path
		rest := lines.Text()
		var fields [5]string
		for i := range fields {
			fields[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
		}
		found := strings.TrimSuffix(strings.TrimLeft(rest, " "), " (deleted)")
		if len(fields[1]) < 3 || fields[1][2] != 'x' || !path.IsAbs(found) || seen[found] {
			continue
		}
		if found == mapped || !strings.Contains(mapped, "/") && path.Base(found) == mapped {
			seen[found] = true
			areas = append(areas, area{span: spanOf(fields[0]), path: found})
		}
	}
	return areas, nil
}
