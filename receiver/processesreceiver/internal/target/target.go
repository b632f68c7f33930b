// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package target finds processes and opens the files of one: its program, its memory and the list of its mappings.
//
// All of that is read below one open directory of /proc, so that it is of the same process even if another one gets its
// id. A process can write anything into its memory and files: the package bounds its reads.
package target

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
)

const (
	// maxMapsBytes bounds the reading of /proc/<pid>/maps: some ten thousand mappings.
	maxMapsBytes = 1 << 20
	// maxStatusBytes bounds the reading of stat and status.
	maxStatusBytes = 16 << 10
)

// ID names a process: another one that gets the number later has another start.
type ID struct {
	PID int64
	// Start is when it started, in ticks since the machine did.
	Start uint64
}

// PIDs returns the ids of all processes, in their order.
func PIDs(root string) ([]int64, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int64
	for _, name := range names {
		if pid, err := strconv.ParseInt(name, 10, 32); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// Target is a process whose directory in /proc is open.
type Target struct {
	ID
	dir *os.File
}

// Open opens a process. The error is procfs.ErrGone if it does not exist.
func Open(root string, pid int64) (*Target, error) {
	dir, err := os.OpenFile(filepath.Join(root, strconv.FormatInt(pid, 10)), unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return nil, procfs.OrGone(err)
	}
	t := &Target{ID: ID{PID: pid}, dir: dir}
	if t.Start, err = t.start(); err != nil {
		t.Close()
		return nil, procfs.OrGone(err)
	}
	return t, nil
}

// Close closes the directory.
func (t *Target) Close() { _ = t.dir.Close() }

// OpenFile opens one of the process's files in /proc. `exe` is the program itself, wherever its path leads to.
func (t *Target) OpenFile(name string) (*os.File, error) {
	fd, err := unix.Openat(int(t.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, procfs.OrGone(&os.PathError{Op: "open", Path: filepath.Join(t.dir.Name(), name), Err: err})
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ReadFile returns the beginning of one of the process's files in /proc.
func (t *Target) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := t.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, limit))
}

// start returns field 22 of /proc/<pid>/stat. The name of the process, which may have anything in it, ends with the
// last parenthesis.
func (t *Target) start() (uint64, error) {
	stat, err := t.ReadFile("stat", maxStatusBytes)
	if err != nil {
		return 0, err
	}
	const startField = 22 - 3 // from the state, field 3, on
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startField {
		return 0, errors.New("stat: too few fields")
	}
	return strconv.ParseUint(string(fields[startField]), 10, 64)
}

// Status returns the fields of /proc/<pid>/status.
func (t *Target) Status() (map[string]string, error) {
	status, err := t.ReadFile("status", maxStatusBytes)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		// The process chooses its name, which is in the first line, with line breaks escaped.
		if key, value, ok := strings.Cut(line, ":"); ok {
			if _, isThere := fields[key]; !isThere {
				fields[key] = strings.TrimSpace(value)
			}
		}
	}
	return fields, nil
}

// Mapping is a line of /proc/<pid>/maps.
type Mapping struct {
	Start, Limit, Offset uint64
	IsExecutable         bool
	Path                 string
}

// Name returns the name of the mapping's file.
func (m *Mapping) Name() string { return path.Base(strings.TrimSuffix(m.Path, " (deleted)")) }

// Mappings returns the mappings of files.
func (t *Target) Mappings() ([]Mapping, error) {
	maps, err := t.OpenFile("maps")
	if err != nil {
		return nil, err
	}
	defer func() { _ = maps.Close() }()
	return parseMaps(io.LimitReader(maps, maxMapsBytes))
}

// parseMaps reads lines of address range, rights, offset, device, inode and path.
func parseMaps(r io.Reader) (mappings []Mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		begin, end, _ := strings.Cut(fields[0], "-")
		m := Mapping{IsExecutable: strings.Contains(fields[1], "x"), Path: lines.Text()[strings.Index(lines.Text(), " /")+1:]}
		var errs [3]error
		m.Start, errs[0] = strconv.ParseUint(begin, 16, 64)
		m.Limit, errs[1] = strconv.ParseUint(end, 16, 64)
		m.Offset, errs[2] = strconv.ParseUint(fields[2], 16, 64)
		if errors.Join(errs[:]...) == nil && m.Start < m.Limit {
			mappings = append(mappings, m)
		}
	}
	return mappings, lines.Err()
}

// Executable returns the path of the program, as the process sees it.
func (t *Target) Executable() (string, error) {
	path := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(t.dir.Fd()), "exe", path)
	if err != nil {
		return "", procfs.OrGone(err)
	}
	return string(path[:n]), nil
}

// Program returns the first mapping of the program.
func (t *Target) Program(mappings []Mapping) (Mapping, bool) {
	path, err := t.Executable()
	for _, m := range mappings {
		if err == nil && m.Path == path {
			return m, true
		}
	}
	return Mapping{}, false
}

// File identifies a file by its content: another one of the same number has another size or time.
type File struct {
	Device, Inode uint64
	Size          int64
	Seconds       int64
	Nanos         int64
}

// File returns the file of the program. It changes when the process executes another one.
func (t *Target) File() (File, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(t.dir.Fd()), "exe", &stat, 0); err != nil {
		return File{}, procfs.OrGone(&os.PathError{Op: "stat", Path: filepath.Join(t.dir.Name(), "exe"), Err: err})
	}
	return fileOf(&stat), nil
}

func fileOf(stat *unix.Stat_t) File {
	return File{Device: stat.Dev, Inode: stat.Ino, Size: stat.Size, Seconds: stat.Mtim.Sec, Nanos: stat.Mtim.Nsec}
}

// OpenMapped opens the file of a mapping in the file system of the process, which links do not leave.
func (t *Target) OpenMapped(m *Mapping) (*os.File, File, error) {
	root, err := t.OpenPath("root")
	if err != nil {
		return nil, File{}, err
	}
	defer func() { _ = root.Close() }()
	fd, err := unix.Openat2(int(root.Fd()), m.Path, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_IN_ROOT,
	})
	if err != nil {
		return nil, File{}, &os.PathError{Op: "open", Path: m.Path, Err: err}
	}
	file, stat := os.NewFile(uintptr(fd), m.Path), unix.Stat_t{}
	if err := unix.Fstat(fd, &stat); err != nil {
		_ = file.Close()
		return nil, File{}, err
	}
	return file, fileOf(&stat), nil
}

// Fd returns the descriptor of the directory, which stands for the process.
func (t *Target) Fd() int { return int(t.dir.Fd()) }

// OpenPath opens the target of a link of the process in /proc, as a path.
func (t *Target) OpenPath(name string) (*os.File, error) {
	fd, err := unix.Openat(t.Fd(), name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, procfs.OrGone(&os.PathError{Op: "open", Path: filepath.Join(t.dir.Name(), name), Err: err})
	}
	return os.NewFile(uintptr(fd), name), nil
}
