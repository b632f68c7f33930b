// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/ebpf-profiler/collector/config"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestProfilerConfig reads the profiler's own sections.
func TestProfilerConfig(t *testing.T) {
	cfg, err := collectortest.LoadConfig(createDefaultConfig().(*Config), map[string]any{
		"interpreters": map[string]any{"python": map[string]any{"disabled": true}},
		"probes":       []any{map[string]any{"type": "kprobe", "symbol": "vfs_open"}},
		"error_mode":   "ignore",
	})
	require.NoError(t, err)
	p := cfg.Profiler
	require.True(t, p.Interpreters.Python.Disabled)
	require.False(t, p.Interpreters.Ruby.Disabled)
	require.Equal(t, []config.Probe{{Type: "kprobe", Config: map[string]any{"symbol": "vfs_open"}}}, p.Probes)
	require.True(t, p.needsKprobes())
	require.False(t, new(defaultProfilerConfig()).needsKprobes())
}

// newTestMachine returns a machine that lacks nothing.
func newTestMachine(t *testing.T) *machine {
	m := &machine{
		root: t.TempDir(), cpus: 4, needsKprobes: true,
		memlock:      func() (uint64, error) { return 8 << 20, nil },
		raiseMemlock: func() error { return nil }, version: func() error { return nil },
		bpf: func() error { return nil }, perf: func() error { return nil },
	}
	for name, text := range map[string]string{
		"proc/self/status":                                            "Name:\tx\nCapEff:\t000001ffffffffff\n",
		"proc/kallsyms":                                               "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n",
		"proc/sys/kernel/kptr_restrict":                               "1\n",
		"proc/sys/kernel/perf_event_paranoid":                         "2\n",
		"proc/sys/kernel/perf_event_mlock_kb":                         "516\n",
		"sys/kernel/security/lockdown":                                "[none] integrity confidentiality\n",
		"sys/kernel/tracing/events/sched/sched_process_free/id":       "300\n",
		"sys/kernel/debug/tracing/events/sched/sched_process_free/id": "300\n",
		"sys/bus/event_source/devices/kprobe/type":                    "8\n",
	} {
		m.write(t, name, text)
	}
	require.NoError(t, os.Mkdir(m.path("proc/self/ns"), 0o700))
	m.linkPID(t, initialPIDNamespace)
	return m
}

func (m *machine) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(m.path(name)), 0o700))
	require.NoError(t, os.WriteFile(m.path(name), []byte(text), 0o600))
}

func (m *machine) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, os.RemoveAll(m.path(name)))
	}
}

func (m *machine) linkPID(t *testing.T, to string) {
	t.Helper()
	m.remove(t, "proc/self/ns/pid")
	require.NoError(t, os.Symlink(to, m.path("proc/self/ns/pid")))
}

// without writes all capabilities except some.
func (m *machine) without(t *testing.T, some ...capability) {
	t.Helper()
	caps := capabilities(1<<41 - 1)
	for _, one := range some {
		caps &^= 1 << one
	}
	m.write(t, "proc/self/status", fmt.Sprintf("CapEff:\t%016x\n", uint64(caps)))
}

// TestCheck removes one requirement after the other.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*testing.T, *machine)
		reason reason
		want   string
	}{
		"nothing": {func(*testing.T, *machine) {}, reasonOther, ""},
		"an old kernel": {func(_ *testing.T, m *machine) {
			m.version = func() error { return errors.New("kernel 5.10 or newer") }
		},
			reasonKernel, "kernel 5.10 or newer"},
		"a locked kernel": {func(t *testing.T, m *machine) {
			m.write(t, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
		}, reasonKernel, "boot it without lockdown=confidentiality"},
		"capabilities": {func(t *testing.T, m *machine) {
			m.without(t, capBPF, capPerfmon, capSysPtrace, capRestore, capSysAdmin)
		},
			reasonPrivilege, "missing capabilities: BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE: run as root"},
		"capabilities that SYS_ADMIN includes": {func(t *testing.T, m *machine) { m.without(t, capBPF, capPerfmon) },
			reasonOther, ""},
		"capabilities unknown": {func(t *testing.T, m *machine) { m.remove(t, "proc/self/status") },
			reasonPrivilege, "does not list the capabilities"},
		"locked memory": {func(_ *testing.T, m *machine) { m.raiseMemlock = func() error { return unix.EPERM } },
			reasonPrivilege, "SYS_RESOURCE (or an unlimited hard limit on locked memory)"},
		"room for buffers": {func(t *testing.T, m *machine) { m.without(t, capIPCLock); m.cpus = 2000 },
			reasonPrivilege, "IPC_LOCK (or a limit on locked memory of "},
		"room for buffers, but enough": {func(t *testing.T, m *machine) { m.without(t, capIPCLock) }, reasonOther, ""},
		"room for buffers, nobody asks": {func(t *testing.T, m *machine) {
			m.without(t, capIPCLock)
			m.cpus = 2000
			m.write(t, "proc/sys/kernel/perf_event_paranoid", "-1\n")
		}, reasonOther, ""},
		"kallsyms": {func(t *testing.T, m *machine) { m.remove(t, "proc/kallsyms") }, reasonKernel, "CONFIG_KALLSYMS"},
		"addresses": {func(t *testing.T, m *machine) { m.write(t, "proc/kallsyms", "0000000000000000 T _stext\n") },
			reasonPrivilege, "SYSLOG (for the kernel's symbols)"},
		"addresses for anybody": {func(t *testing.T, m *machine) {
			m.write(t, "proc/kallsyms", "0000000000000000 T _stext\n")
			m.write(t, "proc/sys/kernel/kptr_restrict", "2\n")
		}, reasonPrivilege, "kernel.kptr_restrict=1"},
		"bpf": {func(_ *testing.T, m *machine) { m.bpf = func() error { return unix.ENOSYS } }, reasonKernel,
			"CONFIG_BPF_SYSCALL"},
		"bpf, by a filter": {func(_ *testing.T, m *machine) { m.bpf = func() error { return unix.EPERM } },
			reasonPrivilege, "bpf() is refused (operation not permitted)"},
		"perf": {func(_ *testing.T, m *machine) { m.perf = func() error { return unix.EACCES } }, reasonPrivilege,
			"perf_event_open() is refused"},
		"the host's processes": {func(t *testing.T, m *machine) { m.linkPID(t, "pid:[4026532000]") },
			reasonPrivilege, "hostPID: true in Kubernetes"},
		"tracefs": {func(t *testing.T, m *machine) { m.remove(t, "sys/kernel/tracing", "sys/kernel/debug") },
			reasonMount, "mount -t tracefs"},
		"tracefs, but debugfs": {func(t *testing.T, m *machine) { m.remove(t, "sys/kernel/tracing") }, reasonOther, ""},
		"the tracepoint": {func(t *testing.T, m *machine) { m.remove(t, "sys/kernel/tracing/events/sched") },
			reasonKernel, "sched:sched_process_free"},
		"kprobes": {func(t *testing.T, m *machine) { m.remove(t, "sys/bus") }, reasonKernel, "CONFIG_KPROBES"},
		"kprobes, but tracefs'": {func(t *testing.T, m *machine) {
			m.remove(t, "sys/bus")
			m.write(t, "sys/kernel/tracing/kprobe_events", "")
		}, reasonOther, ""},
		"kprobes, but no need": {func(t *testing.T, m *machine) {
			m.needsKprobes = false
			m.remove(t, "sys/bus")
		}, reasonOther, ""},
		"the host's processes, but translated": {func(t *testing.T, m *machine) {
			m.seesNamespace = true
			m.linkPID(t, "pid:[4026532000]")
		}, reasonOther, ""},
		"everything": {func(t *testing.T, m *machine) {
			m.without(t, capBPF, capSysAdmin)
			m.raiseMemlock = func() error { return unix.EPERM }
			m.remove(t, "sys/kernel", "sys/bus")
		}, reasonKernel, "missing capabilities: BPF, SYS_RESOURCE (or an unlimited hard limit on locked memory): run as root, or add them; " +
			"tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing, or mount the machine's /sys/kernel/tracing into the container; " +
			"the kernel has no kprobes: it needs CONFIG_KPROBES and CONFIG_KPROBE_EVENTS"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTestMachine(t)
			tt.change(t, m)
			found := m.check()
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.ErrorContains(t, found, tt.want)
			require.Equal(t, tt.reason, found.reason())
		})
	}
}

// TestProbes runs the checks on this machine: they return, and leave no file open.
func TestProbes(t *testing.T) {
	before, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	t.Log(checkMachine(createDefaultConfig().(*Config)))
	after, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.Len(t, after, len(before))
}
