// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package procfs reads what /proc has about a process: its executable, arguments, control group, the context that it
// publishes in its memory and, if allowed, two variables of its environment. The process, or whoever started it, wrote
// all of that: it is untrusted, and its reading is bounded.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process is what could be read of a process. Fields that could not be read are empty.
type Process struct {
	IsKernelThread bool
	// Executable is the path of the program, as the process sees it. Reading it needs the process's own user or
	// CAP_SYS_PTRACE.
	Executable string
	// Name is the name that the kernel has for the process: of its program's file, or one that the process has set.
	Name      string
	Arguments []string
	// Container is the id of the container, 64 hexadecimal digits, and Pod the uid of its pod.
	Container, Pod string
	// Unit is the systemd service, without `.service`, of a process outside of containers.
	Unit string
	// ServiceName and ResourceAttributes are OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. Reading them needs what
	// Executable needs.
	ServiceName, ResourceAttributes string
	// Context needs the same.
	Context Context
}

// ErrGone means that there is no such process.
var ErrGone = errors.New("no such process")

// deleted is the suffix that the kernel adds to the path of a deleted file.
const deleted = " (deleted)"

// Reader reads processes below Root.
type Reader struct {
	// Root is where the proc file system is mounted: /proc, or the host's, as a container sees it.
	Root string
	// MaxFileBytes bounds the part of a file that is read; the rest is ignored.
	MaxFileBytes int
	// ReadEnvironment allows the Reader to read the environment.
	ReadEnvironment bool
	// ContextKeys are the attributes that are read of a process context. Without any, none is looked for.
	ContextKeys []string
}

// Check reports whether a proc file system is mounted at root.
func Check(root string) error {
	_, err := os.Stat(filepath.Join(root, "stat"))
	return err
}

// Read reads a process, and leaves fields empty that it has no right to read. It reads all files below one open
// directory, so that they are of the same process even if another process gets its id meanwhile.
func (r *Reader) Read(pid int64) (Process, error) {
	if pid <= 0 {
		return Process{}, ErrGone
	}
	dir, err := os.OpenRoot(filepath.Join(r.Root, strconv.FormatInt(pid, 10)))
	if err != nil {
		return Process{}, OrGone(err)
	}
	defer func() { _ = dir.Close() }()
	stat, err := r.readFile(dir, "stat")
	if err != nil {
		return Process{}, OrGone(err)
	}
	name, flags, err := parseStat(stat)
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	p := Process{IsKernelThread: flags&isKernelThread != 0}
	if p.IsKernelThread {
		return p, nil
	}
	p.Name = name
	if executable, err := dir.Readlink("exe"); err == nil {
		p.Executable = strings.TrimSuffix(executable, deleted)
	}
	if cmdline, err := r.readFile(dir, "cmdline"); err == nil {
		p.Arguments = parseCommandLine(cmdline)
	}
	if cgroup, err := r.readFile(dir, "cgroup"); err == nil {
		p.Container, p.Pod, p.Unit = parseCgroup(cgroup)
	}
	if r.ReadEnvironment {
		if environ, err := r.readFile(dir, "environ"); err == nil {
			p.ServiceName, p.ResourceAttributes = parseEnvironment(environ)
		}
	}
	if len(r.ContextKeys) > 0 {
		p.Context = r.readContext(dir)
	}
	return p, nil
}

func (r *Reader) readFile(dir *os.Root, name string) ([]byte, error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, int64(r.MaxFileBytes)))
	if len(content) == r.MaxFileBytes { // the last entry may be cut, and would have another meaning
		content = content[:bytes.LastIndexAny(content, "\x00\n")+1]
	}
	return content, err
}

// OrGone returns ErrGone if the process ended before or while it was read, otherwise err.
func OrGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return ErrGone
	}
	return err
}
