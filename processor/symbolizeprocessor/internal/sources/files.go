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
func (f *Finder) openMapped(m Module) (*Opened, error) {
	if !f.settings.Files || !isFileName(m.Path) {
		return nil, ErrNotFound
	}
	if m.IDs.IsEmpty() && !f.settings.WithoutBuildID {
		return nil, ErrNoBuildID
	}
	var s search
	for _, pid := range m.PIDs {
		if o := f.openOfProcess(pid, m, &s); o != nil {
			return o, nil
		}
	}
	if !path.IsAbs(m.Path) || m.IDs.IsEmpty() && len(m.PIDs) > 0 {
		return nil, s.result()
	}
	for _, root := range append([]string{"/"}, f.settings.Roots...) {
		if o := f.try(&s, m, func() (*os.File, error) { return openFile(root, m.Path) }); o != nil {
			return o, nil
		}
	}
	return nil, s.result()
}

func (f *Finder) try(s *search, m Module, open func() (*os.File, error)) *Opened {
	file, err := open()
	if err == nil {
		var o *Opened
		if o, err = f.check(file, m); err == nil {
			return o
		}
	}
	s.note(err)
	return nil
}

// isFileName reports whether a mapping's filename is one: [vdso], [heap] and //anon are not.
func isFileName(name string) bool {
	return name != "" && !strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "//") && !strings.Contains(name, "\x00")
}

// openOfProcess opens the file that a process has mapped under the module's name. The kernel's link to a mapping leads
// to the file itself, even if it was deleted, but needs CAP_CHECKPOINT_RESTORE; the path below the process's root does
// not.
func (f *Finder) openOfProcess(pid int64, m Module, s *search) *Opened {
	dir := filepath.Join(f.settings.ProcPath, strconv.FormatInt(pid, 10))
	maps, err := readMaps(filepath.Join(dir, "maps"), m.Path)
	if err != nil {
		s.note(err)
	}
	for _, area := range maps {
		if o := f.try(s, m, func() (*os.File, error) { return openLink(filepath.Join(dir, "map_files", area.span)) }); o != nil {
			return o
		}
		if o := f.try(s, m, func() (*os.File, error) { return openFile(filepath.Join(dir, "root"), area.path) }); o != nil {
			return o
		}
		// The kernel writes paths as its reader sees them, unless the process has mounts of its own.
		if m.IDs.IsEmpty() {
			continue
		}
		if o := f.try(s, m, func() (*os.File, error) { return openFile("/", area.path) }); o != nil {
			return o
		}
	}
	if len(maps) == 0 && path.IsAbs(m.Path) {
		return f.try(s, m, func() (*os.File, error) { return openFile(filepath.Join(dir, "root"), m.Path) })
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
