// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"go.opentelemetry.io/ebpf-profiler/collector/config"
	"go.opentelemetry.io/ebpf-profiler/rlimit"
	"golang.org/x/sys/unix"
)

// machine is the subject of the checks: files below root, and answers of the kernel.
type machine struct {
	root string
	cpus int
	// needsKprobes and seesNamespace come from the configuration: kprobes are wanted, and PIDs are translated to those of
	// this process's namespace.
	needsKprobes, seesNamespace bool
	// memlock returns the limit on locked memory, in bytes. raiseMemlock raises it as the profiler does, and restores it.
	memlock      func() (uint64, error)
	raiseMemlock func() error
	// version checks the kernel's version. bpf and perf try the profiler's system calls.
	version, bpf, perf func() error
}

// checkMachine returns the missing requirements of the profiler on this machine.
func checkMachine(cfg *Config) problems {
	m := machine{
		root: "/", cpus: runtime.NumCPU(), memlock: softMemlock, bpf: probeBPF, perf: probePerf,
		needsKprobes: cfg.Profiler.needsKprobes(), seesNamespace: cfg.Profiler.PIDNamespaceTranslation,
		// The values were checked when the configuration was read, so only the kernel's version can be wrong.
		version: func() error { own := config.Config(cfg.Profiler); return own.Validate() },
		raiseMemlock: func() error {
			restore, err := rlimit.MaximizeMemlock()
			if err == nil {
				restore()
			}
			return err
		},
	}
	return m.check()
}

// capability is a bit of CapEff in /proc/<pid>/status (capabilities(7)).
type capability uint

const (
	capIPCLock   capability = unix.CAP_IPC_LOCK
	capSysPtrace capability = unix.CAP_SYS_PTRACE
	capSysAdmin  capability = unix.CAP_SYS_ADMIN
	capPerfmon   capability = unix.CAP_PERFMON
	capBPF       capability = unix.CAP_BPF
	capRestore   capability = unix.CAP_CHECKPOINT_RESTORE
)

type capabilities uint64

func (c capabilities) has(some ...capability) bool {
	return slices.ContainsFunc(some, func(one capability) bool { return c&(1<<one) != 0 })
}

// initialPIDNamespace is the name of a kernel's first PID namespace (PROC_PID_INIT_INO in linux/proc_ns.h).
const initialPIDNamespace = "pid:[4026531836]"

// check returns everything that the profiler lacks.
func (m *machine) check() problems {
	var found problems
	add := func(r reason, format string, args ...any) {
		found = append(found, problem{r, fmt.Sprintf(format, args...)})
	}

	if err := m.version(); err != nil {
		add(reasonKernel, "%v", err)
	}
	if strings.Contains(m.read("sys/kernel/security/lockdown"), "[confidentiality]") {
		add(reasonKernel,
			"the kernel is locked down for confidentiality, which forbids eBPF to read memory: boot it without lockdown=confidentiality")
	}
	caps, err := m.capabilities()
	if err != nil {
		add(reasonOther, "%v", err)
	}
	missing := missingCapabilities(caps)
	if err := m.raiseMemlock(); err != nil {
		missing = append(missing, "SYS_RESOURCE (or an unlimited hard limit on locked memory)")
	} else if need, limit, isEnough := m.perfBuffers(caps); !isEnough {
		missing = append(missing, fmt.Sprintf("IPC_LOCK (or a limit on locked memory of %d KiB, found %d)", need>>10,
			limit>>10))
	}
	symbols, err := m.kernelSymbols()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		add(reasonKernel, "the kernel has no /proc/kallsyms: it needs CONFIG_KALLSYMS")
	case err != nil:
		add(reasonOther, "%v", err)
	case !symbols && m.read("proc/sys/kernel/kptr_restrict") == "2":
		add(reasonPrivilege, "the kernel hides its addresses from everybody: sysctl kernel.kptr_restrict=1")
	case !symbols:
		missing = append(missing, "SYSLOG (for the kernel's symbols)")
	}
	if len(missing) > 0 {
		add(reasonPrivilege, "missing capabilities: %s: run as root, or add them", strings.Join(missing, ", "))
	} else if err := m.bpf(); errors.Is(err, unix.ENOSYS) {
		add(reasonKernel, "the kernel has no eBPF: it needs CONFIG_BPF_SYSCALL")
	} else if err != nil {
		add(reasonPrivilege,
			"bpf() is refused (%v) in spite of the capabilities: allow it in the seccomp profile or security module, and run in the first user namespace", err)
	} else if err := m.perf(); err != nil {
		add(reasonPrivilege,
			"perf_event_open() is refused (%v) in spite of the capabilities: allow it in the seccomp profile or security module",
			err)
	}
	if namespace, err := os.Readlink(m.path("proc/self/ns/pid")); err == nil && namespace != initialPIDNamespace &&
		!m.seesNamespace {
		add(reasonPrivilege,
			"other processes cannot be seen from this PID namespace: docker run --pid=host, or hostPID: true in Kubernetes. `pid_namespace_translation: true` samples those of this namespace alone")
	}
	return append(found, m.checkTracing()...)
}

// missingCapabilities returns the capabilities without which there are no samples, or no frames of processes.
func missingCapabilities(caps capabilities) (missing []string) {
	if !caps.has(capBPF, capSysAdmin) {
		missing = append(missing, "BPF")
	}
	if !caps.has(capPerfmon, capSysAdmin) {
		missing = append(missing, "PERFMON")
	}
	if !caps.has(capSysPtrace) {
		missing = append(missing, "SYS_PTRACE")
	}
	if !caps.has(capRestore, capSysAdmin) {
		missing = append(missing, "CHECKPOINT_RESTORE")
	}
	return missing
}

// checkTracing checks that the profiler can attach its programs to a tracepoint and, if it has to, to a kprobe.
func (m *machine) checkTracing() (found problems) {
	var tracefs string
	var err error
	for _, tracefs = range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		if _, err = os.Stat(m.path(tracefs + "/events")); err == nil || errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return append(found,
			problem{reasonPrivilege, "tracefs cannot be read: run as root, or add the capability DAC_READ_SEARCH"})
	case err != nil:
		found = append(found, problem{reasonMount,
			"tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing, or mount the machine's /sys/kernel/tracing into the container"})
	default:
		if _, err := os.Stat(m.path(tracefs + "/events/sched/sched_process_free/id")); err != nil {
			found = append(found,
				problem{reasonKernel, fmt.Sprintf("the kernel has no tracepoint sched:sched_process_free (%v)", err)})
		}
	}
	if !m.needsKprobes {
		return found
	}
	for _, path := range []string{"sys/bus/event_source/devices/kprobe/type", tracefs + "/kprobe_events"} {
		if _, err := os.Stat(m.path(path)); err == nil {
			return found
		}
	}
	return append(found,
		problem{reasonKernel,
			"the kernel has no kprobes: it needs CONFIG_KPROBES and CONFIG_KPROBE_EVENTS, or the configuration has to leave out " +
				"`off_cpu_threshold`, `probes` and `load_probe`"})
}

// The profiler maps two buffers for each CPU: of symbolPages for changes of the kernel's symbols (go-perf's
// DefaultNumPages), and of one page for new processes. Each has a page of control data.
const symbolPages = 128

// perfBuffers reports whether the profiler's buffers can be mapped, and if not, how much locked memory that needs and
// how much is allowed.
func (m *machine) perfBuffers(caps capabilities) (need, limit uint64, isEnough bool) {
	paranoid, err := strconv.Atoi(m.read("proc/sys/kernel/perf_event_paranoid"))
	if caps.has(capIPCLock) || err == nil && paranoid < 0 {
		return 0, 0, true
	}
	limit, err = m.memlock()
	if err != nil {
		return 0, 0, true
	}
	perCPU := uint64(symbolPages+3) * uint64(os.Getpagesize())
	allowed, err := strconv.ParseUint(m.read("proc/sys/kernel/perf_event_mlock_kb"), 10, 32)
	if err != nil || allowed<<10 >= perCPU {
		return 0, limit, true
	}
	need = uint64(m.cpus) * (perCPU - allowed<<10)
	return need, limit, need <= limit
}

// kernelSymbols reports whether /proc/kallsyms shows addresses.
func (m *machine) kernelSymbols() (areShown bool, err error) {
	file, err := os.Open(m.path("proc/kallsyms"))
	if err != nil {
		return false, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		address, rest, _ := strings.Cut(lines.Text(), " ")
		kind, _, _ := strings.Cut(rest, " ")
		if strings.Trim(address, "0") != "" && strings.Contains("TtVvWw", kind) {
			return true, nil
		}
	}
	return false, nil
}

func (m *machine) capabilities() (capabilities, error) {
	for line := range strings.Lines(m.read("proc/self/status")) {
		if value, is := strings.CutPrefix(line, "CapEff:"); is {
			bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return capabilities(bits), err
		}
	}
	return 0, errors.New("/proc/self/status does not list the capabilities of this process: mount /proc")
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// read returns a file's content, or "" if it cannot be read.
func (m *machine) read(name string) string {
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func softMemlock() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return limit.Cur, err
}

// probeBPF creates the smallest possible eBPF map (bpf(2), BPF_MAP_CREATE).
func probeBPF() error {
	const createMap, array = 0, 2
	attributes := struct{ mapType, keySize, valueSize, maxEntries uint32 }{array, 4, 4, 1}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, createMap, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// probePerf opens the event that the profiler uses for sampling, on one CPU, without enabling it.
func probePerf() error {
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitDisabled,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
