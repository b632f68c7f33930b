// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const openFlags = unix.O_NONBLOCK | unix.O_NOCTTY

// openFile opens a regular file below a root. Symbolic links are followed as the root's own processes would follow
// them, and never lead out. The file's type is checked before it is opened for reading, since opening a device can have
// effects.
func openFile(root, name string) (*os.File, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openInRoot(root, name) // Linux before 5.6, or a filter of system calls that does not know it
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root + name, Err: err}
	}
	return reopen(fd, root+name)
}

// openLink opens the regular file behind one of the kernel's links, such as /proc/1/map_files/….
func openLink(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return reopen(fd, name)
}

// reopen opens the file of fd for reading, and closes fd. The file must be a regular one of a real file system: reading
// files of /proc and /sys can block, or have effects.
func reopen(fd int, name string) (*os.File, error) {
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	magic := int64(system.Type) //nolint:unconvert // it has 32 bits on other architectures
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || isPseudo(magic) {
		return nil, fmt.Errorf("%s: %w", name, errNotRegular)
	}
	again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|openFlags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(again), name), nil
}

func isPseudo(magic int64) bool {
	switch magic {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.CGROUP_SUPER_MAGIC,
		unix.CGROUP2_SUPER_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC:
		return true
	}
	return false
}
