// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// asUser calls fn in a thread that has the rights of a user and its group, without other groups and capabilities. The
// thread ends with it.
func asUser(uid, gid int, fn func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: a thread with other rights must not run anything else
		if err := become(uid, gid); err != nil {
			result <- fmt.Errorf("act as user %d, which needs CAP_SETUID and CAP_SETGID: %w", uid, err)
			return
		}
		result <- fn()
	}()
	return <-result
}

// become changes the effective ids of this thread, and drops its groups and capabilities. The functions of package
// syscall would change those of all threads.
func become(uid, gid int) error {
	const unchanged = ^uintptr(0)
	if os.Geteuid() != uid || os.Getegid() != gid || os.Geteuid() == 0 {
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, 0, 0, 0},
			{unix.SYS_SETRESGID, unchanged, uintptr(gid), unchanged},
			{unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return errno
			}
		}
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}
