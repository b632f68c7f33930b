// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// VM is a JVM that was found to be ready for commands.
type VM struct {
	// UID and GID are the JVM's effective user and group, as this process sees them.
	UID, GID int
	// PID is its number in its own namespace.
	PID int64
}

// IsJVM reports whether a process has loaded a JVM.
func IsJVM(mappings []target.Mapping) bool {
	return slices.ContainsFunc(mappings, func(m target.Mapping) bool { return m.IsExecutable && m.Name() == "libjvm.so" })
}

// maxOptionsBytes bounds the arguments and the environment that are read.
const maxOptionsBytes = 1 << 20

// Inspect returns an error unless a process is a HotSpot JVM that handles SIGQUIT, by which it is told to listen.
// Without a handler the signal would end it.
func Inspect(t *target.Target, mappings []target.Mapping) (*VM, error) {
	if !IsJVM(mappings) {
		return nil, fmt.Errorf("no libjvm.so is loaded: %w", ErrUnsupported)
	}
	if slices.ContainsFunc(mappings, func(m target.Mapping) bool { return strings.HasPrefix(m.Name(), "libj9vm") }) {
		return nil, fmt.Errorf("OpenJ9 has no Flight Recorder with its own events: %w", ErrUnsupported)
	}
	status, err := t.Status()
	if err != nil {
		return nil, err
	}
	if err := checkSignal(status); err != nil {
		return nil, err
	}
	if err := checkDispatcher(t); err != nil {
		return nil, err
	}
	for _, name := range []string{"cmdline", "environ"} {
		options, err := t.ReadFile(name, maxOptionsBytes)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(options, []byte("-XX:+DisableAttachMechanism")) {
			return nil, fmt.Errorf("the JVM was started with -XX:+DisableAttachMechanism: %w", ErrDisabled)
		}
	}
	return parseStatus(status)
}

// checkSignal returns an error unless the process has a handler for SIGQUIT and is not stopped.
func checkSignal(status map[string]string) error {
	caught, err := strconv.ParseUint(status["SigCgt"], 16, 64)
	if err != nil {
		return fmt.Errorf("read the signals that are handled: %w", err)
	}
	const quit = 1 << (unix.SIGQUIT - 1)
	if caught&quit == 0 {
		return fmt.Errorf("the JVM does not handle SIGQUIT, as with the option -Xrs: %w", ErrDisabled)
	}
	if state := status["State"]; strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t") ||
		strings.HasPrefix(state, "Z") {
		return fmt.Errorf("the process is in state %s: %w", state, ErrNoAnswer)
	}
	return nil
}

// checkDispatcher returns an error unless the process has the thread to which HotSpot's handler passes SIGQUIT. Another
// program that has loaded the library may handle the signal, too, by ending as those of Go do.
func checkDispatcher(t *target.Target) error {
	const name, most = "Signal Dispatch", 1000 // it is one of the first threads; names have 15 characters
	tasks, err := t.OpenFile("task")
	if err != nil {
		return err
	}
	defer func() { _ = tasks.Close() }()
	ids, err := tasks.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, id := range ids {
		if comm, _ := t.ReadFile("task/"+id+"/comm", maxOptionsBytes); strings.TrimSpace(string(comm)) == name {
			return nil
		}
	}
	return fmt.Errorf(
		"the process has libjvm.so, but no thread for its signals, as with the option -Xrs or before it starts Java: %w",
		ErrDisabled)
}

// parseStatus reads the effective ids, the second of four, and the number in the innermost namespace, the last.
func parseStatus(status map[string]string) (*VM, error) {
	number := func(fields []string, i int) int64 {
		if i >= 0 && i < len(fields) {
			if n, err := strconv.ParseUint(fields[i], 10, 31); err == nil {
				return int64(n)
			}
		}
		return -1
	}
	users, groups, pids := strings.Fields(status["Uid"]), strings.Fields(status["Gid"]), strings.Fields(status["NSpid"])
	vm := &VM{UID: int(number(users, 1)), GID: int(number(groups, 1)), PID: number(pids, len(pids)-1)}
	if vm.UID < 0 || vm.GID < 0 || vm.PID <= 0 {
		return nil, fmt.Errorf("the status of the process has no user, group or number: %w", ErrMalformed)
	}
	return vm, nil
}
